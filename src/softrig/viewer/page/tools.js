// What the pointer does: six tools over one camera. A drag that begins beside the body always orbits.
import { add, length, scale, sub } from "./math.js";

export const TOOLS = [
  { name: "orbit", text: "Orbit", hint: "Drag turns, right drag or Shift moves, wheel or pinch zooms" },
  { name: "pull", text: "Pull", hint: "Drag the flesh: a spring from the picked point to the pointer" },
  { name: "poke", text: "Poke", hint: "Press a ball into the flesh; the wheel changes its size while hovering" },
  { name: "pose", text: "Pose", hint: "Drag a joint; with Shift it turns" },
  { name: "root", text: "Root", hint: "Drag the whole character and shake it; with Shift it turns" },
  { name: "paint", text: "Paint", hint: "Paint softness; [ and ] change the brush" },
];
const GRAB = 22; // pixels around a joint
const CORAL = [1.0, 0.56, 0.42, 1], SKY = [0.55, 0.78, 1.0, 1], WHITE = [1, 1, 1, 0.95], FAINT = [1, 1, 1, 0.22], SHADE = [0, 0, 0, 0.35];

export class Tools {
  // `app` gives camera, renderer, positions, send, local and hello.
  constructor(app, canvas) {
    Object.assign(this, { app, canvas, drag: null, hover: null, pointer: null, moved: false, pointers: new Map(), pulls: 0 });
    this.marking = null; // the name of a region to mark
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(end, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => { this.pointer = null; this.moved = true; });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", () => this.name === "root" && this.app.resetPose());
  }

  // Nothing is held or pointed at any more: another tool was chosen.
  rest() {
    this.finish();
    this.hover = this.marking = null;
    this.moved = true;
  }

  get name() { return this.app.local.tool; }

  at(event) { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }

  down(event) {
    const place = this.at(event), { app } = this;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, place);
    if (this.pointers.size > 2) return;
    if (this.pointers.size === 2) { this.finish(); this.drag = { kind: "pinch", last: [...this.pointers.values()] }; return; }
    this.pointer = place;
    app.camera.goal = null;
    const pans = event.button !== 0 || (event.shiftKey && !event.altKey),
      navigates = event.button !== 0 || event.altKey || (this.name === "orbit" && !this.marking);
    this.drag = (navigates ? null : this.begin(place, event)) ?? { kind: pans ? "pan" : "orbit", last: place };
    app.redraw();
  }

  begin(place, event) {
    const { app } = this, [x, y] = place;
    if (this.marking) {
      const hit = app.pick(x, y);
      if (!hit) return null;
      app.send("add_handle", { name: this.marking, vertex: hit.vertex });
      this.marking = null;
      app.hint(null);
      return { kind: "nothing" };
    }
    if (this.name === "pose") {
      const joint = this.jointAt(x, y);
      if (joint === null) return null;
      return { kind: event.shiftKey ? "turn joint" : "joint", joint, start: place, anchor: this.joint(joint), to: this.joint(joint) };
    }
    const hit = app.pick(x, y);
    if (!hit) return null;
    if (this.name === "pull") {
      app.hintDone();
      const id = `${app.page}-${++this.pulls}`;
      app.send("pull", { id, vertex: hit.vertex, to: hit.point });
      return { kind: "pull", id, vertex: hit.vertex, anchor: hit.point, to: hit.point };
    }
    if (this.name === "poke") return { kind: "poke", anchor: add(hit.point, scale(app.camera.back, 0.35 * this.pokeRadius)), changed: true };
    const { offset, turn: [, turn] } = app.state.root;
    if (this.name === "root") return { kind: event.shiftKey ? "turn root" : "root", start: place, anchor: hit.point, offset, turn };
    if (this.name === "paint") { this.dab(hit); return { kind: "paint", last: hit.point }; }
    return null;
  }

  get pokeRadius() { return this.app.local.poke * this.app.renderer.size; }

  move(event) {
    const place = this.at(event);
    this.pointer = place;
    this.moved = true;
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, place);
    const { drag } = this, { camera } = this.app;
    if (!drag) return;
    if (drag.kind === "pinch") {
      const [[ax, ay], [bx, by]] = drag.last, [[cx, cy], [dx, dy]] = [...this.pointers.values()];
      camera.zoom(Math.hypot(ax - bx, ay - by) / Math.max(Math.hypot(cx - dx, cy - dy), 1), (cx + dx) / 2, (cy + dy) / 2);
      camera.pan((cx + dx - ax - bx) / 2, (cy + dy - ay - by) / 2);
      drag.last = [...this.pointers.values()];
    } else if (drag.kind === "orbit" || drag.kind === "pan") {
      camera[drag.kind](place[0] - drag.last[0], place[1] - drag.last[1]);
      drag.last = place;
    } else drag.changed = true;
    this.app.redraw();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return; // let go already
    if (this.drag?.changed) this.carry(); // the very last movement counts: a flick is a fast release
    const pinched = this.drag?.kind === "pinch";
    this.finish();
    // Of two fingers one is lifted: the other goes on turning the view.
    if (pinched && this.pointers.size === 1) this.drag = { kind: "orbit", last: [...this.pointers.values()][0] };
    this.moved = true;
  }

  finish() {
    const { drag, app } = this;
    this.drag = null;
    if (drag?.kind === "pull") app.send("release", { id: drag.id });
    if (drag?.kind === "poke") app.send("poke", { centre: null });
    app.redraw();
  }

  wheel(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1);
    if (this.name === "poke" && this.hover && !event.ctrlKey) {
      this.app.remember("poke", Math.min(0.2, Math.max(0.01, this.app.local.poke * Math.exp(-pixels * 0.0015))));
    } else if (event.shiftKey) this.app.camera.pan(-event.deltaX - (event.deltaX ? 0 : pixels), event.deltaX ? -pixels : 0);
    // Browsers report a pinch on a touch pad as a wheel with Ctrl, in small steps.
    else this.app.camera.zoom(Math.exp(Math.min(Math.max(pixels, -240), 240) * (event.ctrlKey ? 0.011 : 0.0014)), ...this.at(event));
    this.app.redraw();
  }

  // Once a picture: sends what the drag has become, and looks what lies under the pointer. True if something is to be drawn.
  advance() {
    if (this.drag?.changed) { this.drag.changed = false; this.carry(); return true; }
    if (this.drag) return false;
    if (!this.moved) return false;
    this.moved = false;
    const before = this.hover, [x, y] = this.pointer ?? [];
    this.hover = null;
    if (this.pointer && this.name === "pose" && !this.marking) { const joint = this.jointAt(x, y); this.hover = joint === null ? null : { joint }; }
    else if (this.pointer && (this.name !== "orbit" || this.marking)) this.hover = this.app.pick(x, y);
    this.canvas.title = this.hover?.joint === undefined ? "" : this.app.hello.joints[this.hover.joint].name;
    const draws = this.name === "paint" || this.name === "poke"; // a ring or a ball stands for the pointer
    this.canvas.style.cursor = this.marking ? "crosshair" : !this.hover ? "default" : draws ? "none" : "grab";
    return Boolean(before || this.hover);
  }

  carry() {
    const { app, drag } = this, { camera } = app, [x, y] = this.pointer ?? [0, 0];
    if (!this.pointer) return;
    const on = (point) => camera.onPlane(x, y, point);
    if (drag.kind === "pull") app.send("pull", { id: drag.id, vertex: drag.vertex, to: (drag.to = on(drag.anchor)) });
    if (drag.kind === "poke") { drag.centre = on(drag.anchor); app.send("poke", { centre: drag.centre, radius: this.pokeRadius }); }
    if (drag.kind === "joint") app.send("drag_joint", { joint: drag.joint, to: (drag.to = on(drag.anchor)) });
    if (drag.kind === "turn joint") {
      // About the line of sight, as far as the pointer has gone around the joint.
      const [cx, cy] = camera.project(drag.anchor), angle = ([px, py]) => Math.atan2(py - cy, px - cx);
      app.send("turn_joint", { joint: drag.joint, angles: scale(camera.back, angle(drag.start) - angle([x, y])) });
    }
    if (drag.kind === "root") app.send("shake", { offset: add(drag.offset, sub(on(drag.anchor), drag.anchor)) });
    if (drag.kind === "turn root") app.send("turn_root", { angles: [0, drag.turn + (x - drag.start[0]) * 0.01, 0] });
    if (drag.kind === "paint") {
      const hit = app.pick(x, y);
      this.hover = hit;
      if (hit && length(sub(hit.point, drag.last)) > 0.2 * app.local.brush.radius) { this.dab(hit); drag.last = hit.point; }
    }
  }

  dab(hit) {
    this.hover = hit;
    this.app.send("brush", { vertex: hit.vertex, ...this.app.local.brush });
  }

  joint(index) { const { handles } = this.app; return [handles[3 * index], handles[3 * index + 1], handles[3 * index + 2]]; }

  jointAt(x, y) {
    const { handles, camera } = this.app;
    let best = null, nearest = GRAB;
    for (let i = 0; handles && i < handles.length / 3; i++) {
      const [jx, jy] = camera.project(this.joint(i)), distance = Math.hypot(jx - x, jy - y);
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    return best;
  }

  // What the tools add to the picture.
  view(view) {
    const { app, drag, hover, name, pokeRadius } = this;
    const ring = (radius, colour) => Object.assign(view, { brush: [...hover.point, radius], brushColour: colour.slice(0, 3) });
    if (name === "paint" && hover && !this.marking) ring(app.local.brush.radius, WHITE);
    else if (hover?.point && (this.marking || (name === "pull" && !drag))) ring(0.022 * app.renderer.size, CORAL);
    if (drag?.kind === "poke") view.ball = [...(drag.centre ?? drag.anchor), pokeRadius];
    else if (name === "poke" && hover && !drag) view.ball = [...add(hover.point, scale(app.camera.back, pokeRadius)), pokeRadius];
    view.marks = (marks, camera) => this.mark(marks, camera);
  }

  mark(marks, camera) {
    const { app, drag, hover } = this;
    if (drag?.kind === "pull") {
      const at = 3 * drag.vertex, { positions } = app;
      if (positions) marks.band(camera.project([positions[at], positions[at + 1], positions[at + 2]]), camera.project(drag.to), CORAL);
    }
    if (this.name === "pose" && app.handles) {
      const { joints } = app.hello, places = joints.map((_, i) => camera.project(this.joint(i))), active = drag?.joint ?? hover?.joint;
      joints.forEach(({ parent }, i) => { if (parent >= 0) marks.line(places[parent], places[i], FAINT, 1.4); });
      places.forEach((place, i) => {
        const on = i === active;
        marks.disc(place, SHADE, on ? 11 : 7.5);
        marks.disc(place, on ? CORAL : SKY, on ? 9 : 5.8);
        marks.disc(place, WHITE, on ? 3.4 : 2);
      });
      if (drag?.kind === "joint") marks.band(places[drag.joint], camera.project(drag.to), SKY);
    }
    if (drag?.kind === "root" || drag?.kind === "turn root") {
      const place = this.pointer ?? drag.start;
      marks.disc(place, SHADE, 19, 0.8);
      marks.disc(place, CORAL, 18, 0.84);
    }
  }
}
