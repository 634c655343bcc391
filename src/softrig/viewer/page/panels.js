// The panel on the right: what plays, how the flesh is, what lies inside. Painting and taking away are in workbench.js.
import { button, choice, element, heading, row, slider, toggle } from "./controls.js";
import { icon } from "./icons.js";
import { buildSection, takeSection } from "./workbench.js";

const LAYERS = {
  tets: ["Tets", "The volume mesh that carries the flesh"],
  cut: ["Cut", "Half of the volume mesh: its inside"],
  regions: ["Regions", "Which part of the flesh belongs to which region"],
  fixed: ["Fixed", "Vertices that only follow the bones"],
  contact: ["Contact", "Vertices that touch another part of the body at a pose"],
  cubature: ["Cubature", "Tets where forces are evaluated; larger: they stand for more flesh"],
  magnitude: ["Motion", "How far each point is from plain skinning, in mm"],
  softness: ["Softness", "Painted softness: bright is soft, dark follows the bones"],
};
const BENEATH = ["tets", "cut", "fixed", "contact", "cubature"]; // layers that lie under the skin
const GRAVITY = {
  change: ["Change", "Only how gravity differs from the rest pose: a sculpted shape already sags"],
  full: ["Full", "All of gravity, 9.81 m/s²"],
  off: ["Off", "No gravity"],
};
const RADIANS = Math.PI / 180;
const times = (x) => `×${x < 9.95 ? x.toFixed(2) : x.toFixed(1)}`;
const whole = (unit) => (x) => `${Math.round(x)}${unit}`;
const STIFFNESS = { low: 0.1, high: 10, log: true, usual: 1, shown: times };

function section(app, name, title, symbol, body) {
  const id = `section-${name}`, content = element("div", { id, class: "content", role: "region", "aria-label": title }, ...body.nodes);
  const note = element("em"), toggleIt = () => {
    app.remember("section", app.local.section === name ? null : name);
    if (app.local.section === name) node.scrollIntoView({ block: "start" });
  };
  const head = element("button", { type: "button", class: "head", "aria-controls": id, onclick: toggleIt },
    icon(symbol), element("span", {}, title), note, icon("down"));
  const node = element("section", {}, element("h2", {}, head), content);
  const open = () => {
    const on = app.local.section === name;
    head.setAttribute("aria-expanded", on);
    content.hidden = !on;
    node.classList.toggle("open", on);
  };
  app.onLocal(open);
  open();
  return Object.assign(body, { node, note: (text) => { note.textContent = text ?? ""; } });
}

function playSection(app) {
  const clips = choice({ label: "Clip", kind: "tiles", options: [], pick: (name) => app.send("clip", { name }) });
  const ground = toggle({ label: "Floor stops the flesh", title: "A plane at the feet that the flesh cannot enter",
    change: (on) => app.send("ground", { on }) });
  const follow = toggle({ label: "Camera follows", title: "The view moves along with the character",
    change: (on) => app.remember("follow", on) });
  const overlay = choice({ label: "Overlay", title: "How plain skinning is drawn in the view “both”",
    options: [{ value: "ghost", text: "Ghost" }, { value: "wire", text: "Wire" }], pick: (value) => app.remember("overlay", value) });
  const nudge = button({ text: "Nudge", symbol: "nudge", title: "Shake the whole body once", keys: "N", click: () => app.nudge() });
  const calm = button({ text: "Calm", symbol: "calm", title: "The flesh is still at once", keys: "C", click: () => app.send("reset") });
  const back = button({ text: "Reset pose", symbol: "reset", title: "Joints and root back to the clip", keys: "R",
    click: () => app.resetPose() });
  return {
    nodes: [clips, row(nudge, calm, back), ground, follow, overlay],
    hello({ clips: all, can }) {
      const named = all.map(({ name, duration }) => ({ value: name, text: name, title: name, note: `${duration.toFixed(1)} s` }));
      clips.offer([{ value: null, text: "Rest pose", title: "No clip: the rest pose is held" }, ...named]);
      clips.hidden = !all.length;
      nudge.hidden = back.hidden = follow.hidden = can.root === false;
      ground.hidden = can.ground === false;
    },
    state({ clip, ground: on, show }) {
      clips.set(clip);
      ground.set(on);
      follow.set(app.local.follow);
      overlay.set(app.local.overlay);
      overlay.hidden = show !== "both"; // elsewhere nothing is overlaid, and a switch would seem to be on
      this.note(clip ?? (app.hello?.clips.length ? "rest pose" : ""));
    },
  };
}

function windPart(tune) {
  let force = 0, angle = 0;
  const blow = () => tune([force * Math.sin(angle * RADIANS), 0, force * Math.cos(angle * RADIANS)]);
  const pressure = slider({ key: "wind", label: "Wind", title: "Pressure on the skin, newton per square metre", low: 0, high: 400, step: 5,
    usual: 0,
    shown: whole(" N/m²"), input: (x) => { force = x; blow(); } });
  const towards = slider({ key: "wind-towards", label: "Wind towards", title: "0°: towards the front, 90°: to the character's left",
    low: -180, high: 180,
    step: 5, usual: 0, shown: whole("°"), input: (x) => { angle = x; blow(); } });
  return {
    nodes: [pressure, towards],
    set([x, , z]) {
      force = Math.hypot(x, z);
      if (force > 1e-6) angle = Math.atan2(x, z) / RADIANS;
      pressure.set(force);
      towards.set(angle);
      towards.hidden = force < 1e-6 && !towards.contains(document.activeElement);
    },
  };
}

function tuneSection(app) {
  const tune = (name) => (value) => app.send("tune", { name, value });
  const presets = choice({ label: "Kind of flesh", kind: "tiles narrow", options: [], pick: tune("preset") });
  const all = slider({ ...STIFFNESS, key: "stiffness", label: "Stiffness",
    title: "Factor on the stiffness (Young's modulus) of all flesh. Double click: ×1",
    input: tune("stiffness") });
  const damping = slider({ key: "damping_ratio", label: "Damping ratio", title: "How fast swings die away; 1: no swing at all", low: 0,
    high: 1, step: 0.005,
    usual: 0.12, input: tune("damping_ratio") });
  const inertia = slider({ key: "inertia", label: "Inertia", title: "How strongly the flesh feels accelerations; 1 is physical", low: 0,
    high: 3, step: 0.05,
    usual: 1, shown: times, input: tune("inertia") });
  const modes = slider({ key: "modes", label: "Modes", title: "How many shapes the flesh may move in: more are truer, fewer are faster",
    low: 1, high: 2,
    step: 1, shown: whole(""), input: tune("modes") });
  const gravity = choice({ label: "Gravity", options: [], pick: tune("gravity") }), wind = windPart(tune("wind"));
  const undo = button({ symbol: "undo", title: "Undo", keys: "Ctrl Z", click: () => app.send("undo") });
  const redo = button({ symbol: "redo", title: "Redo", keys: "Ctrl Y", click: () => app.send("redo") });
  const reset = button({ text: "As built", title: "All settings as the model was built", click: () => app.send("reset_settings") });
  const save = button({ text: "Save", symbol: "save", kind: "primary", click: () => app.send("save_project") });
  const regions = element("div", { class: "regions" });
  let sliders = {};
  const preset = ([name, { looks, young }]) => ({ value: name, text: name,
    title: [looks, young && `${Math.round(young / 1000)} kPa.`].filter(Boolean).join(" ") });
  const region = (name) => slider({ ...STIFFNESS, key: `stiffness.${name}`, label: name,
    title: `Factor on the stiffness of ${name}. Double click: ×1`,
    input: tune(`stiffness.${name}`) });
  return {
    nodes: [presets, all, regions, damping, gravity, inertia, modes, ...wind.nodes, row(undo, redo, reset, save)],
    hello(hello) {
      const kinds = Object.entries(hello.presets ?? {}), names = hello.regions ?? [];
      presets.hidden = !kinds.length;
      presets.offer(kinds.map(preset));
      sliders = Object.fromEntries(names.map((name) => [name, region(name)]));
      regions.replaceChildren(...Object.values(sliders));
      regions.hidden = names.length < 2;
      all.hidden = !names.length;
      all.querySelector("label").textContent = names.length > 1 ? "Stiffness, all regions" : "Stiffness";
      modes.limits(1, Math.max(hello.modes?.most ?? 1, 1));
      modes.hidden = Boolean(hello.modes?.stay);
      gravity.offer((hello.gravities ?? Object.keys(GRAVITY)).map((value) => ({ value, text: (GRAVITY[value] ?? [value])[0],
        title: GRAVITY[value]?.[1] })));
      save.hidden = hello.can.save === false;
      save.title = `Save settings, paint, poses and handles into ${hello.project ?? "the project file"} (Ctrl S)`;
    },
    state({ settings, can_undo, can_redo, unsaved }) {
      presets.set(settings.preset);
      const factors = Object.values(settings.stiffness ?? {}), logs = factors.map((x) => Math.log(Math.max(x, 1e-3)));
      for (const name in sliders) sliders[name].set(settings.stiffness[name] ?? 1);
      if (factors.length) all.set(Math.exp(logs.reduce((sum, x) => sum + x, 0) / factors.length));
      damping.set(settings.damping_ratio);
      inertia.set(settings.inertia);
      modes.set(settings.modes);
      gravity.set(settings.gravity);
      wind.set(settings.wind ?? [0, 0, 0]);
      undo.disabled = !can_undo;
      redo.disabled = !can_redo;
      this.note(unsaved.settings ? "not saved" : settings.preset ?? "");
    },
  };
}

function lookSection(app) {
  const layers = choice({ label: "Layer", kind: "tiles", options: [], pick: (name) => app.send("layer", { name }) });
  const skin = slider({ key: "skin", label: "Skin over it", title: "How much of the skin is drawn over what lies inside", low: 0, high: 1,
    usual: 0.55,
    shown: (x) => `${Math.round(100 * x)} %`, input: (x) => app.remember("skin", x) });
  const shadows = toggle({ label: "Soft shadow", title: "Slow machines draw it simpler, or only in still pictures",
    change: (on) => app.remember("shadows", on) });
  let index = 0, amplitude = 0.06, shows = false, most = 1;
  const send = () => app.send("mode", { index: shows ? index : null, amplitude });
  const mode = (to) => { [index, shows] = [(to + most) % most, true]; send(); };
  const show = toggle({ label: "Show a mode by itself", title: "One shape of the flesh's motion swings; the simulation waits",
    change: (on) => { shows = on; send(); } });
  const pick = slider({ key: "mode", label: "Mode", title: "Which shape, from the most important on", low: 1, high: 2, step: 1,
    shown: whole(""),
    input: (x) => mode(Math.round(x) - 1) });
  const swing = slider({ key: "amplitude", label: "Swing", title: "How far the surface moves at most, as a share of the character's size",
    low: 0.005,
    high: 0.3, log: true, usual: 0.06, shown: (x) => `${(100 * x).toFixed(1)} %`, input: (x) => { amplitude = x; if (shows) send(); } });
  const steps = row(button({ text: "Previous", symbol: "left", click: () => mode(index - 1) }),
    button({ text: "Next", symbol: "right", click: () => mode(index + 1) }));
  const option = (name) => ({ value: name, text: (LAYERS[name] ?? [name])[0], title: LAYERS[name]?.[1] });
  const parts = [heading("Modes"), show, pick, swing, steps];
  return {
    nodes: [layers, skin, shadows, ...parts],
    hello({ layers: names, flesh, modes }) {
      layers.offer([{ value: null, text: "Skin", title: "The character as it looks" }, ...names.map(option)]);
      parts[0].hidden = show.hidden = flesh === false || Boolean(modes?.stay);
    },
    state({ layer, mode: shown, settings }) {
      layers.set(layer);
      skin.set(app.local.skin);
      skin.hidden = !BENEATH.includes(layer);
      shadows.set(app.local.shadows);
      if (settings.modes !== most) { most = Math.max(settings.modes, 1); pick.limits(1, most); }
      shows = shown !== null && shown !== undefined;
      if (shows) { index = shown; pick.set(index + 1); }
      show.set(shows);
      swing.hidden = steps.hidden = pick.hidden = !shows;
      this.note(shows ? `mode ${index + 1}` : layer ? option(layer).text : "");
    },
  };
}

export function createPanels(app, root) {
  const sections = [
    section(app, "play", "Play", "play", playSection(app)),
    section(app, "tune", "Tune", "nudge", tuneSection(app)),
    section(app, "look", "Look inside", "orbit", lookSection(app)),
    section(app, "build", "Paint & build", "paint", buildSection(app)),
    section(app, "take", "Take away", "download", takeSection(app)),
  ];
  root.append(...sections.map(({ node }) => node));
  return {
    hello: (hello) => sections.forEach((each) => each.hello(hello)),
    state: (state) => sections.forEach((each) => each.state(state)),
  };
}
