// Starts the console: shell, routes, shortcuts, and the signing in that pages may ask for.

import { say } from "./announce.js";
import { read } from "./api.js";
import * as auth from "./auth.js";
import { tick } from "./format.js";
import { Keys } from "./keys.js";
import { known, may, onKnown, person } from "./me.js";
import { Router } from "./router.js";
import { PLACES, ROUTES } from "./routes.js";
import { Shell } from "./shell.js";
import { signInView } from "./signin.js";
import { problemView } from "./states.js";
import { applyTheme } from "./theme.js";

const NAME = "Headway";
const COUNTS_EVERY_MS = 10_000;

auth.adopt();
applyTheme();
const keys = new Keys();
const shell = new Shell(keys);
const router = new Router(shell.main, ROUTES.map(([pattern, load]) => [pattern, () => loaded(load)]), extend);

keys.add("Everywhere", {
  "?": ["Show these shortcuts", () => keys.help()],
  ...Object.fromEntries(PLACES.map(([path, name, , key]) => [`g ${key}`, [name, () => router.go(path)]])),
});
onKnown(() => shell.knows(person(), may));
auth.onChange(() => (auth.token() ? router.show() : askForToken(null)));
tick();
router.start({ shown: Boolean(auth.token()) });
if (!auth.token()) askForToken(null);
keepCounting();

/** A page's module, once it is known what it may offer. Who may not see the overview begins elsewhere. */
async function loaded(load) {
  const [module] = await Promise.all([load(), known()]);
  if (location.pathname !== "/" || may("overview")) return module;
  return { page: async (context) => context.go("/tasks", { replace: true }) };
}

function extend(context) {
  shell.arrived(location.pathname);
  shell.signedIn(true);
  return Object.assign(context, {
    title(text) {
      document.title = `${text} · ${NAME}`;
      if (context.focus) say(text);
    },
    keys: (shortcuts) => keys.add("On this page", shortcuts, context.signal),
    signIn: (problem = null) => askForToken(problem),
    failed(error) {
      console.error(error);
      context.view.replaceChildren(problemView(
        { status: -1, title: "This page could not be shown", detail: String(error) },
        { retry: () => router.show() }));
    },
  });
}

function askForToken(problem) {
  router.leave();
  shell.signedIn(false);
  document.title = `Sign in · ${NAME}`;
  shell.main.replaceChildren(signInView(auth.token() ? problem : null));
  shell.main.querySelector("input").focus();
}

/** What waits for people is worth a number beside its place, on every page. */
function keepCounting() {
  const look = async () => {
    if (document.hidden || !auth.token()) return;
    await known();
    if (!may("overview")) return;
    const { parked } = await read("overview").catch(() => ({}));
    if (parked !== undefined) shell.badge("/parked", parked, "wait for a person");
  };
  setInterval(look, COUNTS_EVERY_MS);
  look();
}
