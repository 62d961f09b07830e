// What a role may not see: its digest and size stand where the value would.

import { h } from "./dom.js";

export function isMasked(value) {
  return value !== null && typeof value === "object" && typeof value.sha256 === "string"
    && typeof value.bytes === "number" && Object.keys(value).length === 2;
}

export function maskedView({ sha256, bytes }) {
  return h("p", { class: "masked" }, `Not shown to this token's role: ${bytes} bytes, SHA-256 `,
    h("code", { title: sha256 }, sha256.slice(0, 12)), "…");
}
