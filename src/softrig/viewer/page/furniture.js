// What stands around the picture: the bar on top, the rail of tools, legend, divider, toasts, and the place to drop files.
import { rampCss } from "./colours.js";
import { button, choice, element } from "./controls.js";
import { TOOLS } from "./tools.js";

const find = (id) => document.getElementById(id);
const MOST_TOASTS = 4, MOST_SWATCHES = 14;

export function createFurniture(app) {
  app.tell = tell;
  const look = createBar(app);
  const rail = choice({ label: "Tools", kind: "rail", options: [], pick: (name) => app.choose(name) });
  find("tools").append(rail);
  divide(app);
  receive(app);
  app.onLocal(() => { look(); rail.set(app.local.tool); });
  look();
  return {
    hello({ name, about = {} }) {
      document.title = `${name} · softrig`;
      find("name").textContent = name;
      const counts = ["vertices", "tets", "modes", "poses"].filter((key) => about[key]);
      find("about").textContent = counts.map((key) => `${about[key].toLocaleString("en")} ${key}`).join(" · ");
      const key = ({ name: tool }) => TOOLS.findIndex((each) => each.name === tool) + 1;
      rail.offer(TOOLS.filter((tool) => app.can(tool.name)).map((tool) => (
        { value: tool.name, symbol: tool.name, text: tool.text, title: `${tool.text} (${key(tool)}). ${tool.hint}` })));
      if (!app.can(app.local.tool)) app.remember("tool", "pull");
      rail.set(app.local.tool);
    },
    state({ replaying, recording, playing, show }) {
      find("sides").hidden = show !== "split";
      const words = replaying ? `replaying ${replaying}` : recording.on ? "recording" : playing ? "" : "paused";
      if (find("play-state").textContent !== words) find("play-state").textContent = words; // it is read aloud
      this.legend();
    },
    legend: () => drawLegend(app),
  };
}

function createBar(app) {
  const video = button({ symbol: "video", title: "Record a video (V)", click: () => app.video() });
  const theme = button({ symbol: "sun", title: "Light or dark (T)", click: () => app.otherTheme() });
  const panel = button({ symbol: "panel", title: "Show or hide the panel (H)", click: () => app.remember("panel", !app.local.panel) });
  find("bar-buttons").append(
    button({ symbol: "frame", title: "Frame the character (F)", click: () => app.frameAll() }),
    button({ symbol: "picture", title: "Save a picture (P)", click: () => app.picture() }),
    video, theme,
    button({ symbol: "help", title: "Help (?)", click: () => app.help() }),
    panel);
  find("help").querySelector("form").append(button({ text: "Close", kind: "primary", click: () => app.help() }));
  app.onFilm = (seconds) => {
    const films = seconds !== null;
    video.classList.toggle("live", films);
    video.change(films ? "stop" : "video", films ? `Stop the video (V), ${seconds.toFixed(0)} s` : "Record a video (V)");
  };
  return () => {
    const dark = app.theme === "dark";
    document.documentElement.dataset.theme = app.theme;
    theme.change(dark ? "sun" : "moon", `${dark ? "Light" : "Dark"} theme (T)`);
    document.body.classList.toggle("no-panel", !app.local.panel);
    panel.setAttribute("aria-pressed", app.local.panel);
    app.renderer.quality.shadows = app.local.shadows;
    find("sides").style.setProperty("--split", `${100 * app.local.split}%`);
    find("divider").setAttribute("aria-valuenow", Math.round(100 * app.local.split));
  };
}

function tell(level, text) {
  const toast = element("div", { class: `toast ${level}` }, element("span", {}, text));
  toast.append(button({ symbol: "close", title: "Close", click: () => toast.remove() }));
  find("toasts").append(toast);
  while (find("toasts").children.length > MOST_TOASTS) find("toasts").firstChild.remove();
  setTimeout(() => toast.remove(), level === "error" ? 10_000 : 5000);
}

function drawLegend(app) {
  const node = find("legend"), name = app.state?.layer, entries = name && app.layer?.layer === name ? app.layer.legend ?? [] : [];
  node.hidden = !(name === "magnitude" || name === "softness" || entries.length);
  if (node.hidden) return;
  const ramp = (title, left, right) => node.replaceChildren(
    element("b", {}, title), element("i", { class: "ramp", style: `background:${rampCss()}` }),
    element("div", { class: "ends" }, element("span", {}, left), element("span", {}, right)));
  const swatch = ({ name: text, colour }) => element("div", { class: "swatch" },
    element("i", { style: `background:rgb(${colour.slice(0, 3)})` }), element("span", {}, text));
  const millimetres = (1000 * app.range).toLocaleString("en", { maximumSignificantDigits: 3 });
  if (name === "magnitude") ramp("Distance from plain skinning", "0", `${millimetres} mm`);
  else if (name === "softness") ramp("Softness", "0 · follows the bones", "soft · 1");
  else node.replaceChildren(...entries.slice(0, MOST_SWATCHES).map(swatch));
}

// The divider of the split view.
function divide(app) {
  const divider = find("divider"), to = (share) => app.remember("split", Math.min(0.95, Math.max(0.05, share)));
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const { left, width } = find("stage").getBoundingClientRect();
    to((event.clientX - left) / width);
  });
  divider.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (!by) return;
    to(app.local.split + by);
    event.preventDefault();
    event.stopPropagation();
  });
}

// Files dropped anywhere.
function receive(app) {
  const { classList } = document.body;
  addEventListener("dragover", (event) => { event.preventDefault(); classList.add("dropping"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    classList.remove("dropping");
    if (event.dataTransfer.files[0]) app.upload(event.dataTransfer.files[0]);
  });
}
