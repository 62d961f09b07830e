// Asking the coordinator. Every operation has the name that it has on NATS and in the CLI.
//
// A page may use:
//   await read("get", { task, wait_s: 5 }, { signal })      GET /api/get?task=…&wait_s=5
//   await act("retry", { task, step, reason }, { signal })  POST /api/retry, JSON
// Lists become repeated parameters; an object under `attributes` becomes attribute=name=value;
// null, undefined and "" are left out. What goes wrong is an ApiError, a problem (RFC 9457):
//   status (0: nobody answered), type, title, detail, retryMs (after Retry-After; else null)
//   passing    it may end by itself: nobody answered, 429, 503 …

import * as auth from "./auth.js";

const TRANSIENT = new Set([0, 408, 429, 502, 503, 504]);
const ANSWER_WITHIN_MS = 20_000;

export class ApiError extends Error {
  constructor({ status, type = "about:blank", title, detail = "", retryMs = null }) {
    super(detail || title);
    this.name = "ApiError";
    Object.assign(this, { status, type, title, detail, retryMs });
  }

  get passing() {
    return TRANSIENT.has(this.status);
  }
}

export const NOBODY = {
  status: 0,
  title: "No coordinator answers",
  detail: "Nothing listens at this address. Start one with `headway up`.",
};

export async function read(operation, parameters = {}, { signal } = {}) {
  const query = parametersOf(parameters).toString();
  const answer = await ask(`/api/${operation}${query && `?${query}`}`, { signal });
  return answer.json();
}

export async function act(operation, body, { signal } = {}) {
  const answer = await ask(`/api/${operation}`, {
    signal,
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer.json();
}

/** A response that is good, whatever is in it; ApiError if not. `lasting`: it may go on for ever. */
export async function ask(path, { signal, headers = {}, lasting = false, ...options } = {}) {
  const limits = [signal, lasting ? null : AbortSignal.timeout(ANSWER_WITHIN_MS)].filter(Boolean);
  let answer;
  try {
    answer = await fetch(path, {
      ...options,
      cache: "no-store",
      signal: AbortSignal.any(limits),
      headers: { ...headers, ...credentials() },
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(error.name === "TimeoutError" ? late() : NOBODY);
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

export function parametersOf(parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (name === "attributes") {
      for (const [key, text] of Object.entries(value ?? {})) {
        query.append("attribute", `${key}=${text}`);
      }
    } else {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== null && each !== undefined && each !== "") query.append(name, String(each));
      }
    }
  }
  return query;
}

function credentials() {
  const token = auth.token();
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function problemOf(answer) {
  const problem = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get("Retry-After"));
  return new ApiError({
    type: problem.type,
    title: problem.title ?? `The coordinator answered ${answer.status}`,
    detail: typeof problem.detail === "string" ? problem.detail : "",
    status: answer.status,
    retryMs: wait > 0 ? wait * 1_000 : null,
  });
}

function late() {
  const detail = `No answer came within ${ANSWER_WITHIN_MS / 1_000} s. It may be overloaded.`;
  return { ...NOBODY, detail };
}
