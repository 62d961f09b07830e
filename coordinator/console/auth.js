// The token that every request is asked with: kept for this tab only, never in a cookie.
//
// A page needs none of this: requests carry the token, and an answer 401 brings the sign-in view.
//   token()                the token, or ""
//   adopt()                takes a token from the address (#token=…) and strips it from there
//   keep(text), forget()   signs in, signs out
//   onChange(listener)     told after either

const KEY = "headway.token";
const changes = new EventTarget();

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function adopt() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  sessionStorage.setItem(KEY, given.trim());
  history.replaceState(history.state, "", location.pathname + location.search);
}

export function keep(text) {
  sessionStorage.setItem(KEY, text.trim());
  changes.dispatchEvent(new Event("change"));
}

export function forget() {
  sessionStorage.removeItem(KEY);
  changes.dispatchEvent(new Event("change"));
}

export function onChange(listener) {
  changes.addEventListener("change", listener);
}
