// An address that no page has.

import { h } from "../dom.js";
import { emptyView } from "../states.js";

export async function page(context) {
  context.title("Not found");
  context.view.append(
    h("header", { class: "page-head" }, h("h1", {}, "Not found")),
    emptyView({
      title: "No page has this address",
      text: location.pathname,
      action: h("a", { class: "button", href: "/" }, "To the overview"),
    }));
}
