// Draws everything: the room, the flesh, what lies inside it, and what the tools add.
import { rampTexels } from "./colours.js";
import { bufferOf, Programs, textureOf, vertexArray } from "./gl.js";
import { Inside } from "./inside.js";
import { Marks } from "./marks.js";
import { add, dot, scale, sub } from "./math.js";
import { Occlusion } from "./occlusion.js";
import { Quality } from "./quality.js";
import * as shaders from "./shaders.js";
import { Studio } from "./studio.js";
import { Surface } from "./surface.js";

const FINE = 6000; // vertices: where light at the vertices is as good as at the pixels
const LEGIBLE = 0.62; // exposure at which colours that mean something look like those of the legend
const GHOST = [0.5, 0.78, 1.0], BALL = [0.55, 0.78, 1.0];
const GLASS = { dark: [0.86, 0.84, 0.84], light: [0.42, 0.4, 0.42] }, WIRE = { dark: [...GHOST, 0.35], light: [0.05, 0.3, 0.6, 0.3] };

export class Renderer {
  constructor(canvas) {
    this.canvas = canvas;
    // Samples are our own matter (see `target`): those of a canvas can never be changed.
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: false, powerPreference: "high-performance" }));
    if (!gl) throw new Error("This browser offers no WebGL 2, which the picture needs.");
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    this.quality = new Quality(String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)));
    this.programs = new Programs(gl);
    this.studio = new Studio(gl, this.programs);
    this.inside = new Inside(gl, this.programs);
    this.marks = new Marks(gl);
    this.ramp = textureOf(gl, gl.RGBA8, 256, 1, gl.RGBA, gl.UNSIGNED_BYTE, rampTexels());
    this.ball = sphere(gl);
    this.layer = { name: null, onSurface: false };
    Object.assign(this, { surface: null, occlusion: null, samples: null, size: 1, fences: [], finished: 0 });
  }

  setGeometry(header, arrays) {
    this.occlusion?.close();
    this.surface?.close();
    this.surface = new Surface(this.gl, header, arrays);
    this.occlusion = new Occlusion(this.gl, this.surface, header.bounds);
    this.size = header.size;
    this.studio.settle(header.bounds, header.size);
    this.clearLayer();
  }

  // False if nobody could see the difference.
  setFrame(header, arrays) {
    const changed = this.surface.setFrame(header, arrays);
    if (arrays.layer_points && (changed || this.inside.count === 0)) this.inside.move(arrays.layer_points);
    return changed;
  }

  setLayer(header, arrays) {
    this.layer = { name: header.layer, onSurface: Boolean(arrays.field_colours) };
    this.surface?.setColours(arrays.field_colours);
    this.inside.set(arrays);
  }

  clearLayer() {
    this.layer = { name: null, onSurface: false };
    this.surface?.setColours(null);
    this.inside.clear();
  }

  // Work that is spread over many pictures. True when another picture is worth drawing.
  prepare() {
    const open = this.occlusion?.advance();
    if (!open) return false;
    this.surface.setOpen(open);
    this.occlusion = null;
    return true;
  }

  // `view`: theme, show, split, overlay ("ghost" or "wire"), skin (opacity over what lies inside), brush, ball, marks.
  draw(camera, view, level = this.quality.now) {
    const { gl, canvas, surface, studio } = this;
    const ratio = Math.min(devicePixelRatio || 1, level.ratio, Math.sqrt((level.most ?? Infinity) / (camera.width * camera.height)));
    const [width, height] = [camera.width, camera.height].map((side) => Math.max(1, Math.round(side * ratio)));
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const target = this.target(width, height, level.samples);
    const values = { ...studio.values(view.theme), resolution: [width, height], camera: camera.matrix, eye: camera.eye, ramp: this.ramp };
    for (const [skin, from, to] of this.sides(view)) {
      if (skin) Object.assign(values, studio.light(surface, skin, level, (each) => this.triangles(each)));
      gl.bindFramebuffer(gl.FRAMEBUFFER, target);
      gl.viewport(0, 0, width, height);
      gl.enable(gl.SCISSOR_TEST);
      gl.scissor(Math.round(from * width), 0, Math.round(to * width) - Math.round(from * width), height);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      studio.fill(camera, values, !target);
      if (!skin) continue;
      studio.shade(camera, values, surface, level.taps);
      this.body(camera, view, values, skin, level);
    }
    gl.disable(gl.SCISSOR_TEST);
    this.overlays(camera, view, values, ratio);
    if (target) {
      gl.bindFramebuffer(gl.READ_FRAMEBUFFER, target);
      gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
      gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }
    const sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    this.fences.push({ sync, since: performance.now(), isUsual: level === this.quality.now });
    gl.flush();
  }

  // Which skin is drawn from where to where, as shares of the width.
  sides({ show, split }) {
    const { surface } = this, soft = surface?.soft, plain = surface?.hasPlain ? surface.plain : soft;
    return show === "split" ? [[plain, 0, split], [soft, split, 1]] : [[show === "plain" ? plain : soft, 0, 1]];
  }

  // Whether the graphics card could take another picture: software ones fall behind without saying so. For every tick.
  isReady(now) {
    const { gl, fences } = this;
    while (fences.length && gl.getSyncParameter(fences[0].sync, gl.SYNC_STATUS) === gl.SIGNALED) {
      const { sync, since, isUsual } = fences.shift();
      gl.deleteSync(sync);
      if (isUsual && !this.occlusion) this.quality.measured(now - Math.max(since, this.finished));
      this.finished = now;
    }
    return fences.length < 2;
  }

  // A target with several samples a pixel; null: the canvas itself.
  target(width, height, samples) {
    const { gl } = this, key = `${width} ${height} ${samples}`;
    if (!samples || this.samples?.key === key) return samples ? this.samples.buffer : null;
    if (this.samples) {
      gl.deleteFramebuffer(this.samples.buffer);
      this.samples.parts.forEach((part) => gl.deleteRenderbuffer(part));
    }
    this.samples = { key, buffer: gl.createFramebuffer(), parts: [] };
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.samples.buffer);
    for (const [format, place] of [[gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.DEPTH_COMPONENT24, gl.DEPTH_ATTACHMENT]]) {
      const part = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, part);
      gl.renderbufferStorageMultisample(gl.RENDERBUFFER, samples, format, width, height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, part);
      this.samples.parts.push(part);
    }
    return this.samples.buffer;
  }

  triangles(skin) {
    const { gl, surface } = this;
    if (surface.isClosed) gl.enable(gl.CULL_FACE); // of a closed body nobody sees the inside
    gl.bindVertexArray(skin.array);
    gl.drawElements(gl.TRIANGLES, surface.triangles.length, gl.UNSIGNED_INT, 0);
    gl.disable(gl.CULL_FACE);
  }

  body(camera, view, values, skin, { taps, byVertex }) {
    const { gl, layer, surface, inside } = this, isSoft = skin === surface.soft;
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LESS);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const middle = scale(add(surface.low, surface.high), 0.5), around = 0.4 * Math.hypot(...sub(surface.high, surface.low));
    const depth = dot(sub(camera.eye, middle), camera.back);
    values.depths = [depth - around, depth + around];
    if (inside.isShown && isSoft) {
      inside.draw(values, view.theme, 0.5 * this.canvas.height * camera.projection[5]);
      this.glass(values, skin, view.skin, GLASS[view.theme]);
      return;
    }
    const coloured = (layer.onSurface || surface.hasField) && isSoft, { coat } = surface;
    const defines = {
      ...(byVertex && surface.count > FINE && { BY_VERTEX: 1 }), ...(view.brush && { BRUSH: 1 }), ...(!surface.isClosed && { OPEN: 1 }),
      ...(coat && !coloured && { COAT: 1, ...(coat.cuts && { CUT: 1 }) }),
    };
    this.programs.get(`body ${taps}`, () => shaders.bodyVertex(taps), () => shaders.bodyFragment(taps), defines).use(values, {
      matte: coloured ? 1 : 0, exposure: coloured ? LEGIBLE : surface.exposure, show_field: surface.hasField && isSoft ? 1 : 0,
      ...(view.brush && { brush: view.brush, brush_colour: view.brushColour }), ...(coat && { coat_map: coat.texture }),
    });
    this.triangles(skin);
    if (view.show !== "both" || !surface.hasPlain) return;
    if (view.overlay === "wire") this.wire(values, view.theme);
    else this.glass(values, surface.plain, 1.15, GHOST);
  }

  // Only its foremost surface: depths first, then colours where they match.
  glass(values, skin, glass, glass_colour) {
    const { gl } = this;
    this.programs.get("glass", () => shaders.bodyVertex(0), () => shaders.bodyFragment(0), { GLASS: 1 }).use(values, { glass, glass_colour });
    gl.colorMask(false, false, false, false);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(0.5, 2);
    this.triangles(skin);
    gl.colorMask(true, true, true, true);
    gl.enable(gl.BLEND);
    gl.depthFunc(gl.LEQUAL);
    this.triangles(skin);
    gl.disable(gl.BLEND);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.depthFunc(gl.LESS);
  }

  wire(values, theme) {
    const { gl, surface } = this;
    gl.enable(gl.BLEND);
    this.programs.get("line", () => shaders.lineVertex, () => shaders.lineFragment).use(values, { tint: WIRE[theme], lift: 0 });
    gl.bindVertexArray(surface.wire.array);
    gl.drawElements(gl.LINES, surface.wire.count, gl.UNSIGNED_INT, 0);
    gl.disable(gl.BLEND);
  }

  overlays(camera, view, values, ratio) {
    const { gl } = this;
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    if (view.ball) {
      gl.enable(gl.DEPTH_TEST);
      gl.enable(gl.CULL_FACE);
      this.programs.get("ball", () => shaders.ballVertex, () => shaders.ballFragment).use(values, { ball: view.ball, tone: BALL });
      gl.bindVertexArray(this.ball.array);
      gl.drawElements(gl.TRIANGLES, this.ball.count, gl.UNSIGNED_SHORT, 0);
      gl.disable(gl.CULL_FACE);
    }
    gl.disable(gl.DEPTH_TEST);
    view.marks?.(this.marks, camera);
    this.marks.draw(values.resolution, ratio);
    gl.disable(gl.BLEND);
  }

  // What was just drawn: RGBA bytes, lowest row first.
  read() {
    const { gl, canvas: { width, height } } = this, data = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, data);
    return { width, height, data };
  }
}

function sphere(gl, rows = 24, columns = 36) {
  const points = [], elements = [];
  for (let i = 0; i <= rows; i++)
    for (let j = 0; j <= columns; j++) {
      const a = (Math.PI * i) / rows, b = (2 * Math.PI * j) / columns, p = i * (columns + 1) + j;
      points.push(Math.sin(a) * Math.sin(b), Math.cos(a), Math.sin(a) * Math.cos(b));
      if (i < rows && j < columns) elements.push(p, p + columns + 1, p + 1, p + 1, p + columns + 1, p + columns + 2);
    }
  const buffer = bufferOf(gl, new Float32Array(points)), corners = bufferOf(gl, new Uint16Array(elements), gl.ELEMENT_ARRAY_BUFFER);
  return { count: elements.length, array: vertexArray(gl, [[0, buffer, 3, gl.FLOAT]], corners) };
}
