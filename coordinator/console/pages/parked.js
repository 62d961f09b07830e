// The page parked.

import { h } from "../dom.js";
import { emptyView } from "../states.js";

export async function page(context) {
  context.title("parked");
  context.view.append(
    h("header", { class: "page-head" }, h("h1", {}, "parked")),
    emptyView({ title: "Nothing yet" }));
}
