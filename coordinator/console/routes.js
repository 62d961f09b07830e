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

/** Path, name, drawing, second key of its shortcut (after g), the operation that it cannot be without. */
export const PLACES = [
  ["/", "Overview", "overview", "o", "overview"],
  ["/tasks", "Tasks", "tasks", "t", "list"],
  ["/parked", "Parked", "parked", "p", "parked"],
  ["/agents", "Agents", "agents", "a", "agents"],
  ["/sagas", "Sagas", "sagas", "s", "saga.list"],
  ["/dead", "Dead letters", "dead", "d", "dead.list"],
];
