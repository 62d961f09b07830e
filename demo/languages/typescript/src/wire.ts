// What an agent sends and asks for over NATS, again and again until it is confirmed or answered.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { jetstream, JetStreamApiError, type JetStreamClient } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator, type NatsConnection } from "@nats-io/transport-node";
import { type ClaimReply, type Command, INLINE_MAX_BYTES, PayloadLost } from "./contract.js";
import { pause } from "./attempt.js";

const ASK_TIMEOUT_MS = 2_000;
const STORE_TIMEOUT_MS = 5_000;
const PING_EVERY_MS = 5_000; // two without an answer: the line is dead
const PAUSE_FIRST_MS = 50;
const PAUSE_MAX_MS = 1_000;
const PART_BYTES = 262_144;
const PART_IS_THERE = 10077;
const ABSENT_FOR_MS = 1_000;
const TURNS_MAX = 8;
const LATE_MAX_MS = 200;

export interface ClaimRequest extends Pick<Command, "task" | "step" | "phase" | "attempt" | "epoch"> {
  delivery: number;
  worker: string;
  first: boolean;
}

interface Key {
  key: string;
  paced?: boolean;
}

export class Wire {
  readonly worker = `${hostname().replaceAll(/[^A-Za-z0-9]/g, "-").slice(0, 32)}-${process.pid}-${Date.now().toString(36)}`;
  readonly js: JetStreamClient;
  private askAgain: () => void = () => {};
  private comesAgain!: Promise<void>;

  private constructor(
    readonly nc: NatsConnection,
    readonly agent: string,
  ) {
    this.js = jetstream(nc);
    this.renew();
    nc.subscribe("hw.coordinators", {
      callback: (_error, msg) => {
        if (msg.data.length === 0 && msg.headers === undefined) this.renew();
      },
    });
  }

  /** As HEADWAY_NATS_URL and HEADWAY_CREDS say; `agent` is needed if there are no credentials. */
  static async open(agent: string): Promise<Wire> {
    const creds = process.env["HEADWAY_CREDS"];
    const servers = (process.env["HEADWAY_NATS_URL"] ?? "nats://localhost:4222").split(",");
    const usual = { name: `agent ${agent}`, maxReconnectAttempts: -1, reconnectTimeWait: 100, waitOnFirstConnect: true, ignoreAuthErrorAbort: true, pingInterval: PING_EVERY_MS, maxPingOut: 2 };
    if (!creds) return new Wire(await connect({ ...usual, ...withPassword(servers) }), agent);
    const text = readFileSync(creds, "utf8");
    const named = /^# agent: (\S+)$/m.exec(text)?.[1];
    const seed = /^SU[A-Z2-7]+$/m.exec(text)?.[0];
    if (named !== agent || seed === undefined) throw new Error(`${creds} has no credentials of ${agent}`);
    const authenticator = nkeyAuthenticator(new TextEncoder().encode(seed));
    const inboxPrefix = `_INBOX_${agent}`;
    return new Wire(await connect({ ...usual, servers, authenticator, inboxPrefix }), agent);
  }

  get serverId(): string {
    return this.nc.info?.server_id ?? "";
  }

  /** Publish and forget, as core NATS does. */
  say(subject: string, value: unknown): void {
    if (!this.nc.isClosed()) this.nc.publish(subject, JSON.stringify(value));
  }

  /** Have it stored, however long that takes. */
  async store(subject: string, value: unknown): Promise<void> {
    const body = JSON.stringify(value);
    await this.patiently(async () => {
      await this.js.publish(subject, body, { timeout: STORE_TIMEOUT_MS, retries: 1 });
    });
  }

  async key(): Promise<Key> {
    return this.patiently(() => this.keyNow());
  }

  async keyNow(): Promise<Key> {
    return (await this.ask("key", {})) as Key;
  }

  /** The answer to a claim, once it is one's turn. */
  async claim(request: ClaimRequest): Promise<ClaimReply> {
    for (let left = TURNS_MAX; ; left -= 1) {
      const asked = Date.now();
      const reply = await this.patiently(async () => (await this.ask("claim", request)) as ClaimReply);
      const wait = (reply.start_in_ms || reply.again_in_ms) ?? 0;
      if (wait > 0) await pause(wait);
      const tooLate = Boolean(reply.paced) && Date.now() - asked - wait > LATE_MAX_MS && left > 0;
      if (!reply.granted || !(reply.again_in_ms || tooLate)) return reply;
    }
  }

  /** The event, with its data in the payload store if it is too large. */
  async fitting(task: string, event: Record<string, unknown>): Promise<Record<string, unknown>> {
    if (Buffer.byteLength(JSON.stringify(event)) <= INLINE_MAX_BYTES) return event;
    const { data, ...rest } = event;
    const body = Buffer.from(JSON.stringify(data));
    const datadigest = sha256(body);
    const dataref = await this.patiently(() => this.putPayload(task, body, datadigest));
    return { ...rest, dataref, datadigest };
  }

  /** The bytes of a reference; PayloadLost if they are not there, or not what was sent. */
  async getPayload(reference: string, digest: string): Promise<Buffer> {
    const parts = Number(reference.split(".").at(-1));
    if (!reference.startsWith("hw.payloads.") || !(parts > 0)) throw new PayloadLost("not a reference");
    const bytes: Buffer[] = [];
    for (let part = 0; part < parts; part += 1) bytes.push(await this.getPart(`${reference}.${part}`));
    const body = Buffer.concat(bytes);
    if (sha256(body) !== digest) throw new PayloadLost(`${reference} is not what was sent`);
    return body;
  }

  private async putPayload(task: string, body: Buffer, digest: string): Promise<string> {
    const parts = Math.max(1, Math.ceil(body.length / PART_BYTES));
    const reference = `hw.payloads.by.${this.agent}.${task}.${digest}.${parts}`;
    let wasThere = false;
    for (let part = 0; part < parts; part += 1) {
      const bytes = body.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
      try {
        await this.js.publish(`${reference}.${part}`, bytes, { timeout: STORE_TIMEOUT_MS, retries: 1 });
      } catch (error) {
        if (!(error instanceof JetStreamApiError) || error.code !== PART_IS_THERE) throw error;
        wasThere = true;
      }
    }
    if (wasThere) await this.getPayload(reference, digest);
    return reference;
  }

  private async getPart(subject: string): Promise<Buffer> {
    const until = Date.now() + ABSENT_FOR_MS;
    for (;;) {
      const msg = await this.patiently(() =>
        this.nc.request(`$JS.API.DIRECT.GET.HW_PAYLOADS.${subject}`, "", { timeout: STORE_TIMEOUT_MS }),
      );
      const status = msg.headers?.code ?? 0;
      if (status === 0) return Buffer.from(msg.data);
      if (status === 404 && Date.now() > until) throw new PayloadLost(`${subject} is not there`);
      await pause(PAUSE_FIRST_MS);
    }
  }

  /** One question; throws whatever means that nobody knows yet. */
  private async ask(operation: string, request: unknown): Promise<unknown> {
    const subject = `hw.agents.${this.agent}.${operation}`;
    const msg = await this.nc.request(subject, JSON.stringify(request), { timeout: ASK_TIMEOUT_MS });
    const code = Number(msg.headers?.get("Nats-Service-Error-Code") || 0);
    if (code === 0) return JSON.parse(new TextDecoder().decode(msg.data));
    const reason = msg.headers?.get("Nats-Service-Error") ?? "";
    if (code < 500 && operation === "claim") return { granted: false, reason };
    throw new Error(`${operation} is refused (${code}): ${reason}`);
  }

  /** Try again, with growing pauses, until it works; PayloadLost is final. */
  private async patiently<T>(once: () => Promise<T>): Promise<T> {
    for (let wait = PAUSE_FIRST_MS; ; wait = Math.min(2 * wait, PAUSE_MAX_MS)) {
      try {
        return await once();
      } catch (error) {
        if (error instanceof PayloadLost || this.nc.isClosed()) throw error;
        await Promise.race([pause(wait), this.comesAgain]);
      }
    }
  }

  private renew(): void {
    this.askAgain();
    this.comesAgain = new Promise((resolve) => (this.askAgain = resolve));
  }
}

function withPassword(servers: string[]): { servers: string[]; user?: string; pass?: string } {
  const first = new URL(servers[0]!);
  const bare = servers.map((server) => new URL(server).host);
  if (!first.username) return { servers: bare };
  return { servers: bare, user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) };
}

function sha256(body: Buffer): string {
  return createHash("sha256").update(body).digest("hex");
}
