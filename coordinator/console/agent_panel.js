// One agent: its numbers, its breaker, and its instances.
//
//   const part = agentPanel("payments", ask);   ask("pause" | "resume", agent)
//   part.element;  part.update(agent, limit)    an AgentView, and the limit declared for it, if any

import { panel, whenChanged } from "./controls.js";
import { fill, h } from "./dom.js";
import { age, count, when } from "./format.js";
import { icon } from "./icons.js";
import { may } from "./me.js";
import { table } from "./table.js";

const BREAKERS = {
  closed: ["completed", "Gets all"],
  open: ["failed", "Breaker open"],
  probing: ["unknown", "Probed"],
  paused: ["parked", "Paused"],
};

export function agentPanel(name, ask) {
  const state = h("span", {});
  const button = h("span", {});
  const told = h("div", {});
  const numbers = h("div", { class: "panel-body" });
  const list = instances(name);
  const none = h("p", { class: "panel-body muted" }, "No instance is connected: what is due for it waits.");
  const box = panel({ title: name, id: `agent-${name}`, tools: [state, button], content: [told, numbers, list.element, none] });
  const showState = whenChanged(([breaker]) => {
    const paused = breaker.state === "paused" || breaker.state === "open" || breaker.state === "probing";
    const [outline, words] = BREAKERS[breaker.state];
    fill(state, h("span", { class: `status status-${outline}` }, icon(outline), words));
    fill(told, breaker.state !== "closed" && breakerNote(breaker));
    const what = paused ? "resume" : "pause";
    fill(button, may(`agents.${what}`) && h("button", { class: "button button-small", type: "button", onclick: () => ask(what, name) },
      icon(paused ? "resume" : "parked"), paused ? "Resume" : "Pause", h("span", { class: "hidden" }, ` ${name}`)));
  });
  const showNumbers = whenChanged(([agent, limit]) => fill(numbers, numbersOf(agent, limit)));
  return {
    element: box.element,
    update(agent, limit) {
      showState([agent.breaker ?? { state: "closed" }]);
      showNumbers([{ ...agent, instances: agent.instances.map(({ busy, slots }) => ({ busy, slots })) }, limit]);
      const usual = commonest(agent.instances.map((each) => each.config));
      list.update(agent.instances.map((each) => ({ ...each, differs: each.config !== usual })));
      list.element.hidden = !agent.instances.length;
      none.hidden = agent.instances.length > 0;
    },
  };
}

function breakerNote({ state, since, until, reason, by }) {
  const words = {
    open: "It is given nothing for a while, since its attempts keep failing.",
    probing: "It is given one command at a time, until one succeeds.",
    paused: `It is given nothing until a person resumes it${by ? `; paused by ${by}` : ""}.`,
  };
  return h("div", { class: "panel-body stack" }, h("div", { class: "reason" }, icon("alert"), h("div", {},
    h("p", {}, words[state], reason && ` ${reason}.`),
    h("p", {}, "Since ", age(since), until && [", to be probed at ", when(until)]))));
}

function numbersOf(agent, limit) {
  const busy = agent.instances.reduce((sum, each) => sum + each.busy, 0);
  const slots = agent.instances.reduce((sum, each) => sum + each.slots, 0);
  const pairs = [
    ["Instances", count(agent.instances.length)],
    ["Busy", `${count(busy)} of ${count(slots)}`],
    ["In flight", count(agent.in_flight)],
    ["Queued", count(agent.queued)],
    ["Wait for their turn", count(agent.waiting)],
    ["Attempts, last minute", count(agent.ended ?? 0)],
    ["Failed of them", `${count(agent.failed ?? 0)}${agent.ended ? ` (${Math.round((100 * agent.failed) / agent.ended)} %)` : ""}`],
    ["Limit", limit ? limitText(limit) : "none"],
  ];
  return h("dl", { class: "agent-numbers" }, pairs.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))));
}

function limitText({ rate, concurrency }) {
  const parts = [];
  if (rate) parts.push(rate >= 1 ? `${Number(rate.toPrecision(4))}/s` : `${Number((rate * 60).toPrecision(4))}/min`);
  if (concurrency) parts.push(`${concurrency} at a time`);
  return parts.join(", ");
}

function instances(name) {
  return table({
    caption: `Instances of ${name}`,
    keyOf: (each) => each.worker,
    columns: [
      { label: "Instance", cell: (each) => h("span", { class: "mono" }, each.worker) },
      { label: "Version", cell: (each) => each.sdk || h("span", { class: "muted" }, "not told") },
      { label: "Configuration", cell: (each) => (each.config
        ? h("span", {}, h("code", { title: each.config }, each.config.slice(0, 10)), each.differs && h("span", { class: "tag tag-differs" }, "differs"))
        : h("span", { class: "muted" }, "not told")) },
      { label: "Busy", class: "number", cell: (each) => `${each.busy} of ${each.slots}` },
      { label: "Last minute", class: "number", cell: (each) => `${count(each.ended ?? 0)}${each.failed ? `, ${count(each.failed)} failed` : ""}` },
      { label: "Started", class: "quiet", cell: (each) => age(each.started_at) },
      { label: "Host", class: "quiet", cell: (each) => `${each.host}, process ${each.pid}` },
      { label: "Actions", cell: (each) => h("details", {}, h("summary", {}, count(each.actions.length)), h("code", {}, each.actions.join(" "))) },
    ],
  });
}

function commonest(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0];
}
