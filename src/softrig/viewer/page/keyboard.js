// Keys. Controls that have a use for a key keep it: text fields all, buttons the space bar, sliders and lists the arrows.
import { clamp } from "./math.js";
import { TOOLS } from "./tools.js";

const FRAME = 1 / 30; // seconds
const TURNS = { ArrowLeft: [-14, 0], ArrowRight: [14, 0], ArrowUp: [0, -10], ArrowDown: [0, 10] }; // pixels of a drag

export function listen(app, tools, transport) {
  // What was clicked gives the keyboard back: the space bar plays and pauses, it does not click again.
  addEventListener("click", ({ detail, target }) => { if (detail > 0) target.closest("button, summary, a")?.blur(); });
  const nextClip = (by) => {
    const names = [null, ...app.hello.clips.map(({ name }) => name)], at = names.indexOf(app.state.clip);
    app.send("clip", { name: names[(at + by + names.length) % names.length] });
  };
  const show = (what) => app.send("show", { what: app.state.show === what ? "soft" : what });
  const brush = (change) => app.remember("brush", { ...app.local.brush, ...change });
  const radius = (factor) => {
    const { size } = app.renderer;
    brush({ radius: clamp(app.local.brush.radius * factor, 0.003 * size, 0.3 * size) });
  };
  const zoom = (factor) => { app.camera.zoom(factor); app.redraw(); };
  const keys = {
    " ": () => app.send("play", { on: !app.state.playing }),
    ArrowLeft: () => transport.seekBy(-FRAME),
    ArrowRight: () => transport.seekBy(FRAME),
    ArrowUp: () => nextClip(-1),
    ArrowDown: () => nextClip(1),
    "+": () => zoom(0.88),
    "=": () => zoom(0.88),
    "-": () => zoom(1.14),
    f: () => app.frameAll(),
    Home: () => app.frameAll(true),
    s: () => show("split"),
    b: () => show("both"),
    l: () => app.send("loop", { on: !app.state.loop }),
    n: () => app.nudge(),
    c: () => app.send("reset"),
    r: () => app.resetPose(),
    t: () => app.otherTheme(),
    h: () => app.remember("panel", !app.local.panel),
    d: () => app.remember("details", !app.local.details),
    p: () => app.picture(),
    v: () => app.video(),
    "?": () => app.help(),
    "[": () => radius(0.87),
    "]": () => radius(1.15),
    x: () => brush({ value: app.local.brush.value > 0.5 ? 0 : 1 }),
    Escape: () => { tools.marking = null; app.hint(null); },
  };
  TOOLS.forEach(({ name }, i) => { keys[i + 1] = () => app.can(name) && app.choose(name); });
  const commands = {
    z: ({ shiftKey }) => app.send(shiftKey ? "redo" : app.local.tool === "paint" ? "paint_undo" : "undo"),
    y: () => app.send("redo"),
    s: () => app.send("save_project"),
  };

  addEventListener("keydown", (event) => {
    const { target } = event, key = event.key.length === 1 ? event.key.toLowerCase() : event.key, arrow = key.startsWith("Arrow");
    if (!app.state || !app.hello || event.altKey || target.matches("input[type=text]")) return;
    if (document.querySelector("dialog[open]") && key !== "?") return;
    let action = keys[key];
    if (event.ctrlKey || event.metaKey) action = commands[key];
    else if (arrow && target.matches("input:not(#scrub), select, [role=radio], [role=separator]")) return;
    else if (key === "Home" && target.matches("input, select")) return;
    else if (target.matches("select") && key.length === 1) return; // lists are searched by typing
    else if (key === " " && target.matches("button, a")) return;
    else if (arrow && event.shiftKey) action = () => { app.camera.orbit(...TURNS[key]); app.redraw(); };
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
