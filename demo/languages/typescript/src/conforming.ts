// The conformance actions, as asyncapi.yaml describes them.

import { type Handlers, pause } from "./attempt.js";
import { EMPTY, InvalidInput, Reject, Retry } from "./contract.js";

export const CONFORMING: Handlers = {
  "conform-echo": {
    phase: "action",
    run: async ({ input, operationId, attempt, results }) => ({ input, operation: operationId, attempt, results }),
  },
  "conform-double": {
    phase: "action",
    run: async ({ input }) => {
      const { number, ...more } = members(input);
      if (!Number.isInteger(number) || Object.keys(more).length > 0) {
        throw new InvalidInput("number: an integer, and nothing else, is wanted");
      }
      return { number: 2 * (number as number) };
    },
  },
  "conform-end": {
    phase: "action",
    run: async ({ input }) => {
      const { how, reason, after_ms } = members(input);
      if (how === "reject") throw new Reject(String(reason));
      if (how === "retry") throw new Retry(Number(after_ms));
      throw new Error(String(reason));
    },
  },
  "conform-large": {
    phase: "action",
    run: async ({ input }) => ({ text: "x".repeat(Number(members(input)["bytes"])) }),
  },
  "conform-work": {
    phase: "action",
    run: async ({ input, signal, heartbeat }) => {
      const until = Date.now() + Number(members(input)["ms"]);
      while (!signal.aborted && Date.now() < until) {
        heartbeat({ left_ms: until - Date.now() });
        await pause(Math.min(50, Math.max(0, until - Date.now())));
      }
      return { stopped: signal.aborted };
    },
  },
  "conform-undo": {
    phase: "compensation",
    run: async ({ input, result, outcomeUnknown, operationId, actionOperationId }) => {
      if (outcomeUnknown && !members(input)["effect"]) return EMPTY;
      return {
        result,
        outcome_unknown: outcomeUnknown,
        operation: operationId,
        action_operation: actionOperationId,
      };
    },
  },
};

/** An object's members; InvalidInput for anything else. */
export function members(input: unknown): Record<string, unknown> {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw new InvalidInput("an object is wanted");
  }
  return input as Record<string, unknown>;
}
