// The agent `flights` of the travel demo: books a flight, and cancels it.

import type { Context, Handlers } from "./attempt.js";
import { EMPTY, InvalidInput, Reject } from "./contract.js";
import { CONFORMING, members } from "./conforming.js";

const BOOKINGS = process.env["HEADWAY_DEMO_BOOKINGS"] ?? "";

async function book(ctx: Context): Promise<unknown> {
  const { traveller, to } = members(ctx.input);
  if (typeof traveller !== "string" || typeof to !== "string") {
    throw new InvalidInput("traveller and to: texts are wanted");
  }
  if (to === "the moon") throw new Reject("nobody flies to the moon");
  const body = JSON.stringify({ kind: "flight", trip: ctx.task });
  const answer = await fetch(`${BOOKINGS}/${ctx.operationId}`, { method: "PUT", body, signal: ctx.signal });
  if (answer.status === 409) throw new Reject("this flight was cancelled before it was booked");
  if (!answer.ok) throw new Error(`the bookings answer ${answer.status}`);
  return { flight: ((await answer.json()) as { number: number }).number, to };
}

async function cancel(ctx: Context): Promise<unknown> {
  const answer = await fetch(`${BOOKINGS}/${ctx.actionOperationId}`, { method: "DELETE", signal: ctx.signal });
  if (!answer.ok) throw new Error(`the bookings answer ${answer.status}`);
  return ((await answer.json()) as { cancelled: boolean }).cancelled ? null : EMPTY;
}

export const FLIGHTS: Handlers = {
  ...CONFORMING,
  book: { phase: "action", run: book },
  cancel: { phase: "compensation", run: cancel },
};
