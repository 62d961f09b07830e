// The page overview.

import { h } from "../dom.js";
import { emptyView } from "../states.js";

export async function page(context) {
  context.title("overview");
  context.view.append(
    h("header", { class: "page-head" }, h("h1", {}, "overview")),
    emptyView({ title: "Nothing yet" }));
}
