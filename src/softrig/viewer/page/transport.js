// The bar at the bottom: play, scrub, speed, which view, small numbers; and the plots above it.
import { button, choice, element, select, slider } from "./controls.js";
import { Plot } from "./plots.js";

const clock = (seconds) => seconds.toFixed(2);
const VIEWS = [
  { value: "soft", text: "Soft", title: "The simulated flesh" },
  { value: "plain", text: "Plain", title: "Plain skinning, without flesh dynamics" },
  { value: "both", text: "Both", title: "Soft, with plain skinning over it (B)" },
  { value: "split", text: "Split", title: "Plain on the left, soft on the right (S)" },
];
const NUMBERS = [
  ["step", "ms step", "Time of one inner step: median / 99th percentile, milliseconds"],
  ["fps", "fps", "Pictures a second in this page"],
  ["modes", "modes", "Shapes the flesh moves in"],
  ["offset", "mm off plain", "Largest distance of the flesh from plain skinning, millimetres"],
];
const PLACE_EVERY = 60; // milliseconds: drawing the bar anew costs more than it tells
const SCRUB_QUIET = 300; // milliseconds after a scrub in which frames from before it still arrive

export function createTransport(app, root, details) {
  const play = button({ symbol: "pause", title: "Pause (space)", kind: "round primary",
    click: () => app.send("play", { on: !app.state.playing }) });
  const clip = select({ label: "Clip", hideLabel: true, title: "Clip", change: (name) => app.send("clip", { name }) });
  const scrub = element("input", { type: "range", min: 0, max: 1, step: "any", id: "scrub", "aria-label": "Time in the clip, seconds" });
  const time = element("span", { class: "time" });
  const loop = button({ symbol: "loop", title: "Loop (L)", click: () => app.send("loop", { on: !app.state.loop }) });
  const speed = slider({ key: "speed", label: "Speed", title: "Slow motion does not change the motion. Double click: ×1", low: 0.1, high: 2,
    step: 0.05,
    usual: 1, shown: (x) => `×${x.toFixed(2)}`, input: (value) => app.send("speed", { value }) });
  const show = choice({ label: "View", hideLabel: true, options: VIEWS, pick: (what) => app.send("show", { what }) });
  const behind = element("span", { class: "chip warn", hidden: true, title: "The machine cannot keep up: time runs slower than the clock" },
    "behind");
  const numbers = Object.fromEntries(NUMBERS.map(([key]) => [key, element("b", {}, "–")]));
  const shown = NUMBERS.map(([key, name, title]) => element("span", { class: `number ${key}`, title }, numbers[key], element("small", {}, name)));
  const more = button({ symbol: "chart", title: "Plots (D)", click: () => app.remember("details", !app.local.details) });
  root.append(scrub, element("div", { class: "controls" }, play, clip, time, loop, speed, show, element("span", { class: "space" }), behind,
    ...shown, more));

  const canvas = (label) => element("canvas", { role: "img", "aria-label": `${label} over the last seconds` });
  const plots = {
    step: new Plot(canvas("Time of a step"), ["step ms"], { format: (x) => x.toFixed(2), least: 0.1 }),
    energy: new Plot(canvas("Energy"), ["kinetic J", "elastic J"], { least: 1e-6 }),
    weights: new Plot(canvas("Pose weights"), [], { format: (x) => x.toFixed(2), least: 1 }),
  };
  const counters = element("dl", { class: "counters" });
  const figure = (caption, content, title) => element("figure", { title }, element("figcaption", {}, caption), content);
  details.append(
    figure("Step time", plots.step.canvas, "Milliseconds of the last inner steps"),
    figure("Energy", plots.energy.canvas, "Joule"),
    figure("Pose weights", plots.weights.canvas, "How much each training pose counts; they sum to one"),
    figure("Counters", counters, "How often a step needed help"));
  app.onLocal(() => { details.hidden = !app.local.details; more.setAttribute("aria-pressed", app.local.details); });
  details.hidden = !app.local.details;

  let held = false, freeAt = 0, placed = 0, duration = 0;
  const place = (seconds) => {
    scrub.value = seconds;
    scrub.style.setProperty("--part", `${duration ? (100 * seconds) / duration : 0}%`);
    scrub.setAttribute("aria-valuetext", `${clock(seconds)} seconds`);
    time.textContent = duration ? `${clock(seconds)} / ${clock(duration)} s` : "rest pose";
  };
  const seek = (seconds) => { freeAt = performance.now() + SCRUB_QUIET; place(seconds); app.send("seek", { time: seconds }); };
  scrub.addEventListener("pointerdown", () => { held = true; });
  const letGo = () => { held = false; freeAt = performance.now() + SCRUB_QUIET; };
  for (const end of ["pointerup", "pointercancel"]) scrub.addEventListener(end, letGo);
  scrub.addEventListener("input", () => seek(Number(scrub.value)));
  // The page's own arrow keys scrub by frames.
  scrub.addEventListener("keydown", (event) => { if (event.key.startsWith("Arrow")) event.preventDefault(); });

  function write(now) {
    numbers.step.textContent = `${now.step_ms.median.toFixed(2)} / ${now.step_ms.p99.toFixed(2)}`;
    numbers.offset.textContent = (now.offset_mm ?? 0).toFixed(now.offset_mm < 10 ? 1 : 0);
    behind.hidden = !now.behind;
    plots.step.push([now.step_ms.last ?? now.step_ms.median]);
    if (now.energy) {
      const { kinetic, elastic } = now.energy;
      plots.energy.rename(elastic === undefined ? ["kinetic J"] : ["kinetic J", "elastic J"]);
      plots.energy.push([kinetic, elastic]);
    }
    if (now.weights?.length) plots.weights.push(now.weights);
    if (!app.local.details) return;
    const lines = Object.entries({ "steps a second": Math.round(now.rate ?? 0), ...now.counters });
    const line = ([name, value]) => [element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, Number(value).toLocaleString("en"))];
    counters.replaceChildren(...lines.flatMap(line));
  }

  return {
    seekBy(seconds) { if (duration) seek((Number(scrub.value) + seconds + duration) % duration); },
    hello({ clips, poses }) {
      clip.offer([[null, "Rest pose"], ...clips.map(({ name }) => [name, name])]);
      clip.hidden = time.hidden = loop.hidden = scrub.hidden = !clips.length;
      plots.weights.rename((poses ?? []).map((pose) => pose.name ?? pose));
      plots.weights.canvas.parentNode.hidden = !poses?.length;
    },
    state(state) {
      play.change(state.playing ? "pause" : "play", state.playing ? "Pause (space)" : "Play (space)");
      clip.set(state.clip);
      duration = app.hello?.clips.find(({ name }) => name === state.clip)?.duration ?? 0;
      scrub.max = duration || 1;
      scrub.disabled = !duration;
      speed.set(state.speed);
      loop.setAttribute("aria-pressed", state.loop);
      show.set(state.show);
      numbers.modes.textContent = state.settings.modes;
      if (!duration) place(0);
    },
    frame(header) {
      const now = performance.now();
      if (!held && now > freeAt && duration && now - placed > PLACE_EVERY) { placed = now; place(header.clip_time); }
      if (header.numbers) write(header.numbers);
    },
    fps(value) { numbers.fps.textContent = value ? value.toFixed(0) : "–"; },
  };
}
