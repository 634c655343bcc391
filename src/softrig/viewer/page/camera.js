// The camera: it orbits a target, pans, zooms towards the pointer, and glides to where it is sent.
import { add, clamp, cross, dot, lookAt, mix, multiply, perspective, scale, sub, transform, unit } from "./math.js";

const FIELD_OF_VIEW = (30 * Math.PI) / 180; // a long lens: bodies look like bodies, not like balloons
const START = { azimuth: 0.55, elevation: 0.14 };
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Camera {
  constructor() {
    Object.assign(this, { target: [0, 0, 0], distance: 3, ...START, width: 1, height: 1, size: 1, goal: null });
    this.update();
  }

  resize(width, height) { this.width = Math.max(width, 1); this.height = Math.max(height, 1); this.update(); }

  get place() { const { target, distance, azimuth, elevation } = this; return { target, distance, azimuth, elevation }; }
  set place({ target, distance, azimuth, elevation }) {
    Object.assign(this, { target, distance, azimuth, elevation, goal: null });
    this.update();
  }

  update() {
    const { target, distance, azimuth, elevation } = this;
    this.back = [Math.cos(elevation) * Math.sin(azimuth), Math.sin(elevation), Math.cos(elevation) * Math.cos(azimuth)];
    this.eye = add(target, scale(this.back, distance));
    this.right = unit(cross([0, 1, 0], this.back));
    this.up = cross(this.back, this.right);
    this.near = Math.max(distance - 3 * this.size, distance * 0.02);
    this.far = distance + 12 * this.size;
    this.projection = perspective(FIELD_OF_VIEW, this.width / this.height, this.near, this.far);
    this.matrix = multiply(this.projection, lookAt(this.eye, target, [0, 1, 0]));
  }

  // Metres that one pixel spans at a point.
  pixel(point) { return (2 * Math.tan(FIELD_OF_VIEW / 2) * Math.max(dot(sub(this.eye, point), this.back), this.near)) / this.height; }

  // All of a box, with air around it.
  frame([low, high], glide = true, place = {}) {
    const middle = scale(add(low, high), 0.5), half = scale(sub(high, low), 0.5);
    this.size = 2 * Math.hypot(...half) || 1;
    const tall = Math.tan(FIELD_OF_VIEW / 2), wide = tall * (this.width / this.height);
    const around = Math.hypot(half[0], half[2]); // as it is seen from any side
    const distance = 1.12 * Math.max(half[1] / tall, around / wide) + 0.6 * around;
    this.go({ target: middle, distance, ...place }, glide);
  }

  home(bounds, glide = true) { this.frame(bounds, glide, START); }

  go(place, glide) {
    if (!glide || calm.matches) this.place = { ...this.place, ...place };
    else this.goal = { ...this.place, ...place };
  }

  // One picture's worth of gliding; true while it moves.
  advance(seconds) {
    if (!this.goal) return false;
    const t = 1 - Math.exp(-9 * seconds), { goal } = this;
    this.target = this.target.map((x, i) => mix(x, goal.target[i], t));
    for (const name of ["distance", "azimuth", "elevation"]) this[name] = mix(this[name], goal[name], t);
    const turns = Math.abs(goal.azimuth - this.azimuth) + Math.abs(goal.elevation - this.elevation);
    const left = Math.hypot(...sub(goal.target, this.target)) / this.size + Math.abs(goal.distance / this.distance - 1);
    if (turns + left < 1e-3) this.place = goal;
    this.update();
    return true;
  }

  orbit(dx, dy) {
    this.goal = null;
    this.azimuth -= dx * 0.008;
    this.elevation = clamp(this.elevation + dy * 0.008, -1.2, 1.5);
    this.update();
  }

  pan(dx, dy) {
    this.goal = null;
    const metres = this.pixel(this.target);
    this.target = add(this.target, add(scale(this.right, -dx * metres), scale(this.up, dy * metres)));
    this.update();
  }

  // What lies under the pointer stays there.
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    this.goal = null;
    const distance = clamp(this.distance * factor, 0.05 * this.size, 20 * this.size);
    const pointed = this.onPlane(x, y, this.target), share = 1 - distance / this.distance;
    this.target = add(this.target, scale(sub(pointed, this.target), share));
    this.distance = distance;
    this.update();
  }

  ray(x, y) {
    const tall = Math.tan(FIELD_OF_VIEW / 2), u = ((2 * x - this.width) / this.height) * tall, v = (1 - (2 * y) / this.height) * tall;
    return { origin: this.eye, direction: unit(sub(add(scale(this.right, u), scale(this.up, v)), this.back)) };
  }

  // Where the pointer's ray meets the plane through `point` that faces the camera.
  onPlane(x, y, point) {
    const { origin, direction } = this.ray(x, y);
    return add(origin, scale(direction, dot(sub(point, origin), this.back) / dot(direction, this.back)));
  }

  // Pixels from the canvas' top left corner, and the depth in metres (negative: behind the camera).
  project(point) {
    const [x, y, , w] = transform(this.matrix, point);
    return [((x / w + 1) / 2) * this.width, ((1 - y / w) / 2) * this.height, w];
  }
}
