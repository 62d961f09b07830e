// How long to wait before the next try. Pure, but for the jitter.
//
//   const backoff = new Backoff();  backoff.next() -> ms, longer each time;  backoff.reset()

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

export class Backoff {
  #tries = 0;

  next(atLeastMs = 0) {
    const span = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#tries);
    this.#tries += 1;
    return Math.max(atLeastMs, span * (0.75 + Math.random() / 4));
  }

  reset() {
    this.#tries = 0;
  }
}

/** Resolves after `ms`; rejects when `signal` is aborted before. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
