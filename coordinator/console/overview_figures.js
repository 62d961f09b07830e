// From what `overview` answers to the figures and the series of the page. Pure.
//
//   FIGURES                     names, titles and where they lead, in order
//   figuresOf(overview)         { running: { text, words, tone } … }
//   seriesOf(overview)          { throughput: { times, values } … } for chart.js

import { count, duration } from "./format.js";

const LATE_MS = 10_000; // a timer that is so late is worth a colour

export const FIGURES = [
  { name: "running", title: "At work", href: "/tasks?status=running&status=compensating" },
  { name: "parked", title: "Wait for a person", href: "/parked" },
  { name: "agents", title: "Agents alive", href: "/agents" },
  { name: "queue", title: "Queue age" },
  { name: "settled", title: "Settled per minute" },
  { name: "latency", title: "Duration p95" },
  { name: "failures", title: "Failures per minute" },
  { name: "recoveries", title: "Recoveries per minute" },
];

export function figuresOf(overview) {
  const now = Date.parse(overview.now);
  const { counts, last_minute: minute } = overview;
  const hour = (name) => overview.minutes.reduce((total, each) => total + each[name], 0);
  const compensating = counts.compensating ?? 0;
  const queueMs = overview.oldest_dispatch_at && now - Date.parse(overview.oldest_dispatch_at);
  const lateMs = overview.oldest_due_at && now - Date.parse(overview.oldest_due_at);
  return {
    running: {
      text: count((counts.running ?? 0) + compensating),
      words: compensating ? `${count(compensating)} compensating` : "",
    },
    parked: { text: count(overview.parked), tone: overview.parked ? "warn" : "" },
    agents: {
      text: count(overview.agents),
      words: overview.instances === 1 ? "1 instance" : `${count(overview.instances)} instances`,
      tone: overview.agents ? "" : "bad",
    },
    queue: {
      text: queueMs > 0 ? duration(queueMs) : "0 s",
      words: lateMs > 0 ? `a timer is ${duration(lateMs)} late` : "",
      tone: lateMs > LATE_MS ? "warn" : "",
    },
    settled: {
      text: count(minute.succeeded + minute.compensated + minute.parked),
      words: `${count(minute.submitted)} submitted`,
    },
    latency: {
      text: duration(minute.p95_ms), words: minute.p50_ms === null ? "" : `p50 ${duration(minute.p50_ms)}`,
    },
    failures: { text: count(minute.failures), words: `${count(hour("failures"))} in the hour` },
    recoveries: { text: count(minute.recoveries), words: `${count(hour("recoveries"))} in the hour` },
  };
}

export function seriesOf({ minutes }) {
  const times = minutes.map(({ at }) => at);
  const series = (...names) => ({ times, values: names.map((name) => minutes.map((each) => each[name])) });
  return {
    throughput: series("succeeded", "compensated", "parked", "submitted"),
    latency: series("p95_ms", "p50_ms"),
    failures: series("failures", "retries"),
    recoveries: series("recoveries"),
  };
}
