// The fields that an act's dialog has beside its note.
//
//   await fieldsOf(act, { task, timeline, definition, step }, { read, signal }) -> { elements, values(), body() }
//     values()   what was filled in, by name, for the words on what will happen
//     body()     the fields of the request; an Error says which of them cannot be sent

import { h } from "./dom.js";

const STUCK = new Set(["failed", "unknown", "failed_to_compensate"]);

export async function fieldsOf(act, facts, { read, signal }) {
  const make = { retry, settle, approve: approval, reject: approval, signal: signalFields, move, fork }[act];
  const { elements = [], body = () => ({}) } = make ? await make(facts, { read, signal }) : {};
  const named = elements.flatMap((element) => [...element.querySelectorAll("[name]")]);
  return {
    elements,
    body,
    values: () => Object.fromEntries(named.filter((each) => each.type !== "radio" || each.checked).map((each) => [each.name, each.value])),
  };
}

function retry({ task, step }) {
  const stuck = task.steps.filter((each) => STUCK.has(each.status)).map((each) => each.name);
  const all = stuck.length > 1 ? [["", "Every stuck step"]] : [];
  const field = select("step", "Step", [...all, ...(stuck.length ? stuck : [""]).map((name) => [name, name || "What it is held for"])], step);
  return { elements: [field.element], body: () => ({ step: field.value() || null }) };
}

function settle({ task, step }) {
  const stuck = task.steps.filter((each) => STUCK.has(each.status) || each.next_attempt_at).map((each) => [each.name, each.name]);
  const which = select("step", "Step", stuck, step);
  const outcome = radios("outcome", "What really happened?", [
    ["happened", "It happened: the action took effect, or the undoing is done"],
    ["did_not_happen", "It did not happen: nothing was left behind"],
  ]);
  const result = json("result", "Result, as JSON", "Of an action that happened; later steps get it.");
  return {
    elements: [which.element, outcome.element, result.element],
    body: () => ({ step: which.value(), outcome: outcome.value(), ...result.body() }),
  };
}

function approval({ task, step }) {
  const waiting = task.steps.filter((each) => each.kind === "approval" && each.status === "scheduled");
  const which = select("step", "Step", waiting.map(({ name }) => [name, name]), step);
  return { elements: [which.element], body: () => ({ step: which.value() }) };
}

function signalFields({ task, definition, step }) {
  const declared = new Map((definition?.steps ?? []).map((each) => [each.name, each]));
  const waits = task.steps.filter((each) => each.kind === "wait")
    .map((each) => declared.get(each.name)?.signal || each.name);
  const suggested = step ? declared.get(step)?.signal || step : waits[0] ?? "";
  const name = text("name", "Name", { value: suggested, required: true, list: waits });
  const id = text("id", "Id", { value: crypto.randomUUID(), required: true, note: "One with an id that came before changes nothing." });
  const payload = json("payload", "Payload, as JSON", "What the step that waits gets as its result.");
  return {
    elements: [name.element, id.element, payload.element],
    body: () => ({ name: name.value(), id: id.value(), ...payload.body() }),
  };
}

async function move({ task }, { read, signal }) {
  const { sagas } = await read("saga.list", {}, { signal });
  const versions = sagas.filter((saga) => saga.name === task.saga && saga.version !== task.saga_version)
    .map((saga) => [String(saga.version), `Version ${saga.version}`]).reverse();
  if (!versions.length) {
    const none = h("p", { class: "muted" }, `There is no other version of ${task.saga}: register one first.`);
    return { elements: [none], body: () => { throw new Error("There is no version to move to."); } };
  }
  const to = select("to", "To", versions);
  const dry = h("label", { class: "check" }, h("input", { type: "checkbox", name: "dry" }), "Only find out whether it fits");
  return {
    elements: [to.element, dry],
    body: () => ({ to: Number(to.value()), dry_run: dry.firstChild.checked }),
  };
}

function fork({ timeline, step }) {
  const stuck = timeline.steps.find((each) => STUCK.has(each.status));
  const from = select("step", "From", timeline.steps.map(({ name }) => [name, name]), step ?? stuck?.name);
  const id = text("new_task", "Id of the new task (optional)", { pattern: "[0-9a-fA-F-]{32,36}", note: "Asking again with the same one is harmless." });
  return {
    elements: [from.element, id.element],
    body: () => ({ step: from.value(), new_task: id.value() || crypto.randomUUID() }),
  };
}

function select(name, label, options, chosen) {
  const field = h("select", { name, required: true }, options.map(([value, words]) =>
    h("option", { value, selected: value === chosen }, words)));
  return { element: h("label", { class: "field" }, h("span", {}, label), field), value: () => field.value };
}

function radios(name, label, options) {
  const element = h("fieldset", { class: "radios" }, h("legend", {}, label), options.map(([value, words]) =>
    h("label", {}, h("input", { type: "radio", name, value, required: true }), h("span", {}, words))));
  return { element, value: () => element.querySelector(":checked")?.value };
}

function text(name, label, { value = "", required = false, pattern = null, note = "", list = [] }) {
  const id = `values-of-${name}`;
  const field = h("input", { name, value, required, pattern, autocomplete: "off", list: list.length ? id : null });
  const element = noted(label, field, note);
  if (list.length) element.append(h("datalist", { id }, list.map((each) => h("option", { value: each }))));
  return { element, value: () => field.value.trim() };
}

/** A field for a value as JSON; left empty, it is not sent. */
function json(name, label, note) {
  const field = h("textarea", { name, rows: 3, class: "code", spellcheck: "false" });
  const body = () => {
    if (!field.value.trim()) return {};
    try {
      return { [name]: JSON.parse(field.value) };
    } catch (error) {
      throw new Error(`${label}: ${error.message}. Put a text in double quotes.`);
    }
  };
  return { element: noted(label, field, note), body };
}

/** A field with its label, and a note that belongs to it without being its name. */
function noted(label, field, note) {
  const id = `field-${field.name}`;
  field.id = id;
  if (note) field.setAttribute("aria-describedby", `${id}-note`);
  return h("div", { class: "field" }, h("label", { class: "field-name", for: id }, label), field,
    note && h("span", { class: "field-note", id: `${id}-note` }, note));
}
