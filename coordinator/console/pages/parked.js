// Parked: the queue of all that waits for a person, with reasons, ages and the acts that are open.

import { ACTS } from "../act_words.js";
import { read } from "../api.js";
import { fill, h } from "../dom.js";
import { age, idText } from "../format.js";
import { fresh } from "../fresh.js";
import { icon } from "../icons.js";
import { lookOnly } from "../me.js";
import { emptyView, skeleton } from "../states.js";
import { actOn, openActsOn } from "../waiting_acts.js";

const PAGE = 50;
const KINDS = {
  parked: ["parked", "Parked", "status-parked"],
  failed_to_compensate: ["failed_to_compensate", "Failed to compensate", "status-failed_to_compensate"],
  approval: ["approve", "Approval of a step", "status-running"],
  gate: ["key", "Approval of a call", "status-running"],
  unsettled: ["unknown", "Unknown outcome", "status-unknown"],
};

export async function page(context) {
  context.title("Parked");
  new Parked(context).start();
}

class Parked {
  #items = new Map(); // key -> { element, text }
  #next = null;

  constructor(context) {
    this.context = context;
    this.saga = h("select", { name: "saga", onchange: () => context.amend({ saga: this.saga.value, cursor: null }) });
    this.list = h("ul", { class: "queue" });
    this.foot = h("nav", { class: "pager", "aria-label": "Pages of the queue" });
    this.empty = h("div", {}, skeleton(8));
    this.content = h("section", { class: "panel", "aria-label": "What waits for a person" },
      this.empty, this.list, this.foot);
  }

  start() {
    const { context } = this;
    context.view.append(
      h("header", { class: "page-head" }, h("h1", {}, "Parked"),
        h("label", { class: "inline-field" }, h("span", {}, "Saga"), this.saga)),
      lookOnly("approve", "retry", "settle", "resume", "cancel") ?? "", this.content);
    context.keys({
      j: ["Next in the queue", () => this.#step(1)],
      k: ["Previous in the queue", () => this.#step(-1)],
    });
    this.foot.hidden = true;
    this.#offerSagas();
    this.queue = fresh(context, {
      load: (signal) => read("parked", {
        saga: context.query.get("saga"), cursor: context.query.get("cursor"), limit: PAGE,
      }, { signal }),
      draw: (answer) => this.#draw(answer),
      content: this.content,
    });
  }

  async #offerSagas() {
    const chosen = this.context.query.get("saga") ?? "";
    const show = (names) => {
      fill(this.saga, h("option", { value: "" }, "Any saga"), names.map((name) => h("option", { value: name }, name)));
      this.saga.value = chosen;
    };
    show(chosen ? [chosen] : []);
    const answer = await read("saga.list", {}, { signal: this.context.signal }).catch(() => null);
    if (answer) show([...new Set([chosen, ...answer.sagas.map(({ name }) => name)])].filter(Boolean).sort());
  }

  #draw({ waiting, cursor }) {
    const before = this.#items;
    this.#items = new Map(waiting.map((each) => {
      const key = [each.task, each.kind, each.step, each.invocation].join("/");
      const text = JSON.stringify(each);
      const known = before.get(key);
      return [key, known?.text === text ? known : { element: this.#item(each), text }];
    }));
    const wanted = [...this.#items.values()].map(({ element }) => element);
    if (wanted.length !== this.list.children.length || wanted.some((each, n) => each !== this.list.children[n])) {
      fill(this.list, wanted);
    }
    const filtered = this.context.query.get("saga") || this.context.query.get("cursor");
    fill(this.empty, waiting.length ? null : nothing(filtered));
    this.#next = cursor;
    this.#drawFoot(waiting.length);
  }

  #item(waiting) {
    const [drawing, words, kind] = KINDS[waiting.kind];
    const title = [waiting.saga, waiting.step].filter(Boolean).join(" / ");
    return h("li", { class: "queue-item" },
      h("div", { class: "queue-mark" },
        h("span", { class: `status ${kind}` }, icon(drawing), words),
        h("span", { class: "muted" }, age(waiting.since))),
      h("div", { class: "queue-words" },
        h("h2", {}, h("a", { class: "queue-link", href: `/tasks/${waiting.task}` }, title)),
        h("p", { class: "queue-reason" }, waiting.reason || "No reason was given."),
        h("p", { class: "queue-id muted" }, idText(waiting.task), waiting.tool && h("span", { class: "tag" }, `tool ${waiting.tool}`)),
        waiting.details !== null && details(waiting)),
      h("div", { class: "button-row queue-acts", role: "group", "aria-label": `Acts on ${title}` },
        openActsOn(waiting).map((word) => this.#button(word, waiting))));
  }

  #button(word, waiting) {
    const { label, icon: drawing, danger } = ACTS[word];
    return h("button", {
      class: `button button-small${danger ? " button-danger" : ""}`, type: "button",
      onclick: async () => {
        if (await actOn(word, waiting, this.context)) this.queue.reload();
      },
    }, icon(drawing), label);
  }

  #drawFoot(rows) {
    const cursor = this.context.query.get("cursor");
    this.foot.hidden = !cursor && !this.#next;
    const button = (words, on, act) => h("button", {
      class: "button button-small", type: "button", disabled: !on, onclick: act,
    }, words);
    fill(this.foot, h("span", {}, rows ? `${rows} on this page, newest first` : ""),
      button("Newest", cursor, () => this.context.amend({ cursor: null })),
      button("Older", this.#next, () => this.context.amend({ cursor: this.#next })));
  }

  #step(by) {
    const links = [...this.list.querySelectorAll(".queue-link")];
    const item = document.activeElement.closest?.(".queue-item");
    const at = links.findIndex((link) => item?.contains(link));
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }
}

function details({ details: value, kind }) {
  return h("details", { class: "queue-details", open: kind === "gate" },
    h("summary", {}, "Arguments"), h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
}

function nothing(filtered) {
  if (filtered) {
    return emptyView({
      title: "Nothing waits here", text: "Of this saga, or on this page, nothing waits for a person.",
      action: h("a", { class: "button", href: "/parked" }, "The whole queue"),
    });
  }
  return emptyView({
    title: "Nothing waits for a person",
    text: "Tasks that cannot go on by themselves come here, with the reason and what can be done.",
  });
}
