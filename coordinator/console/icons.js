// Small drawings of 16 by 16 units, in the colour of the text beside them. Never the only carrier of
// a meaning: a word stands beside each, or is its label.
//
// A page may use:
//   icon("retry")    an SVG element, hidden from screen readers

import { svg } from "./dom.js";

const PATHS = {
  // statuses: each has an outline of its own, so that they differ without colour
  running: ["M8 2a6 6 0 1 0 6 6", "M8 5v3l2 1.5"],
  succeeded: ["M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2Z", "M5.2 8.2 7.2 10.2 11 6"],
  compensating: ["M4.5 3v3.5H8", "M4.7 6.3A5 5 0 1 1 3.4 10"],
  compensated: ["M8 2.2 13.8 8 8 13.8 2.2 8Z", "M10.2 8H6M7.6 6.2 5.8 8l1.8 1.8"],
  parked: ["M3 3h10v10H3Z", "M6.4 6v4M9.6 6v4"],
  failed_to_compensate: ["M8 2 14.5 13.5H1.5Z", "M8 6.4v3.4M8 11.6v.1"],
  waiting: ["M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2Z"],
  scheduled: ["M8 2a6 6 0 1 0 6 6", "M8 5v3l2 1.5"],
  completed: ["M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2Z", "M5.2 8.2 7.2 10.2 11 6"],
  failed: ["M5.3 2h5.4L14 5.3v5.4L10.7 14H5.3L2 10.7V5.3Z", "M6 6l4 4M10 6l-4 4"],
  unknown: ["M8 2 14 8 8 14 2 8Z", "M6.8 6.6a1.3 1.3 0 1 1 1.8 1.2q-.6.3-.6 1M8 10.6v.1"],
  skipped: ["M3 4.5 7 8l-4 3.5", "M8.5 4.5l4 3.5-4 3.5"],
  // places
  brand: ["M3.5 3.5 8 8l-4.5 4.5", "M8.5 3.5 13 8l-4.5 4.5"],
  overview: ["M2.5 13.5v-5M6.2 13.5v-9M9.8 13.5V7M13.5 13.5v-11"],
  tasks: ["M2.5 4h1M2.5 8h1M2.5 12h1M6 4h7.5M6 8h7.5M6 12h7.5"],
  agents: ["M3 5.5h10v7H3Z", "M8 5.5V3M6 8.6v.8M10 8.6v.8"],
  sagas: ["M2.5 3h4v3h-4ZM9.5 10h4v3h-4Z", "M4.5 6v5.5h5"],
  dead: ["M2.5 4h11v8h-11Z", "M2.5 4.5 8 9l5.5-4.5"],
  // actions
  retry: ["M11.5 3v3.5H8", "M11.3 6.3A5 5 0 1 0 12.6 10"],
  resume: ["M5 3.2v9.6L12.5 8Z"],
  cancel: ["M4.5 3v3.5H8", "M4.7 6.3A5 5 0 1 1 3.4 10"],
  settle: ["M3 8.5 6.5 12 13 4.5"],
  approve: ["M3 8.5 6.5 12 13 4.5"],
  reject: ["M4 4l8 8M12 4l-8 8"],
  close: ["M4 4l8 8M12 4l-8 8"],
  search: ["M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9Z", "M10.3 10.3 13.5 13.5"],
  menu: ["M2.5 4.5h11M2.5 8h11M2.5 11.5h11"],
  light: ["M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 1 0 0-5.6Z",
    "M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1"],
  dark: ["M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6Z"],
  system: ["M2 3h12v8H2Z", "M5.5 13.5h5"],
  copy: ["M5.5 5.5h8v8h-8Z", "M10.5 5.5v-3h-8v8h3"],
  left: ["M10 3 5 8l5 5"],
  right: ["M6 3l5 5-5 5"],
  down: ["M3 6l5 5 5-5"],
  key: ["M5.5 7.5a3 3 0 1 0 0 .1Z", "M5.5 7.5h8v2.5M10.8 7.5v2"],
  alert: ["M8 2 14.5 13.5H1.5Z", "M8 6.4v3.4M8 11.6v.1"],
  out: ["M6.5 2.5h-4v11h4", "M6 8h7.5M10.8 5.2 13.5 8l-2.7 2.8"],
  filter: ["M2 3.5h12L9.5 8.5v4l-3 1.2V8.5Z"],
};

export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    PATHS[name].map((path) => svg("path", { d: path })));
}
