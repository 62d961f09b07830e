// One attempt: the command, what its handler is given, and the one event that ends it.
//
// Always holds: the command is acked only after the stream confirmed that event, or when a claim
// said that nobody wants one; of two ends, the first counts.

import type { JsMsg } from "@nats-io/jetstream";
import type { Command, CommandData, EventData, Kind, Phase } from "./contract.js";
import { event, failureOf, operationId, outcomeOf, PayloadLost } from "./contract.js";
import type { Wire } from "./wire.js";

/** What a handler is given. `signal` says that the work is not wanted any more. */
export interface Context {
  readonly input: unknown;
  readonly results: Record<string, unknown>;
  readonly result: unknown;
  readonly outcomeUnknown: boolean;
  readonly task: string;
  readonly attempt: number;
  readonly operationId: string;
  readonly actionOperationId: string;
  readonly signal: AbortSignal;
  heartbeat(progress?: unknown): void;
}

export type Handler = (ctx: Context) => Promise<unknown>;

export interface Handlers {
  readonly [action: string]: { phase: Phase; run: Handler };
}

const BEATS_PER_TIMEOUT = 3;
const PROGRESS_EVERY_MS = 1_000;
const BEGIN_WITHIN_MS = 1_000;

export class Attempt {
  private readonly stopping = new AbortController();
  private reported = false;
  private settled = false;
  private epoch: number;
  private beats = 0;
  private beatenAt = 0;
  readonly done: Promise<void>;

  constructor(
    private readonly wire: Wire,
    private readonly handlers: Handlers,
    private msg: JsMsg,
    private readonly action: string,
    readonly command: Command,
    claim: { wanted: boolean; first: boolean },
  ) {
    this.epoch = command.epoch;
    this.done = this.run(claim).catch((error) => console.error(`${command.id}: ${error}`));
  }

  isOf(msg: JsMsg): boolean {
    return Buffer.from(this.msg.data).equals(Buffer.from(msg.data));
  }

  /** The same command was delivered again: answer the newer delivery. */
  adopt(msg: JsMsg): void {
    this.msg = msg;
    this.keep();
  }

  keep(): void {
    if (!this.settled) this.msg.working();
  }

  /** Its work is not wanted any more, up to this attempt of its action. */
  stop(attempt: number): void {
    if (this.command.phase === "action" && this.command.attempt <= attempt) this.stopping.abort();
  }

  /** Give the command to another instance. */
  async handBack(): Promise<void> {
    if (this.reported) return this.done;
    this.reported = true;
    this.stopping.abort();
    await Promise.race([this.wire.store(this.subject, this.event("handedback")), pause(1_000)]);
    this.settle(() => this.msg.nak());
  }

  private async run(claim: { wanted: boolean; first: boolean }): Promise<void> {
    const began = Date.now();
    if (claim.wanted && !(await this.claim(claim.first))) return;
    const known = this.handlers[this.action];
    if (known === undefined || known.phase !== this.command.phase) {
      const message = `no ${this.command.phase} named ${this.action} in this process`;
      const error = { type: "UnknownAction", message, retryable: true, noeffect: true };
      return this.end("failed", { error });
    }
    let data: CommandData;
    try {
      data = this.command.data ?? JSON.parse((await this.fetch()).toString());
    } catch (error) {
      const lost = error instanceof PayloadLost ? error : new PayloadLost(String(error));
      return this.end("failed", { error: failureOf(lost) });
    }
    if (data.sealed) {
      const message = "the task is encrypted, and this agent has no keys";
      const error = { type: "Undecryptable", message, retryable: true, noeffect: true, hold: true };
      return this.end("failed", { error });
    }
    if (this.command.reportstart) await this.wire.store(this.subject, this.event("started"));
    if (Date.now() - began > BEGIN_WITHIN_MS && !claim.wanted && !(await this.claim(false))) return;
    await this.handle(known.run, data);
  }

  private async handle(run: Handler, data: CommandData): Promise<void> {
    const limit = this.command.starttoclosems ?? 0;
    const timer = limit > 0 ? setTimeout(() => void this.timeOut(), limit) : undefined;
    try {
      const returned = await run(this.context(data));
      const outcome = outcomeOf(this.command.phase, returned);
      await this.end(outcome.error === undefined ? "completed" : "failed", outcome);
    } catch (error) {
      await this.end("failed", { error: failureOf(error) });
    } finally {
      clearTimeout(timer);
    }
  }

  private async timeOut(): Promise<void> {
    this.stopping.abort();
    await this.end("timedout");
  }

  /** Report how it ended, once, and ack when that is stored. */
  private async end(kind: Kind, data?: EventData): Promise<void> {
    if (this.reported) return;
    this.reported = true;
    await this.wire.store(this.subject, await this.wire.fitting(this.command.task, this.event(kind, data)));
    this.settle(() => this.msg.ack());
  }

  private async claim(first: boolean): Promise<boolean> {
    const { task, step, phase, attempt, epoch } = this.command;
    const delivery = this.msg.info.deliveryCount;
    const asked = { task, step, phase, attempt, epoch, delivery, worker: this.wire.worker, first };
    const reply = await this.wire.claim(asked);
    if (reply.granted) {
      this.epoch = reply.epoch ?? epoch;
    } else {
      this.settle(() => {
        if (!reply.elsewhere) this.msg.ack();
      });
    }
    return reply.granted;
  }

  private settle(answer: () => void): void {
    if (this.settled) return;
    this.settled = true;
    answer();
  }

  private fetch(): Promise<Buffer> {
    return this.wire.getPayload(this.command.dataref ?? "", this.command.datadigest ?? "");
  }

  private get subject(): string {
    return `hw.events.${this.wire.agent}.${this.command.task}`;
  }

  private event(kind: Kind, data?: EventData, number?: number): Record<string, unknown> {
    return event(this.command, this.epoch, `/headway/agents/${this.wire.agent}/${this.wire.worker}`, kind, data, number);
  }

  private beat(progress: unknown): void {
    const timeout = this.command.heartbeatms ?? 0;
    const every = timeout > 0 ? timeout / BEATS_PER_TIMEOUT : PROGRESS_EVERY_MS;
    const isOfUse = timeout > 0 || progress !== undefined;
    if (this.reported || !isOfUse || Date.now() - this.beatenAt < every) return;
    this.beatenAt = Date.now();
    this.beats += 1;
    const data = progress === undefined ? undefined : { progress };
    this.wire.say(this.subject, this.event("heartbeat", data, this.beats));
  }

  private context(data: CommandData): Context {
    const { task, step, phase, attempt } = this.command;
    return {
      input: data.input ?? null,
      results: data.results ?? {},
      result: data.result ?? null,
      outcomeUnknown: data.outcome_unknown ?? false,
      task,
      attempt,
      operationId: operationId(task, step, phase),
      actionOperationId: operationId(task, step, "action"),
      signal: this.stopping.signal,
      heartbeat: (progress) => this.beat(progress),
    };
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
