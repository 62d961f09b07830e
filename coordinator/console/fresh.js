// Data that stays fresh: loaded, drawn, and loaded again when something happened or time went by.
//
// A page may use:
//   const tasks = fresh(context, {
//     load: (signal) => read("list", {…}, { signal }),
//     draw: (answer) => …,          fills what is in `content`
//     content,                      an element; until the first answer it shows what the page put there
//     feed: { task } | {} | null,   load again when an event of that kind comes; null: only by time
//     heard: (news) => …,          optional: told each event at once, see live.js
//     everyMs: 5_000,               how often without a live feed (with one: a third as often)
//   });
//   tasks.reload()                  now; resolves once that is drawn or has failed
//   tasks.stop()
// Before the first answer a failure takes the content's place, with its reason and a way on; after it
// the content stays and the shell says that it grows old. What may pass is tried again by itself.

import { NOBODY, ApiError } from "./api.js";
import { Backoff } from "./backoff.js";
import { connection } from "./connection.js";
import { follow, liveness } from "./live.js";
import { problemView } from "./states.js";

const POLL_MS = 5_000;
const AT_MOST_EVERY_MS = 1_000;
const LIVE_FACTOR = 3;
const PATIENCE = 6; // times what an answer took, at least between two questions

export function fresh(context, wanted) {
  return new Fresh(context, wanted).start();
}

class Fresh {
  #timer;
  #timerAt = Infinity;
  #loading = null;
  #again = false;
  #lastAt = 0; // when it was asked for last, and how long that took
  #lastMs = 0;
  #drawn = false;
  #problem = null;
  #backoff = new Backoff();
  #stop = new AbortController();

  constructor(context, { load, draw, content, feed = {}, heard = null, everyMs = POLL_MS }) {
    Object.assign(this, { context, load, draw, content, feed, heard, everyMs });
    this.signal = AbortSignal.any([context.signal, this.#stop.signal]);
  }

  start() {
    this.signal.addEventListener("abort", () => {
      clearTimeout(this.#timer);
      connection.recovered(this);
    });
    if (this.feed) follow(this.feed, (news) => this.#happened(news), this.signal);
    const shown = () => !document.hidden && this.reload();
    document.addEventListener("visibilitychange", shown, { signal: this.signal });
    this.reload();
    return this;
  }

  stop() {
    this.#stop.abort();
  }

  reload() {
    if (this.#loading) this.#again = true;
    else this.#loading = this.#run().finally(() => { this.#loading = null; });
    return this.#loading;
  }

  async #run() {
    do {
      this.#again = false;
      await this.#once();
    } while (this.#again && !this.signal.aborted);
  }

  async #once() {
    this.#lastAt = performance.now();
    try {
      const answer = await this.load(this.signal);
      this.#lastMs = performance.now() - this.#lastAt;
      if (this.signal.aborted) return;
      this.#backoff.reset();
      this.#show();
      this.draw(answer);
      this.#drawn = true;
      connection.recovered(this);
      const factor = this.feed && liveness.state === "live" ? LIVE_FACTOR : 1;
      this.#plan(performance.now() + this.everyMs * factor);
    } catch (error) {
      if (!this.signal.aborted) this.#failed(error);
    }
  }

  #failed(error) {
    if (!(error instanceof ApiError)) console.error(error);
    const problem = error instanceof ApiError ? error : broken(error);
    if (problem.status === 401) return this.context.signIn(problem);
    const againMs = problem.passing ? this.#backoff.next(problem.retryMs ?? 0) : null;
    if (this.#drawn && problem.passing) connection.failed(this, problem, againMs);
    else this.#replace(problem, againMs);
    if (againMs !== null) this.#plan(performance.now() + againMs);
  }

  #happened(news) {
    if (this.#drawn) this.heard?.(news);
    this.#plan(this.#notBefore());
  }

  /** What is slow to answer is asked less often. */
  #notBefore() {
    return this.#lastAt + Math.max(AT_MOST_EVERY_MS, PATIENCE * this.#lastMs);
  }

  /** Load again at `at` (of performance.now), or earlier if that is planned already. */
  #plan(at) {
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity;
      if (!document.hidden) this.reload();
    }, Math.max(0, at - performance.now()));
  }

  #replace(problem, againMs) {
    const view = problemView(problem, { againMs, retry: () => this.reload() });
    if (this.#problem) this.#problem.replaceWith(view);
    else this.content.after(view);
    this.#problem = view;
    this.content.hidden = true;
  }

  #show() {
    this.#problem?.remove();
    this.#problem = null;
    this.content.hidden = false;
  }
}

function broken(error) {
  return new ApiError({ ...NOBODY, status: -1, title: "This page failed", detail: String(error) });
}
