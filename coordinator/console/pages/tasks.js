// The page tasks.

import { h } from "../dom.js";
import { emptyView } from "../states.js";

export async function page(context) {
  context.title("tasks");
  context.view.append(
    h("header", { class: "page-head" }, h("h1", {}, "tasks")),
    emptyView({ title: "Nothing yet" }));
}
