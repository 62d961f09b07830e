// The agent contract as values and functions over them: what travels, and the rules that need no
// network. Written against asyncapi.yaml alone.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const INLINE_MAX_BYTES = 262_144;
export const RESULT_MAX_BYTES = 1_048_576;
export const MESSAGE_MAX_CHARS = 2_000;

export type Phase = "action" | "compensation";

export interface CommandData {
  input?: unknown;
  results?: Record<string, unknown>;
  result?: unknown;
  outcome_unknown?: boolean;
  sealed?: boolean;
}

export interface Command {
  id: string;
  task: string;
  saga: string;
  step: string;
  phase: Phase;
  attempt: number;
  epoch: number;
  sentms?: number;
  starttoclosems?: number;
  heartbeatms?: number;
  reportstart?: boolean;
  late?: boolean;
  paced?: boolean;
  dataref?: string;
  datadigest?: string;
  data?: CommandData | null;
}

export interface Failure {
  type: string;
  message: string;
  retryable?: boolean;
  noeffect?: boolean;
  retryafterms?: number;
  hold?: boolean;
}

export interface EventData {
  result?: unknown;
  empty?: boolean;
  error?: Failure;
  progress?: unknown;
}

export type Kind = "started" | "heartbeat" | "handedback" | "completed" | "failed" | "timedout";

export interface ClaimReply {
  granted: boolean;
  epoch?: number;
  reason?: string;
  start_in_ms?: number;
  again_in_ms?: number;
  paced?: boolean;
  elsewhere?: boolean;
}

/** A business failure that left nothing behind: the saga turns around. */
export class Reject extends Error {
  override name = "Reject";
}

/** Not now: another attempt after so many milliseconds, or by the step's policy. */
export class Retry extends Error {
  override name = "Retry";
  constructor(readonly afterMs = -1, message = "try again later") {
    super(message);
  }
}

/** The input does not fit the action; thrown before any effect. */
export class InvalidInput extends Error {
  override name = "InvalidInput";
}

/** What a command refers to is not to be had. */
export class PayloadLost extends Error {
  override name = "PayloadLost";
}

/** Returned by a compensation that found nothing to undo. */
export const EMPTY = Symbol("nothing to undo");

const HEAD = Buffer.from('{"sig":"');
const TAIL = Buffer.from('",');
const SIGNATURE_CHARS = 43;

/** What is wrong with a command's signature; "" if nothing is. Works on the bytes as they came. */
export function complaint(key: Buffer, subject: string, body: Buffer): string {
  const rest = HEAD.length + SIGNATURE_CHARS + TAIL.length;
  const hasForm =
    body.subarray(0, HEAD.length).equals(HEAD) && body.subarray(rest - TAIL.length, rest).equals(TAIL);
  if (!hasForm) return "not signed: commands come from a coordinator, which signs them";
  const wanted = createHmac("sha256", key)
    .update(subject)
    .update(Buffer.from([0]))
    .update(body.subarray(rest))
    .digest("base64url");
  const given = body.subarray(HEAD.length, HEAD.length + SIGNATURE_CHARS);
  if (timingSafeEqual(given, Buffer.from(wanted))) return "";
  return "the signature does not fit: no coordinator wrote this for this subject";
}

/** The command in a signed body. Throws Error, in words, if it is none, or not one of its subject. */
export function read(subject: string, body: Buffer): { action: string; command: Command } {
  const [, , , action, task, step, ...more] = subject.split(".");
  const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  const command = JSON.parse(text) as Command;
  if (action === undefined || more.length > 0) throw new Error("not a command subject");
  if (command.task !== task || command.step !== step) {
    throw new Error("the command names another task or step than its subject does");
  }
  const isWhole =
    typeof command.id === "string" &&
    Number.isInteger(command.attempt) &&
    Number.isInteger(command.epoch) &&
    (command.phase === "action" || command.phase === "compensation") &&
    (Boolean(command.data) || Boolean(command.dataref));
  if (!isWhole) throw new Error("not a command");
  return { action, command };
}

/** Whether a command comes for the first time, but for what this instance remembers. */
export function isFresh(command: Command, delivered: number, storedMs: number, nowMs: number): boolean {
  return (
    delivered === 1 &&
    command.epoch === 0 &&
    !command.late &&
    nowMs - storedMs < 30_000 &&
    Math.abs(storedMs - (command.sentms ?? 0)) <= 5_000
  );
}

/** UUIDv5 of task, step and phase: the same for all attempts. */
export function operationId(task: string, step: string, phase: Phase): string {
  const namespace = Buffer.from(task.replaceAll("-", ""), "hex");
  const digest = createHash("sha1").update(namespace).update(`${step}/${phase}`).digest();
  digest[6] = (digest[6]! & 0x0f) | 0x50;
  digest[8] = (digest[8]! & 0x3f) | 0x80;
  const hex = digest.subarray(0, 16).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export function event(
  command: Command,
  epoch: number,
  source: string,
  kind: Kind,
  data?: EventData,
  number?: number,
): Record<string, unknown> {
  return {
    specversion: "1.0",
    id: `${command.id}.${epoch}.${kind}${number === undefined ? "" : `.${number}`}`,
    type: `headway.attempt.${kind}`,
    source,
    task: command.task,
    step: command.step,
    phase: command.phase,
    attempt: command.attempt,
    epoch,
    ...(data === undefined ? {} : { data }),
  };
}

/** What an error of a handler means. */
export function failureOf(error: unknown): Failure {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const said = { type: name, message: message.replaceAll("\0", "").slice(0, MESSAGE_MAX_CHARS) };
  if (error instanceof Reject || error instanceof InvalidInput) {
    return { ...said, retryable: false, noeffect: true };
  }
  if (error instanceof Retry) return { ...said, retryable: true, retryafterms: error.afterMs };
  return { ...said, retryable: true, noeffect: error instanceof PayloadLost };
}

/** What a handler's return value means: the event's kind and data. */
export function outcomeOf(phase: Phase, returned: unknown): EventData {
  if (phase === "compensation" && returned === EMPTY) return { empty: true };
  let text: string | undefined;
  try {
    text = JSON.stringify(returned ?? null);
  } catch (error) {
    return { error: { ...failureOf(error), type: "InvalidResult", retryable: false } };
  }
  if (text === undefined) {
    return { error: { type: "InvalidResult", message: "the result is no JSON", retryable: false } };
  }
  const size = Buffer.byteLength(text);
  if (size > RESULT_MAX_BYTES) {
    const message = `the result has ${size} bytes, more than ${RESULT_MAX_BYTES}`;
    return { error: { type: "ResultTooLarge", message, retryable: false } };
  }
  return { result: returned ?? null };
}
