// The agents: who is there, what waits for whom, whether each is given anything; pause and resume.

import { agentPanel } from "../agent_panel.js";
import { announce } from "../announce.js";
import { act, ApiError, read } from "../api.js";
import { confirm } from "../dialog.js";
import { h } from "../dom.js";
import { fresh } from "../fresh.js";
import { lookOnly } from "../me.js";
import { emptyView, skeleton } from "../states.js";

const EVERY_MS = 2_000;

const WORDS = {
  pause: {
    title: "Pause", action: "Pause",
    text: "It is given no commands until somebody resumes it. What it has in hand it finishes; what is due waits, and nothing is lost.",
  },
  resume: {
    title: "Resume", action: "Resume",
    text: "It is given all its commands again, at once.",
  },
};

export async function page(context) {
  context.title("Agents");
  const list = h("div", { class: "cards" }, skeleton(6));
  context.view.append(h("header", { class: "page-head" }, h("h1", {}, "Agents"),
    lookOnly("agents.pause", "agents.resume") ?? ""), list);
  const panels = new Map();

  const ask = async (what, agent) => {
    const { title, action, text } = WORDS[what];
    const answer = await confirm({ title: `${title} ${agent}?`, text, action, danger: what === "pause", note: "optional" });
    if (!answer) return;
    try {
      await act(`agents.${what}`, { agent, reason: answer.reason }, { signal: context.signal });
      announce(what === "pause" ? `${agent} is paused` : `${agent} is given commands again`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      announce(`Not done: ${error.message}`, { tone: "bad" });
    }
    live.reload();
  };

  const live = fresh(context, {
    load: (signal) => Promise.all([
      read("agents", {}, { signal }), read("limits.list", {}, { signal }),
    ]),
    draw([{ agents }, { limits }]) {
      const wanted = agents.map((agent) => {
        if (!panels.has(agent.agent)) panels.set(agent.agent, agentPanel(agent.agent, ask));
        const panel = panels.get(agent.agent);
        panel.update(agent, limits.find((limit) => limit.scope === "agent" && limit.name === agent.agent));
        return panel.element;
      });
      if (!wanted.length) wanted.push(noAgents());
      if (wanted.length !== list.children.length || wanted.some((element, at) => list.children[at] !== element)) {
        list.replaceChildren(...wanted);
      }
    },
    content: list,
    feed: null,
    everyMs: EVERY_MS,
  });
}

function noAgents() {
  return emptyView({
    title: "No agent is known",
    text: "An agent is known once it runs, or once a saga names it.",
    action: h("code", { class: "command" }, "headway agent module:agent"),
  });
}
