// Whether what is on the page can be trusted to be current. fresh.js reports, the shell shows.
//
// A page needs none of this.
//   connection.failed(who, problem, againMs)   who could not be brought up to date; tried again then
//   connection.recovered(who)
//   connection.problem                         the worst one that stands, or null

class Connection extends EventTarget {
  #failing = new Map();

  failed(who, problem, againMs) {
    this.#failing.set(who, { problem, againAt: Date.now() + (againMs ?? 0) });
    this.dispatchEvent(new Event("change"));
  }

  recovered(who) {
    if (this.#failing.delete(who)) this.dispatchEvent(new Event("change"));
  }

  get problem() {
    return [...this.#failing.values()].at(-1) ?? null;
  }
}

export const connection = new Connection();
