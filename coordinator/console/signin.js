// The view that asks for a token. It is shown when there is none, or when it is not good.

import * as auth from "./auth.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

export function signInView(problem) {
  const field = h("input", {
    id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false",
    required: true, placeholder: "hw_…", "aria-describedby": problem ? "token-problem" : null,
    "aria-invalid": problem ? "true" : null,
  });
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) auth.keep(field.value);
  };
  return h("section", { class: "sign-in" },
    icon("key"),
    h("h1", {}, "Sign in"),
    h("p", {}, "On the machine where Headway runs, this prints an address that signs you in:"),
    h("pre", { class: "command" }, h("code", {}, "headway console")),
    h("p", {}, "Or paste an API token. It is kept in this tab only."),
    h("form", { class: "sign-in-form", onsubmit: submit },
      h("label", { for: "token" }, "Token"),
      h("div", { class: "sign-in-row" }, field,
        h("button", { class: "button button-main", type: "submit" }, "Sign in")),
      problem && h("p", { id: "token-problem", class: "problem-text", role: "alert" },
        problem.detail || problem.title)));
}
