// What stands around every page: the way to the others, whether it is live, colours, help.
//
// A page needs none of this; what it may use comes in its context (see router.js).

import { announcer } from "./announce.js";
import * as auth from "./auth.js";
import { connection } from "./connection.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { liveness } from "./live.js";
import { PLACES } from "./routes.js";
import { themeButton } from "./theme.js";
import { compact } from "./format.js";

const LIVENESS = { idle: "", live: "Live", connecting: "Connecting", polling: "Polling" };

export class Shell {
  main = h("main", { id: "main", tabindex: "-1" });
  #links = new Map();
  #badges = new Map();

  constructor(keys) {
    this.nav = h("nav", { id: "places", class: "places", "aria-label": "Pages" },
      h("ul", {}, PLACES.map(([path, name, drawing]) => this.#place(path, name, drawing))));
    this.menu = h("button", {
      class: "button-quiet menu", type: "button", "aria-expanded": "false",
      "aria-controls": "places", "aria-label": "Menu", onclick: () => this.#openMenu(),
    }, icon("menu"));
    const help = h("button", {
      class: "button-quiet", type: "button", "aria-label": "Keyboard shortcuts",
      title: "Keyboard shortcuts (?)", onclick: () => keys.help(),
    }, "?");
    const out = h("button", {
      class: "button-quiet needs-token", type: "button", "aria-label": "Sign out", title: "Sign out",
      onclick: () => auth.forget(),
    }, icon("out"));
    this.who = h("p", { class: "who needs-token", "aria-label": "Signed in as", role: "group", hidden: true });
    this.tools = h("div", { class: "tools" }, livenessMark(), themeButton(), help, out);
    document.body.append(
      h("a", { class: "skip", href: "#main", onclick: (event) => this.#skip(event) }, "Skip to content"),
      h("header", { class: "bar" },
        h("a", { class: "brand", href: "/" }, brandMark(), "Headway"), this.menu, this.nav, this.who, this.tools),
      this.main,
      connectionNote(),
      ...announcer());
  }

  /** Show which place the address belongs to. */
  arrived(path) {
    this.nav.classList.remove("is-open");
    this.menu.setAttribute("aria-expanded", "false");
    for (const [place, link] of this.#links) {
      const here = place === "/" ? path === "/" : path === place || path.startsWith(`${place}/`);
      if (here) link.setAttribute("aria-current", path === place ? "page" : "true");
      else link.removeAttribute("aria-current");
    }
  }

  /** Whether there is a token; without one there is nothing to sign out of, and nothing is live. */
  signedIn(yes) {
    document.body.classList.toggle("signed-out", !yes);
  }

  /** Who the token is taken for, and which places that one may see. */
  knows(person, may) {
    fill(this.who, person && [
      h("b", { title: person.name }, person.name), h("span", { class: "tag" }, person.role || "no role")]);
    this.who.hidden = person === null;
    for (const [path, , , , operation] of PLACES) this.#links.get(path).parentElement.hidden = !may(operation);
  }

  /** A number beside a place; 0 hides it. */
  badge(path, number, words) {
    const badge = this.#badges.get(path);
    if (badge.dataset.number === String(number)) return;
    badge.dataset.number = String(number);
    fill(badge, number ? compact(number) : "", number ? h("span", { class: "hidden" }, ` ${words}`) : "");
  }

  #place(path, name, drawing) {
    const badge = h("span", { class: "badge" });
    const link = h("a", { href: path }, icon(drawing), h("span", {}, name), badge);
    this.#links.set(path, link);
    this.#badges.set(path, badge);
    return h("li", {}, link);
  }

  #openMenu() {
    const open = this.nav.classList.toggle("is-open");
    this.menu.setAttribute("aria-expanded", String(open));
    if (open) this.nav.querySelector("a").focus();
  }

  #skip(event) {
    event.preventDefault();
    this.main.focus();
  }
}

function brandMark() {
  const mark = icon("brand");
  mark.classList.add("brand-mark");
  return mark;
}

function livenessMark() {
  const mark = h("span", { class: "liveness needs-token", role: "status" });
  const show = () => {
    mark.dataset.state = connection.problem ? "lost" : liveness.state;
    const word = connection.problem ? "Not current" : LIVENESS[liveness.state];
    fill(mark, word && [h("span", { class: "liveness-dot" }), h("span", { class: "liveness-word" }, word)]);
    mark.title = word;
  };
  liveness.addEventListener("change", show);
  connection.addEventListener("change", show);
  show();
  return mark;
}

function connectionNote() {
  const note = h("div", { class: "connection", role: "status" });
  const show = () => {
    const failing = connection.problem;
    note.hidden = failing === null;
    if (failing === null) return;
    const { problem } = failing;
    fill(note, icon("alert"), h("p", {},
      h("b", {}, `${problem.title}. `), "What you see is what was known before. Trying again …"));
  };
  connection.addEventListener("change", show);
  note.hidden = true;
  return note;
}
