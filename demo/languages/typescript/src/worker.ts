// One instance of an agent: pulls commands, refuses what no coordinator signed, and starts attempts.

import { hostname } from "node:os";
import type { JsMsg } from "@nats-io/jetstream";
import { Attempt, type Handlers, pause } from "./attempt.js";
import { type Command, complaint, isFresh, read } from "./contract.js";
import { Wire } from "./wire.js";

const SLOTS = 64;
const PULL_MS = 5_000;
const KEEP_EVERY_MS = 1_500;
const PRESENCE_EVERY_MS = 1_000;
const PACED_FOR_MS = 3_500;
const KEY_AGAIN_MS = 10_000;
const GRACE_MS = 5_000;
const REMEMBERED_MAX = 16_384;
const LETTER_MAX_BYTES = 65_536;

export class Worker {
  private readonly attempts = new Map<string, Attempt>(); // by subject
  private readonly begun = new Set<string>(); // ids, oldest first
  private key = Buffer.alloc(0);
  private keyAskedAt = 0;
  private pacedUntil = 0;
  private stopping = false;

  private constructor(
    private readonly wire: Wire,
    private readonly handlers: Handlers,
  ) {}

  /** Work for `agent` until SIGTERM or SIGINT. */
  static async serve(agent: string, handlers: Handlers): Promise<void> {
    const worker = new Worker(await Wire.open(agent), handlers);
    await worker.run();
  }

  private async run(): Promise<void> {
    const { wire } = this;
    const stopped = new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
    });
    this.listen();
    await Promise.race([this.learnKey(), stopped]);
    const keeping = setInterval(() => this.keepAll(), KEEP_EVERY_MS);
    const saying = setInterval(() => this.sayPresence(), PRESENCE_EVERY_MS);
    this.sayPresence();
    void this.watchConnection();
    void this.endWithConnection();
    void this.pull();
    await stopped;
    this.stopping = true;
    this.sayPresence();
    await Promise.race([Promise.all([...this.attempts.values()].map((each) => each.done)), pause(GRACE_MS)]);
    await Promise.all([...this.attempts.values()].map((each) => each.handBack()));
    clearInterval(keeping);
    clearInterval(saying);
    await wire.nc.drain();
  }

  private listen(): void {
    const { nc, agent, worker } = this.wire;
    nc.subscribe(`hw.alive.${agent}.held`, {
      queue: worker,
      callback: (_error, msg) => {
        if (msg.reply) msg.respond(JSON.stringify({ name: worker, held: [...this.attempts.keys()] }));
      },
    });
    nc.subscribe(`hw.stop.${agent}.*.*`, {
      callback: (_error, msg) => {
        const body = new TextDecoder().decode(msg.data);
        if (!/^[0-9]{1,9}$/.test(body) || msg.headers?.has("Nats-Stream")) return;
        const [task, step] = msg.subject.split(".").slice(-2);
        for (const each of this.attempts.values()) {
          if (each.command.task === task && each.command.step === step) each.stop(Number(body));
        }
      },
    });
    nc.subscribe(`hw.paced.${agent}`, {
      callback: (_error, msg) => {
        if (msg.data.length === 0 && msg.headers === undefined) this.pacedUntil = Date.now() + PACED_FOR_MS;
      },
    });
  }

  /** Ask for as many commands as can be begun, again and again. */
  private async pull(): Promise<void> {
    while (!this.stopping) {
      const free = SLOTS - this.attempts.size;
      if (free <= 0) {
        await Promise.race([...this.attempts.values()].map((each) => each.done));
        continue;
      }
      try {
        const consumer = await this.wire.js.consumers.get("HW_COMMANDS", this.wire.agent);
        const messages = await consumer.fetch({ max_messages: free, expires: PULL_MS });
        for await (const msg of messages) await this.take(msg);
      } catch {
        await pause(200); // the consumer is still to be made, or the server is away
      }
    }
  }

  private async take(msg: JsMsg): Promise<void> {
    const current = this.attempts.get(msg.subject);
    if (current?.isOf(msg)) return current.adopt(msg);
    if (this.stopping) return msg.nak();
    const body = Buffer.from(msg.data);
    let wrong = complaint(this.key, msg.subject, body);
    if (wrong.startsWith("the signature") && Date.now() - this.keyAskedAt > KEY_AGAIN_MS) {
      await this.learnKeyAgain();
      wrong = complaint(this.key, msg.subject, body);
    }
    if (wrong) return this.refuse(msg, wrong);
    let found: { action: string; command: Command };
    try {
      found = read(msg.subject, body);
    } catch (error) {
      return this.refuse(msg, String(error));
    }
    this.begin(msg, found.action, found.command);
  }

  private begin(msg: JsMsg, action: string, command: Command): void {
    const storedMs = Number(BigInt(msg.info.timestampNanos) / 1_000_000n);
    const first = isFresh(command, msg.info.deliveryCount, storedMs, Date.now()) && !this.begun.has(command.id);
    this.remember(command.id);
    const wanted = !first || Boolean(command.paced) || Date.now() < this.pacedUntil;
    const attempt = new Attempt(this.wire, this.handlers, msg, action, command, { wanted, first });
    this.attempts.set(msg.subject, attempt);
    void attempt.done.then(() => {
      if (this.attempts.get(msg.subject) === attempt) this.attempts.delete(msg.subject);
    });
  }

  private remember(id: string): void {
    this.begun.add(id);
    if (this.begun.size > REMEMBERED_MAX) this.begun.delete(this.begun.values().next().value!);
  }

  /** Take a command out for good, and keep it as a dead letter if that can be had. */
  private async refuse(msg: JsMsg, reason: string): Promise<void> {
    const kept = Buffer.from(msg.data).subarray(0, LETTER_MAX_BYTES);
    const letter = {
      stream: "HW_COMMANDS",
      subject: msg.subject,
      reason,
      at: new Date().toISOString(),
      size: msg.data.length,
      body_base64: kept.toString("base64"),
    };
    try {
      await this.wire.js.publish(`hw.dead.HW_COMMANDS.${this.wire.agent}`, JSON.stringify(letter), { timeout: 2_000 });
    } catch {
      console.error(`${msg.subject}: no dead letter could be stored`);
    }
    msg.term(reason.replaceAll(/\s+/g, " "));
  }

  private async learnKey(): Promise<void> {
    const told = await this.wire.key();
    this.keyAskedAt = Date.now();
    this.key = Buffer.from(told.key, "base64");
    if (told.paced) this.pacedUntil = Date.now() + PACED_FOR_MS;
  }

  private async learnKeyAgain(): Promise<void> {
    this.keyAskedAt = Date.now();
    try {
      this.key = Buffer.from((await this.wire.keyNow()).key, "base64");
    } catch {
      console.error("no coordinator answers for the key");
    }
  }

  private async watchConnection(): Promise<void> {
    for await (const status of this.wire.nc.status()) {
      if (status.type === "reconnect") this.keepAll();
    }
  }

  /** A client that has closed the connection does not open it again: another process does. */
  private async endWithConnection(): Promise<void> {
    const error = await this.wire.nc.closed();
    if (this.stopping) return;
    console.error(`the connection is closed for good: ${error ?? "by the client"}`);
    process.exit(1);
  }

  private keepAll(): void {
    for (const each of this.attempts.values()) each.keep();
  }

  private sayPresence(): void {
    const { agent, worker, serverId } = this.wire;
    this.wire.say(`hw.presence.${agent}`, {
      agent,
      worker,
      actions: Object.keys(this.handlers).sort(),
      host: hostname(),
      pid: process.pid,
      busy: this.attempts.size,
      slots: SLOTS,
      stopping: this.stopping,
      server: serverId,
    });
  }
}
