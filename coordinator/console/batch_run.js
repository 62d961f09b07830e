// How an act on many tasks is carried out: piece by piece, so that it can be watched and stopped.
//
// A run has: look(signal) -> { matched, willing, refused: [{ task, reason }] }, what would happen;
//   go(reason, signal, progress) -> the same of what did; progress(done, refused) after each piece.

import { act, ApiError } from "./api.js";

const AT_ONCE = 4; // single acts under way
const PIECE = 200; // tasks in one request of a batch

export function allThatMatch(word, filter) {
  const set = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
  const ask = async (dry_run, reason, signal, progress) => {
    const total = { matched: 0, willing: 0, refused: [] };
    let cursor = null;
    do {
      const request = { action: word, filter: set, dry_run, reason, limit: PIECE, cursor };
      const answer = await act("batch", request, { signal });
      total.matched += answer.matched;
      total.willing += answer.done;
      total.refused.push(...answer.refused);
      cursor = answer.cursor;
      progress(total.willing, total.refused.length);
    } while (cursor);
    return total;
  };
  return {
    look: (signal, progress) => ask(true, "", signal, progress),
    go: (reason, signal, progress) => ask(false, reason, signal, progress),
  };
}

export function chosenOnes(word, tasks) {
  return {
    async look() {
      return { matched: tasks.length, willing: tasks.length, refused: [] };
    },
    async go(reason, signal, progress) {
      const total = { matched: tasks.length, willing: 0, refused: [] };
      const waiting = [...tasks];
      const one = async () => {
        for (let task = waiting.shift(); task; task = waiting.shift()) {
          try {
            await act(word, { task, reason }, { signal });
            total.willing += 1;
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
            total.refused.push({ task, reason: error.message });
          }
          progress(total.willing, total.refused.length);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, one));
      return total;
    },
  };
}
