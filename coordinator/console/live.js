// What happens to tasks, as it happens: server-sent events by fetch, so that the token travels in a
// header. A broken stream is taken up again after the last event that came (Last-Event-ID).
//
// A page may use (most use fresh.js, which does this for them):
//   follow({ saga, task }, listener, signal)   listener({ kind, task, saga, status, version, at })
//     for each event until `signal` is aborted; kind "gap": some may have been missed, so look again
//   liveness.state        "idle" (nobody follows), "live", "connecting" or "polling"
//   liveness.addEventListener("change", …)
//
// "polling": the stream failed again and again; pages ask at intervals while it is tried further.
// A hidden tab holds no stream, since a browser grants six connections a server.

import { ask, parametersOf } from "./api.js";
import { Backoff, pause } from "./backoff.js";
import { EventParser } from "./events.js";

const GIVEN_UP_AFTER = 3; // failures in a row, until pages poll
const SILENCE_MAX_MS = 40_000; // a sign of life comes every 15 s
const HIDDEN_FOR_MS = 10_000; // until the stream of a hidden tab is let go

class Liveness extends EventTarget {
  state = "idle";
  #followers = 0;

  joined(number) {
    this.#followers += number;
    if (!this.#followers) this.become("idle");
    else if (this.state === "idle") this.become("connecting");
  }

  become(state) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

export const liveness = new Liveness();

export async function follow(filter, listener, signal) {
  const backoff = new Backoff();
  const position = { last: "" };
  let failures = 0;
  liveness.joined(1);
  try {
    while (!signal.aborted) {
      await visible(signal);
      try {
        await stream(filter, position, listener, signal, () => {
          failures = 0;
          backoff.reset();
          liveness.become("live");
          listener({ kind: "gap" }); // hints have no id: those from before it opened do not come
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        liveness.become(failures >= GIVEN_UP_AFTER ? "polling" : "connecting");
        await pause(backoff.next(error.retryMs ?? 0), signal);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    liveness.joined(-1);
  }
}

async function stream(filter, position, listener, signal, opened) {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const letGo = whenHiddenFor(HIDDEN_FOR_MS, () => stop.abort(), both);
  const watchdog = new Watchdog(SILENCE_MAX_MS, () => stop.abort());
  try {
    const query = parametersOf(filter).toString();
    const headers = { Accept: "text/event-stream" };
    if (position.last) headers["Last-Event-ID"] = position.last;
    const path = `/api/feed${query && `?${query}`}`;
    const answer = await ask(path, { signal: both, headers, lasting: true });
    opened();
    await takeAll(answer.body, position, listener, watchdog);
  } catch (error) {
    if (signal.aborted || !stop.signal.aborted) throw error;
  } finally {
    watchdog.stop();
    letGo();
  }
}

async function takeAll(body, position, listener, watchdog) {
  const parser = new EventParser();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    watchdog.feed();
    const found = parser.push(value);
    position.last = parser.id || position.last;
    for (const { event, data } of found) listener({ kind: event, ...parsed(data) });
  }
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    return {};
  }
}

class Watchdog {
  #timer;

  constructor(ms, bark) {
    this.ms = ms;
    this.bark = bark;
    this.feed();
  }

  feed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.bark, this.ms);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}

function whenHiddenFor(ms, act, signal) {
  let timer;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(act, ms);
  };
  document.addEventListener("visibilitychange", look, { signal });
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

function visible(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const look = () => !document.hidden && resolve();
    document.addEventListener("visibilitychange", look, { signal });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
