// What the modules of the page share: what the server said last, what this browser remembers, and what can be done.
import { Camera } from "./camera.js";
import { Film, savePicture } from "./capture.js";
import { address } from "./connection.js";
import { add, scale } from "./math.js";
import { pick } from "./picking.js";

const bright = matchMedia("(prefers-color-scheme: light)");
const USUAL = {
  theme: null, tool: "pull", section: "play", panel: true, details: false, overlay: "ghost", split: 0.5, skin: 0.55, follow: false,
  shadows: true, poke: 0.05, hinted: false, brush: { radius: 0.05, value: 0, strength: 0.5 },
};
const NUDGE = { seconds: 0.6, hertz: 4, reach: 0.05 }; // reach in sizes of the character

export function stored(store, key) {
  try { return JSON.parse(store.getItem(key)) ?? {}; } catch { return {}; }
}

export function keep(store, key, value) {
  try { store.setItem(key, JSON.stringify(value)); } catch { /* private windows may refuse */ }
}

export class App {
  constructor(renderer, canvas) {
    Object.assign(this, { renderer, canvas, camera: new Camera(), connection: null, tools: null, hello: null, state: null, frame: null });
    Object.assign(this, { handles: null, layer: null, range: 0, firstView: [[-1, 0, -1], [1, 2, 1]], film: null, changed: true });
    this.page = Math.random().toString(36).slice(2, 8); // names of pulls of several pages must not meet
    this.local = { ...USUAL, ...stored(localStorage, "softrig") };
    this.listeners = [];
    bright.addEventListener("change", () => this.remember("theme", this.local.theme));
  }

  // Matters of looking, which this browser keeps.
  remember(name, value) {
    this.local[name] = value;
    keep(localStorage, "softrig", this.local);
    this.listeners.forEach((listener) => listener());
    this.redraw();
  }

  onLocal(listener) { this.listeners.push(listener); }
  get theme() { return this.local.theme ?? (bright.matches ? "light" : "dark"); }
  otherTheme() { this.remember("theme", this.theme === "dark" ? "light" : "dark"); }

  send(command, values) { this.connection.send(command, values); }
  redraw() { this.changed = true; }

  get positions() {
    const { surface } = this.renderer;
    return surface && (this.state?.show === "plain" && surface.hasPlain ? surface.plain : surface.soft).positions;
  }

  pick(x, y) { return this.positions ? pick(this.camera.ray(x, y), this.positions, this.renderer.surface.triangles) : null; }

  can(tool) {
    const { joints, can } = this.hello;
    return (tool !== "pose" || joints?.length > 0) && (tool !== "paint" || can.paint) && (tool !== "root" || can.root !== false);
  }

  choose(tool) {
    if (tool !== this.local.tool) this.tools.rest();
    this.remember("tool", tool);
    const { on, pose } = this.state.paint, paints = tool === "paint";
    if (paints !== on) this.send("paint", { on: paints, pose });
    if (paints) this.remember("section", "build");
  }

  // The next click on the skin says where the region `name` is.
  mark(name) {
    this.tools.marking = name;
    this.hint(`Click on the skin where “${name}” is`);
    this.canvas.focus();
  }

  resetPose() {
    this.tools.finish();
    this.send("reset_pose");
  }

  // Some quick swings of the root that die away.
  nudge() {
    const begin = performance.now(), reach = NUDGE.reach * this.renderer.size, side = this.camera.right, { offset } = this.state.root;
    const timer = setInterval(() => {
      const t = (performance.now() - begin) / 1000, left = Math.max(1 - t / NUDGE.seconds, 0);
      this.send("shake", { offset: add(offset, scale(side, reach * left * Math.sin(2 * Math.PI * NUDGE.hertz * t))) });
      if (left === 0) clearInterval(timer);
    }, 16);
  }

  frameAll(home = false) {
    const { surface } = this.renderer;
    if (surface && home) this.camera.home(this.firstView);
    else if (surface) this.camera.frame([surface.low, surface.high]);
    this.redraw();
  }

  hint(text) {
    const node = document.getElementById("hint");
    node.textContent = text ?? "";
    node.hidden = !text;
  }

  hintDone() {
    if (this.local.hinted) return;
    this.remember("hinted", true);
    this.hint(null);
  }

  get fileName() { return this.hello?.name ?? "softrig"; }
  picture() { savePicture(this.canvas, () => this.draw(this.renderer.quality.best, { plainly: true }), `${this.fileName}.png`); }

  video() {
    if (this.film) { this.film.stop(); return; }
    const changed = (seconds) => { if (seconds === null) this.film = null; this.onFilm(seconds); };
    try { this.film = new Film(this.canvas, `${this.fileName}.webm`, changed); } catch (error) { this.tell("error", error.message); }
  }

  async upload(file) {
    this.tell("info", `Reading ${file.name} …`);
    try {
      const answer = await fetch(address(`upload?name=${encodeURIComponent(file.name)}`), { method: "POST", body: file });
      if (!answer.ok) this.tell("error", (await answer.text()).slice(0, 300) || `The file was refused (${answer.status}).`);
    } catch { this.tell("error", "The file could not be sent."); }
  }

  help() {
    const dialog = document.getElementById("help");
    if (dialog.open) dialog.close(); else dialog.showModal();
  }
}
