// Addresses without fragments: which page module shows what, and going from one to another.
//
// A page module exports `async function page(context)`. It fills context.view and returns; context:
//   view      an empty element for the page; its first heading (h1) takes the focus
//   params    what the route names: { task: "…" }
//   query     URLSearchParams of the address
//   signal    aborted when the page is left: give it to requests, listeners, timers
//   title(t)  the window's title, told to screen readers
//   go(path, { replace })   to another page
//   amend({ name: value | [values] | null }, { replace, state })   another query, kept in the history
//   onQuery   if the page sets it, a query that changed is told to it; else the page is built anew
//   signIn()  asks for a token;  keys({…}) shortcuts, see keys.js

import { h } from "./dom.js";
import { parametersOf } from "./api.js";

const NOT_PAGES = /^\/(api|console|metrics|healthz|readyz|hooks)(\/|$)/;

export class Router {
  #main;
  #routes;
  #extend;
  #leave = new AbortController();
  #context = null;
  #path = "";

  /** `routes`: [[pattern, load]], "/tasks/:task" names a part; `extend(context)` adds to it. */
  constructor(main, routes, extend) {
    this.#main = main;
    this.#routes = routes.map(([pattern, load]) => [matcher(pattern), load]);
    this.#extend = extend;
  }

  /** Heed the address from now on; with `shown`, show its page. */
  start({ shown }) {
    window.addEventListener("popstate", () => this.#arrive({ again: false }));
    document.addEventListener("click", (event) => this.#clicked(event));
    if (shown) this.show({ focus: false });
  }

  go(path, { replace = false, state = {} } = {}) {
    history[replace ? "replaceState" : "pushState"](state, "", path);
    this.#arrive({ again: path === this.#path });
    if (!replace) window.scrollTo(0, 0);
  }

  /** Stop what the page does; what it shows stays until something else is shown. */
  leave() {
    this.#leave.abort(new DOMException("the page was left", "AbortError"));
    this.#leave = new AbortController();
  }

  /** Build the page of the address anew. */
  show({ focus = true } = {}) {
    this.leave();
    this.#path = location.pathname;
    const view = h("div", { class: "page" });
    this.#main.replaceChildren(view);
    const [params, load] = this.#find(location.pathname);
    const context = this.#contextOf(view, params, focus);
    this.#context = context;
    return load()
      .then((module) => !context.signal.aborted && module.page(context))
      .then(() => focus && this.#focus(view))
      .catch((error) => {
        if (!context.signal.aborted) context.failed(error);
      });
  }

  #contextOf(view, params, focus) {
    const router = this;
    return this.#extend({
      view,
      params,
      signal: this.#leave.signal,
      query: new URLSearchParams(location.search),
      onQuery: null,
      focus,
      go: (path, options) => router.go(path, options),
      amend(changes, options) {
        router.go(location.pathname + amended(location.search, changes), options);
      },
    });
  }

  #arrive({ again }) {
    const context = this.#context;
    if (context?.onQuery && location.pathname === this.#path && !again) {
      context.query = new URLSearchParams(location.search);
      context.onQuery(context.query);
    } else this.show();
  }

  #find(path) {
    for (const [match, load] of this.#routes) {
      const params = match(path);
      if (params) return [params, load];
    }
    throw new Error("the last route takes every path");
  }

  #focus(view) {
    const heading = view.querySelector("h1");
    if (!heading || !view.isConnected) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }

  #clicked(event) {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (NOT_PAGES.test(link.pathname) || link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }
}

function matcher(pattern) {
  const names = [];
  const expression = pattern.replace(/:(\w+)/g, (_, name) => {
    names.push(name);
    return "([^/]+)";
  });
  const compiled = new RegExp(`^${expression}/?$`);
  return (path) => {
    const found = compiled.exec(path);
    return found && Object.fromEntries(names.map((name, n) => [name, decodeURIComponent(found[n + 1])]));
  };
}

function amended(search, changes) {
  const query = new URLSearchParams(search);
  for (const name of Object.keys(changes)) query.delete(name);
  for (const [name, value] of parametersOf(changes)) query.append(name, value);
  const text = query.toString();
  return text && `?${text}`;
}
