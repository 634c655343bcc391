// Paint & build, and take away: what changes the model, and what leaves the viewer.
import { address } from "./connection.js";
import { button, element, heading, list, namer, quiet, row, select, slider, toggle } from "./controls.js";
import { icon } from "./icons.js";

const metres = (x) => (x < 0.01 ? `${(1000 * x).toFixed(1)} mm` : x < 1 ? `${(100 * x).toFixed(1)} cm` : `${x.toFixed(2)} m`);
const seconds = (x) => (x >= 90 ? `${Math.round(x / 60)} min` : `${Math.ceil(x)} s`);
const percent = (x) => `${Math.round(100 * x)} %`;
const whole = (x) => String(Math.round(x));
const isNumber = (x) => x !== null && x !== undefined;

function progress() {
  const bar = element("i"), text = element("span");
  const node = element("div", { class: "progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, bar, text);
  node.set = (share, ...words) => {
    bar.style.width = `${100 * share}%`;
    text.textContent = words.filter(Boolean).join(" · ");
    node.setAttribute("aria-valuenow", Math.round(100 * share));
  };
  return node;
}

const left = (time) => isNumber(time) && `about ${seconds(time)} left`;
const entry = (name, note, ...buttons) => element("li", {}, element("span", { title: name }, name),
  note ? element("small", {}, note) : null, ...buttons);
const cross = (title, click) => button({ symbol: "close", title, click });

// A character that was never built has no flesh: the first thing to offer.
export function createOffer(app, node) {
  const bar = progress(), cancel = button({ text: "Cancel", click: () => app.send("cancel_build") });
  const build = button({ text: "Build the flesh", symbol: "build", kind: "primary", title: "A minute, or a few",
    click: () => app.send("build") });
  node.append(element("p", {}, "This character has no flesh yet: what you see is plain skinning."), bar, row(cancel, build));
  return {
    state({ build: { running, done, stage, left_s } }) {
      node.hidden = app.hello?.flesh !== false || !app.hello.can.build;
      bar.hidden = cancel.hidden = !running;
      build.hidden = running;
      bar.set(done, stage, left(left_s));
    },
  };
}

function paintPart(app) {
  const change = (name) => (x) => app.remember("brush", { ...app.local.brush, [name]: x });
  const paint = toggle({ label: "Paint softness", title: "Drag over the skin to paint how soft it is (key 6)",
    change: (on) => app.choose(on ? "paint" : "pull") });
  const pose = select({ label: "For", title: "Painted for all poses, or for one of them",
    change: (name) => app.send("paint", { on: true, pose: name }) });
  const value = slider({ key: "brush-value", label: "Softness",
    title: "0: follows the bones exactly, 1: as soft as the preset. X swaps the two",
    low: 0, high: 1, step: 0.05, usual: 0, local: true, input: change("value") });
  const radius = slider({ key: "brush-radius", label: "Radius", title: "Along the surface. Keys [ and ]",
    low: 0.005, high: 0.5, log: true, usual: 0.05, shown: metres, local: true, input: change("radius") });
  const strength = slider({ key: "brush-strength", label: "Strength", title: "How much one dab changes",
    low: 0.05, high: 1, step: 0.05, usual: 0.5, shown: percent, local: true, input: change("strength") });
  const undo = button({ text: "Undo stroke", symbol: "undo", click: () => app.send("paint_undo") });
  const clear = button({ text: "Clear", symbol: "bin", title: "Nothing painted: as soft as the preset, with firm hands, feet and heads unless the project says otherwise", click: () => app.send("paint_clear") });
  let size = 0;
  return {
    node: element("div", {}, paint, pose, value, radius, strength, row(undo, clear)),
    state({ paint: { on, pose: painted, can_undo }, poses }) {
      if (size !== app.renderer.size) { ({ size } = app.renderer); radius.limits(0.003 * size, 0.3 * size); }
      paint.set(on);
      pose.offer([[null, "all poses"], ...poses.map(({ name }) => [name, `only ${name}`])]);
      pose.set(painted);
      for (const [control, name] of [[value, "value"], [radius, "radius"], [strength, "strength"]]) control.set(app.local.brush[name]);
      undo.disabled = !can_undo;
    },
  };
}

function sketchPart(app) {
  const record = toggle({ label: "Record my pulls", title: "Each pull becomes a shape of a new basis",
    change: (on) => app.send("sketch_record", { on }) });
  const size = slider({ key: "sketch-size", label: "Modes of the new basis", title: "How many shapes are kept", low: 2, high: 60, step: 1,
    usual: 20, shown: whole, input: () => {} });
  const build = button({ text: "Make the basis", kind: "primary", title: "Solve the recorded pulls and load the new basis",
    click: () => app.send("sketch_build", { size: size.value() }) });
  const clear = button({ text: "Forget pulls", symbol: "bin", title: "Begin the sketch anew", click: () => app.send("sketch_clear") });
  const count = quiet("");
  return {
    node: element("div", {}, heading("Sketched basis"), record, count, size, row(clear, build)),
    state({ sketch, build: { running } }) {
      const pulls = sketch?.pulls ?? 0;
      record.set(sketch?.recording);
      count.textContent = pulls === 1 ? "1 pull recorded" : `${pulls} pulls recorded`;
      clear.disabled = build.disabled = !pulls || running;
    },
  };
}

export function buildSection(app) {
  const painting = paintPart(app), sketch = sketchPart(app);
  const poses = element("ul", { class: "entries" }), handles = element("ul", { class: "entries" });
  const capture = element("div", {}, heading("Training poses", "Poses at which the flesh is built"), poses,
    namer({ placeholder: "Name of this pose", text: "Capture", title: "The pose shown now becomes a training pose of the next build",
      done: (name) => app.send("capture_pose", { name }) }));
  const marking = element("div", {}, heading("Region handles", "Regions grow around handles; each has its own stiffness and modes"), handles,
    namer({ placeholder: "Name of a new region", text: "Mark", title: "Then click on the skin where it is",
      done: (name) => app.mark(name) }));
  const build = button({ text: "Build", symbol: "build", kind: "primary", click: () => app.send("build"),
    title: "Build the model anew with what was painted, captured and marked; it is swapped in when ready" });
  const cancel = button({ text: "Cancel", click: () => app.send("cancel_build") }), bar = progress(), message = quiet("");
  const file = element("input", { type: "file", accept: ".glb,.vrm,.softrig,.npz", hidden: true, "aria-label": "File" });
  file.addEventListener("change", () => { if (file.files[0]) app.upload(file.files[0]); file.value = ""; });
  const open = button({ text: "Open a file …", symbol: "upload", title: ".glb, .vrm, .softrig or a saved take (.npz), up to 200 MB; or drop it anywhere",
    click: () => file.click() });
  const pose = ({ name, captured }) => entry(name, captured ? "captured" : null,
    captured ? cross(`Remove the pose ${name}`, () => app.send("remove_pose", { name })) : null);
  const handle = ({ name }) => entry(name, null, cross(`Remove the handle ${name}`, () => app.send("remove_handle", { name })));
  return {
    nodes: [painting.node, capture, marking, sketch.node, heading("Build"), bar, message, row(build, cancel, open, file)],
    hello(hello) {
      painting.node.hidden = !hello.can.paint;
      capture.hidden = marking.hidden = build.hidden = !hello.can.build;
      sketch.node.hidden = !hello.can.sketch;
    },
    state(state) {
      painting.state(state);
      sketch.state(state);
      list(poses, state.poses, pose);
      list(handles, state.handles, handle);
      const { running, stage, done, left_s, message: words } = state.build;
      bar.hidden = cancel.hidden = !running;
      bar.set(done, stage, left(left_s));
      message.textContent = words ?? "";
      message.hidden = running || !words;
      build.disabled = running;
      this.note(running ? percent(done) : state.paint.on ? "painting" : state.unsaved.decisions ? "not saved" : "");
    },
  };
}

export function takeSection(app) {
  const clip = select({ label: "Clip" }), ending = select({ label: "As" });
  const bake = button({ text: "Bake", symbol: "download", kind: "primary",
    title: "Simulate the clip and write a file, exactly as it plays here",
    click: () => app.send("bake", { clip: clip.value() ?? "all", ending: ending.value() }) });
  const baking = element("div", {}, heading("Bake"), row(clip, ending), row(bake)), jobs = element("ul", { class: "entries jobs" });
  const picture = button({ text: "Picture", symbol: "picture", title: "Save a PNG of the view", keys: "P", click: () => app.picture() });
  const video = button({ text: "Video", symbol: "video", title: "Record the view as WebM until stopped, at most a minute", keys: "V",
    click: () => app.video() });
  const record = button({ text: "Record live play", symbol: "record", title: "Poses, pulls and settings, to be replayed exactly",
    click: () => app.send("record", { on: !app.state.recording.on }) });
  const takes = element("ul", { class: "entries" }), live = element("div", {}, heading("Live play"), row(record), takes);
  const job = ({ id, what, done, url, failed, left_s }) => {
    const forget = cross(`Forget ${what}`, () => app.send("forget_job", { id }));
    if (failed) return entry(what, failed, forget);
    const get = () => element("a", { class: "download", href: address(url), download: "", title: `Download ${what}` }, icon("download"),
      element("span", {}, "Get"));
    if (url) return entry(what, null, get(), forget);
    const bar = progress();
    bar.set(done, what, left(left_s));
    return element("li", {}, bar, forget);
  };
  const take = ([name, playing]) => entry(name, null,
    button({ symbol: playing ? "stop" : "play", title: playing ? "Stop the replay" : `Replay ${name} exactly`,
      click: () => app.send("replay", { take: playing ? null : name }) }),
    button({ symbol: "build", title: `Bake ${name}, with all that was pulled and tuned in it`,
      click: () => app.send("bake_take", { take: name, ending: ending.value() }) }),
    button({ symbol: "save", title: `Save ${name} itself, to be dropped here another day`,
      click: () => app.send("save_take", { take: name }) }),
    cross(`Forget ${name}`, () => app.send("forget_take", { take: name })));
  return {
    nodes: [baking, jobs, heading("Picture and video"), row(picture, video), live],
    hello({ clips, endings, can }) {
      baking.hidden = live.hidden = !can.take;
      clip.hidden = bake.hidden = !can.bake; // without clips there may be takes to bake
      clip.offer([["all", "all clips"], ...clips.map(({ name }) => [name, name])]);
      ending.offer((endings ?? []).map((name) => [name, name]));
    },
    state({ jobs: all, recording, replaying }) {
      list(jobs, all, job);
      record.querySelector("span").textContent = recording.on ? `Stop · ${recording.seconds.toFixed(0)} s` : "Record live play";
      record.classList.toggle("live", recording.on);
      list(takes, recording.takes.map((name) => [name, name === replaying]), take);
      this.note(recording.on ? "recording" : all.some(({ url, failed }) => !url && !failed) ? "baking" : "");
    },
  };
}
