// Light or dark: as the system has it, until somebody chooses.
//
// A page needs none of this; colours come from the custom properties in theme.css.

import { h, fill } from "./dom.js";
import { icon } from "./icons.js";

const KEY = "headway.theme";
const ORDER = ["system", "light", "dark"];

export function applyTheme() {
  const chosen = current();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function themeButton() {
  const button = h("button", { class: "button-quiet", type: "button", onclick: turn });
  const show = () => {
    button.setAttribute("aria-label", `Colours: ${current()}`);
    button.title = `Colours: ${current()}`;
    fill(button, icon(current()));
  };
  function turn() {
    const next = ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length];
    localStorage.setItem(KEY, next);
    applyTheme();
    show();
  }
  show();
  return button;
}

function current() {
  const kept = localStorage.getItem(KEY);
  return ORDER.includes(kept) ? kept : "system";
}
