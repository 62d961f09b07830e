// A list of buttons that is one stop of the tab key; arrows, Home and End go from one to the next.
//
//   roving(list)    for buttons that come and go within `list`
//   An item with aria-current is where the tab key goes first.

const NEXT = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: 10, PageUp: -10 };

export function roving(list) {
  new MutationObserver(() => settle(list)).observe(list, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["aria-current"],
  });
  list.addEventListener("focusin", (event) => {
    for (const button of buttonsOf(list)) setTab(button, button === event.target);
  });
  list.addEventListener("keydown", (event) => {
    const buttons = buttonsOf(list);
    const at = buttons.indexOf(document.activeElement);
    const to = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1
      : event.key in NEXT ? Math.min(buttons.length - 1, Math.max(0, at + NEXT[event.key])) : -1;
    if (at < 0 || to < 0) return;
    event.preventDefault();
    buttons[to].focus();
  });
}

function settle(list) {
  const buttons = buttonsOf(list);
  if (buttons.includes(document.activeElement)) return;
  const first = buttons.find((button) => button.hasAttribute("aria-current")) ?? buttons[0];
  for (const button of buttons) setTab(button, button === first);
}

function buttonsOf(list) {
  return [...list.querySelectorAll("button")];
}

function setTab(button, on) {
  const index = on ? 0 : -1;
  if (button.tabIndex !== index) button.tabIndex = index;
}
