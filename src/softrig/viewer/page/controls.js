// Small builders of controls. Each shows what the server says through `set`, but never fights a hand that holds it.
import { icon } from "./icons.js";
import { clamp } from "./math.js";

const QUIET = 450; // milliseconds after letting go, in which an older state may still be on its way
const ECHO = 3000; // milliseconds in which the server should have taken up the last value
const PACE = 40, PATIENCE = 2000; // milliseconds between two messages of one drag: at least, and while no frame comes

// Counts frames that arrived. A server that is busy with the last value of a slider is not sent the next.
export const beat = { count: 0 };

export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Sends the first value at once, the last one for certain, and of those between what can be taken.
function paced(send) {
  let last = -Infinity, seen = -1, timer = 0;
  return function pass(value) {
    clearTimeout(timer);
    const passed = performance.now() - last;
    if (passed < PACE || (passed < PATIENCE && beat.count === seen)) { timer = setTimeout(() => pass(value), PACE); return; }
    [last, seen] = [performance.now(), beat.count];
    send(value);
  };
}

export function button({ text, symbol, title, kind = "", click, keys }) {
  const hint = keys ? `${title ?? text} (${keys})` : title;
  const node = element("button", { type: "button", class: text ? kind : `${kind} symbol`, title: hint, "aria-label": text ? null : title,
    onclick: click },
    symbol ? icon(symbol) : null, text ? element("span", {}, text) : null);
  node.change = (newSymbol, newTitle) => {
    node.firstChild.replaceWith(icon(newSymbol));
    node.title = newTitle;
    node.setAttribute("aria-label", newTitle);
  };
  return node;
}

let names = 0;

// A value on a line. `log`: equal steps multiply. `local`: it stays in the page. `shown(value)` writes it; a double click or Delete brings `usual` back.
export function slider({ key, label, title, low, high, step = 0, log = false, usual, shown = (x) => x.toFixed(2), input, local = false }) {
  const id = `slider-${++names}`, send = local ? input : paced(input);
  const range = element("input", { type: "range", id, min: 0, max: 1000, step: 1, title }), output = element("output", { for: id });
  const node = element("div", { class: "field slider", "data-key": key }, element("label", { for: id, title }, label), output, range);
  let held = false, freeAt = 0, now = low, asked = null, askedAt = 0, later = 0;
  const valueAt = (place) => {
    const value = log ? low * (high / low) ** place : low + (high - low) * place;
    return step ? clamp(Math.round(value / step) * step, low, high) : value;
  };
  const placeOf = (value) => {
    if (high === low) return 0;
    return log ? Math.log(Math.max(value, 1e-9) / low) / Math.log(high / low) : (value - low) / (high - low);
  };
  const show = (value) => {
    now = value;
    output.textContent = shown(value);
    range.setAttribute("aria-valuetext", output.textContent);
    node.style.setProperty("--part", `${100 * clamp(placeOf(value), 0, 1)}%`);
  };
  const change = (value) => {
    askedAt = performance.now();
    [freeAt, asked] = [askedAt + QUIET, value];
    show(value);
    send(value);
  };
  const jump = (value) => { range.value = 1000 * placeOf(value); change(value); };
  const letGo = () => { held = false; freeAt = performance.now() + QUIET; };
  range.addEventListener("input", () => change(valueAt(range.value / 1000)));
  range.addEventListener("pointerdown", () => { held = true; });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) range.addEventListener(end, letGo);
  range.addEventListener("dblclick", () => usual !== undefined && jump(usual));
  range.addEventListener("keydown", (event) => {
    if (event.key === "Delete" && usual !== undefined) jump(usual);
    // Arrows move by whole steps where a thousandth of the range would be too little.
    const by = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step }[event.key];
    if (!by) return;
    jump(clamp(now + by, low, high));
    event.preventDefault();
  });
  node.set = (value, force = false) => {
    const time = performance.now();
    clearTimeout(later);
    // What a slow server still says about earlier values is not news; but if it says no more, as after an undo, it stands.
    const isOld = asked !== null && Math.abs(value - asked) > 1e-6 * (high - low);
    const wait = Math.max(freeAt - time, isOld ? askedAt + ECHO - time : 0, held ? QUIET : 0);
    if (!force && wait > 0) { later = setTimeout(() => node.set(value), wait + 1); return; }
    asked = null;
    range.value = 1000 * placeOf(value);
    show(value);
  };
  node.value = () => now;
  node.limits = (newLow, newHigh) => { [low, high] = [newLow, newHigh]; node.set(now, true); };
  node.set(usual ?? low, true);
  return node;
}

// One of a few: a row of buttons that arrows walk through.
export function choice({ label, title, options, pick, kind = "segments", hideLabel = kind !== "segments" }) {
  const group = element("div", { class: kind, role: "radiogroup", "aria-label": label, title });
  const node = hideLabel ? group : element("div", { class: "field" }, element("span", { class: "label", title }, label), group);
  let buttons = [], values = [], now;
  const walk = (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[(buttons.indexOf(event.currentTarget) + by + buttons.length) % buttons.length];
    next.focus();
    next.click();
  };
  const option = ({ value, text, symbol, title: hint, note }) => element("button",
    { type: "button", role: "radio", title: hint, "aria-label": text ? null : hint, onkeydown: walk,
      onclick: () => { node.set(value); pick(value); } },
    symbol ? icon(symbol) : null, text ? element("span", {}, text) : null, note ? element("small", {}, note) : null);
  node.offer = (list) => {
    [buttons, values] = [list.map(option), list.map(({ value }) => value)];
    group.replaceChildren(...buttons);
    node.set(now);
  };
  node.set = (value) => {
    now = value;
    const chosen = values.indexOf(value);
    buttons.forEach((each, i) => {
      each.setAttribute("aria-checked", i === chosen);
      each.tabIndex = i === Math.max(chosen, 0) ? 0 : -1;
    });
  };
  node.offer(options);
  return node;
}

export function toggle({ label, title, change }) {
  const click = () => { const on = node.getAttribute("aria-checked") !== "true"; node.set(on); change(on); };
  const node = element("button", { type: "button", role: "switch", title, class: "switch", onclick: click }, element("span", {}, label),
    element("i"));
  node.set = (on) => node.setAttribute("aria-checked", Boolean(on));
  node.set(false);
  return node;
}

// A native list: it opens upwards at the screen's edge and speaks to every screen reader. The value null is its "".
export function select({ label, title, change, hideLabel = false }) {
  let key = "", freeAt = 0;
  const id = `select-${++names}`, list = element("select", { id, title, "aria-label": hideLabel ? label : null });
  const node = hideLabel ? element("span", {}, list) : element("div", { class: "field" }, element("label", { for: id, title }, label), list);
  list.addEventListener("change", () => { freeAt = performance.now() + QUIET; change?.(node.value()); });
  node.offer = (pairs) => {
    if (JSON.stringify(pairs) === key) return;
    key = JSON.stringify(pairs);
    const before = list.value;
    list.replaceChildren(...pairs.map(([value, text]) => element("option", { value: value ?? "" }, text)));
    if (pairs.some(([value]) => (value ?? "") === before)) list.value = before;
  };
  node.set = (value) => { if (performance.now() > freeAt) list.value = value ?? ""; };
  node.value = () => (list.value === "" ? null : list.value);
  return node;
}

// A word and a button, for naming things.
export function namer({ placeholder, text, title, done }) {
  const input = element("input", { type: "text", placeholder, maxlength: 60, "aria-label": placeholder });
  const go = () => { if (input.value.trim()) done(input.value.trim()); input.value = ""; };
  input.addEventListener("keydown", (event) => event.key === "Enter" && go());
  return row(input, button({ text, title, click: go }));
}

export const row = (...children) => element("div", { class: "row" }, ...children);
export const heading = (text, title) => element("h3", { title }, text);
export const quiet = (text) => element("p", { class: "quiet" }, text);

// Replaces children only where the list really changed: focus and animations survive.
export function list(node, entries, make) {
  const key = JSON.stringify(entries);
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(...entries.map(make));
}
