// Works as agent `flights` until SIGTERM.

import { FLIGHTS } from "./flights.js";
import { Worker } from "./worker.js";

await Worker.serve("flights", FLIGHTS);
