// Which page stands at which address, and what the navigation shows. One line a page.

export const ROUTES = [
  ["/", () => import("./pages/overview.js")],
  ["/tasks", () => import("./pages/tasks.js")],
  ["/tasks/:task", () => import("./pages/task.js")],
  ["/parked", () => import("./pages/parked.js")],
  ["/agents", () => import("./pages/agents.js")],
  ["/sagas", () => import("./pages/sagas.js")],
  ["/sagas/:name", () => import("./pages/sagas_one.js")],
  ["/dead", () => import("./pages/dead.js")],
  ["/.*", () => import("./pages/lost.js")],
];

/** Path, name, drawing, second key of its shortcut (after g). */
export const PLACES = [
  ["/", "Overview", "overview", "o"],
  ["/tasks", "Tasks", "tasks", "t"],
  ["/parked", "Parked", "parked", "p"],
  ["/agents", "Agents", "agents", "a"],
  ["/sagas", "Sagas", "sagas", "s"],
  ["/dead", "Dead letters", "dead", "d"],
];
