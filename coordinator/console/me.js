// Who the token is taken for, and what it may ask for: asked once for each token.
//
//   await known()          asks, if that is not known yet; what cannot be known is left open
//   may("batch")           whether that operation may be asked for; yes, while nobody knows
//   person()               { name, role, operations }, or null
//   onKnown(listener)      told when it is known, or another one
//   lookOnly(...operations)   why none of these may be asked for, as an element; else null
//
// What may not be asked for is not offered; the coordinator refuses it all the same.

import { read } from "./api.js";
import * as auth from "./auth.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

const changes = new EventTarget();
let of = "";
let asked = null;
let me = null;

export function known() {
  if (of !== auth.token()) {
    of = auth.token();
    asked = null;
    tell(null);
  }
  asked ??= ask(of);
  return asked;
}

async function ask(token) {
  try {
    const answer = token ? await read("whoami") : null;
    if (of === token) tell(answer);
  } catch (error) {
    console.warn(error.message);
    if (of === token) asked = null;
  }
}

function tell(answer) {
  me = answer;
  changes.dispatchEvent(new Event("change"));
}

export function person() {
  return me;
}

export function may(operation) {
  return me === null || me.operations.includes(operation);
}

export function onKnown(listener) {
  changes.addEventListener("change", listener);
}

export function lookOnly(...operations) {
  if (operations.some(may)) return null;
  return h("p", { class: "look-only muted" }, icon("key"),
    `${me.name} has role ${me.role}, which may look at this but not act on it.`);
}
