// The page: joins connection, picture, tools and controls. All state that matters is the server's; what is only a matter
// of looking (theme, open section, camera) is remembered by this browser.
import { App, keep, stored } from "./app.js";
import { decodeCoat } from "./coat.js";
import { Connection } from "./connection.js";
import { beat } from "./controls.js";
import { createFurniture } from "./furniture.js";
import { listen } from "./keyboard.js";
import { add, scale, sub } from "./math.js";
import { createPanels } from "./panels.js";
import { Renderer } from "./renderer.js";
import { Tools } from "./tools.js";
import { createTransport } from "./transport.js";
import { createOffer } from "./workbench.js";

const HINTED = 20000; // milliseconds, after which the hint for newcomers goes
const STILL = 260; // milliseconds without a change, after which one picture is drawn as well as possible
const find = (id) => document.getElementById(id), canvas = find("picture");

function createRenderer() {
  try { return new Renderer(canvas); } catch (error) { find("waiting").replaceChildren(error.message); throw error; }
}

const app = new App(createRenderer(), canvas), { camera, renderer } = app;
const tools = (app.tools = new Tools(app, canvas));
const furniture = createFurniture(app), panels = createPanels(app, find("panel"));
const transport = createTransport(app, find("transport"), find("details")), offer = createOffer(app, find("offer"));
app.onLocal(() => { if (app.state) panels.state(app.state); });
listen(app, tools, transport);

let version = null, shownName = null, pending = null, waiting = [], followed = null, paintAsked = false;

const on = {
  hello(message) {
    app.hello = message;
    furniture.hello(message);
    panels.hello(message);
    transport.hello(message);
    if (app.state) on.state(app.state);
  },
  state(message) {
    app.state = message;
    // The tool is this browser's, painting the server's: after a reload they are brought together, once.
    if (!paintAsked && app.local.tool === "paint" && !message.paint.on) app.send("paint", { on: true, pose: message.paint.pose });
    paintAsked = true;
    if (!message.layer && renderer.layer.name) renderer.clearLayer();
    for (const part of [furniture, panels, transport, offer]) part.state(message);
    app.redraw();
  },
  told: ({ level, text }) => app.tell(level, text),
  geometry(header, arrays) {
    renderer.setGeometry(header, arrays);
    const known = shownName === app.hello.name; // a new build of the same character, or a connection that came back
    [version, shownName, app.firstView, app.handles, followed] = [header.version, app.hello.name, header.view, null, null];
    camera.size = header.size;
    const place = stored(sessionStorage, `softrig camera ${shownName}`);
    measure();
    if (!known && place.target) camera.place = place;
    else if (!known) camera.home(app.firstView, false);
    find("waiting").hidden = true;
    if (!app.local.hinted && app.hello.flesh !== false) {
      app.hint("Drag the flesh to pull it. Drag beside it to turn the view.");
      setTimeout(() => app.hintDone(), HINTED);
    }
    app.redraw();
  },
  coat(header, arrays) {
    const worn = (decoded) => { if (header.version === version) { renderer.surface.wear(decoded, !renderer.quality.isSoftware); app.redraw(); } };
    decodeCoat(header, arrays).then(worn, () => app.tell("warning", "The pictures on the skin cannot be shown."));
  },
  layer(header, arrays) {
    renderer.setLayer(header, arrays);
    app.layer = header;
    furniture.legend();
    app.redraw();
  },
  frame(header, arrays) {
    if (pending) waiting.push(pending.header.number); // latest wins
    pending = { header, arrays };
    beat.count++;
  },
};

app.connection = new Connection((kind, header, arrays) => on[kind]?.(header, arrays), (connected) => {
  find("lost").hidden = connected;
  document.body.classList.toggle("offline", !connected);
  if (connected) [pending, waiting] = [null, []];
});

function take({ header, arrays }) {
  if (header.version !== version) return;
  app.frame = header;
  if (arrays.handles) app.handles = arrays.handles;
  if (renderer.setFrame(header, arrays)) app.redraw();
  transport.frame(header);
  api.frames++;
  if (header.field_range !== undefined && header.field_range !== app.range) { app.range = header.field_range; furniture.legend(); }
  const { low, high } = renderer.surface, middle = scale(add(low, high), 0.5);
  if (app.local.follow && followed) {
    const [x, , z] = sub(middle, followed);
    camera.target = add(camera.target, [x, 0, z]);
    camera.update();
    app.redraw();
  }
  followed = middle;
}

// `plainly`: the character alone, without what the tools add.
app.draw = (level, { plainly = false } = {}) => {
  const { split, overlay, skin } = app.local, view = { theme: app.theme, show: app.state?.show ?? "soft", split, overlay, skin };
  if (!plainly) tools.view(view);
  renderer.draw(camera, view, level);
};

function measure() {
  const { width, height } = find("stage").getBoundingClientRect();
  camera.resize(width, height);
}

let last = performance.now(), drawnAt = 0, isFine = false, pictures = 0, counted = last;
function tick(now) {
  requestAnimationFrame(tick);
  const seconds = Math.min((now - last) / 1000, 0.1), plays = app.state?.playing && app.state.clip;
  last = now;
  if (!renderer.isReady(now)) return;
  const drawn = waiting;
  if (pending) {
    const frame = pending;
    [pending, waiting] = [null, []];
    drawn.push(frame.header.number);
    take(frame);
  }
  // A film has only pictures that are drawn: while one is recorded, also those in which nothing moves.
  if (camera.advance(seconds) | tools.advance() | renderer.prepare() | Boolean(app.film)) app.redraw();
  if (app.changed) {
    app.changed = isFine = false;
    app.draw();
    pictures++;
    drawnAt = now;
  } else if (!isFine && !app.film && now - drawnAt > (plays ? 6 * STILL : STILL) && renderer.surface) {
    app.draw(renderer.quality.best);
    isFine = true;
  }
  for (const number of drawn) app.send("drawn", { number });
}

const onPage = (action) => (x, y) => { const { left, top } = canvas.getBoundingClientRect(); return action(x, y, left, top); };

// For tests and the curious. Coordinates are pixels of the page.
const api = (window.softrig = {
  frames: 0,
  get connected() { return app.connection.connected; },
  get state() { return app.state; },
  get hello() { return app.hello; },
  lastFrame: () => app.frame && { number: app.frame.number, time: app.frame.time, replay: app.frame.replay, positions: renderer.surface.soft.positions },
  pick: onPage((x, y, left, top) => { const hit = app.pick(x - left, y - top); return hit && { vertex: hit.vertex, point: hit.point }; }),
  project: onPage((vertex, _, left, top) => {
    const [x, y] = camera.project([...app.positions.subarray(3 * vertex, 3 * vertex + 3)]);
    return [x + left, y + top];
  }),
  renderer: {
    fps: 0,
    get frameMs() { return renderer.quality.mean; },
    get level() { return renderer.quality.level; },
    set level(value) { renderer.quality.pin(value); },
    // { width, height, data }: RGBA bytes, lowest row first; `best`: with everything.
    pixels(best = false) { app.draw(best ? renderer.quality.best : undefined); return renderer.read(); },
  },
});

// A reload brings everything back as it was, so that is all there is to do after the graphics card forgot us.
canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
canvas.addEventListener("webglcontextrestored", () => location.reload());
addEventListener("pagehide", () => {
  keep(sessionStorage, `softrig camera ${shownName}`, camera.place);
});
new ResizeObserver(() => { measure(); app.redraw(); }).observe(find("stage"));
setInterval(() => {
  const now = performance.now();
  api.renderer.fps = (1000 * pictures) / (now - counted);
  transport.fps(api.renderer.fps);
  [pictures, counted] = [0, now];
}, 1000);
measure();
requestAnimationFrame(tick);
