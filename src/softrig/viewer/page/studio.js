// The room: backdrop, pool of light on the floor, the key light's shadow map, and what the body takes away of the light.
import { textureOf } from "./gl.js";
import { add, cross, dot, lookAt, multiply, orthographic, scale, sub, unit } from "./math.js";
import { depthMap } from "./occlusion.js";
import * as shaders from "./shaders.js";
import { CONTACT } from "./surface.js";

const KEY = unit([0.5, 0.78, 0.56]); // from above, over the right shoulder of who looks
const STRIP = 2 * shaders.ALONG + 2;
// Backdrops as shown (sRGB), lights linear.
const THEMES = {
  dark: {
    backdrop_low: [0.082, 0.086, 0.1], backdrop_high: [0.112, 0.12, 0.145], backdrop_glow: [0.085, 0.083, 0.09],
    floor_tint: [2.6, 2.35, 2.2], shadow_depth: 0.8,
    key_colour: [3.1, 2.86, 2.6], sky: [0.5, 0.57, 0.7], bounce: [0.3, 0.24, 0.22], rim: [0.5, 0.58, 0.75],
  },
  light: {
    backdrop_low: [0.84, 0.83, 0.82], backdrop_high: [0.9, 0.9, 0.905], backdrop_glow: [0.055, 0.055, 0.055],
    floor_tint: [0.14, 0.13, 0.11], shadow_depth: 0.42,
    key_colour: [2.9, 2.75, 2.55], sky: [0.95, 1.0, 1.08], bounce: [0.62, 0.57, 0.53], rim: [0.4, 0.42, 0.46],
  },
};

export class Studio {
  constructor(gl, programs) {
    Object.assign(this, { gl, programs, map: null, kept: null, size: 1, disc: [0, 0, 0, 1] });
    this.contact = textureOf(gl, gl.R8, CONTACT, CONTACT, gl.RED, gl.UNSIGNED_BYTE);
  }

  // Where the floor is.
  settle([low, high], size) {
    this.size = size;
    this.disc = [0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2]), 2.1 * size];
  }

  get floor() { return this.disc[1]; }

  // What shaders know of the room.
  values(theme) { return { ...THEMES[theme], key_direction: KEY, disc: this.disc, contact: this.contact }; }

  // The shadow map of one skin, and what touches the floor; gives what shaders need to know of them.
  light(surface, skin, { shadow, taps }, draw) {
    const { gl, size } = this, contact_box = surface.touchFloor(this.floor, skin.positions, size);
    gl.bindTexture(gl.TEXTURE_2D, this.contact);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, CONTACT, CONTACT, gl.RED, gl.UNSIGNED_BYTE, surface.contact);
    if (!shadow) return { contact_box };
    if (this.map?.side !== shadow) {
      if (this.map) { gl.deleteTexture(this.map.texture); gl.deleteFramebuffer(this.map.target); }
      this.map = depthMap(gl, shadow);
    }
    // Whole texels in rounded sizes: the shadow's edge does not crawl while the character moves.
    const middle = scale(add(surface.low, surface.high), 0.5), radius = 0.52 * Math.hypot(...sub(surface.high, surface.low)),
      step = 0.05 * size;
    const half = step * Math.ceil(radius / step) + 0.02 * size, texel = (2 * half) / shadow, right = unit(cross([0, 1, 0], KEY));
    const snap = (at, axis) => add(at, scale(axis, texel * Math.round(dot(at, axis) / texel) - dot(at, axis)));
    const target = [right, cross(KEY, right)].reduce(snap, middle);
    const light_matrix = multiply(orthographic(half), lookAt(add(target, scale(KEY, 1e-3)), target, [0, 1, 0]));
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.map.target);
    gl.viewport(0, 0, shadow, shadow);
    gl.disable(gl.SCISSOR_TEST);
    gl.disable(gl.BLEND);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LESS);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 3);
    this.programs.get("depth", () => shaders.shadowVertex, () => shaders.nothingFragment).use({ light_matrix });
    draw(skin);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    // Few taps must lie close together, or their steps show; a coarse map is soft by itself.
    const many = taps > 4, spread = many ? (0.014 * size) / (2 * half) : 0.9 / shadow;
    return { contact_box, light_matrix, shadow_map: this.map.texture, spread, floor_spread: (many ? 2.2 : 1.3) * spread,
      normal_offset: 1.6 * texel + 0.003 * size };
  }

  // Backdrop and pool of light into the bound target. They stay the same while the camera stands still: into the canvas
  // itself they are copied from a picture of their own (into several samples a pixel nothing can be copied).
  fill(camera, values, isCanvas) {
    const { gl } = this, [width, height] = values.resolution;
    if (!isCanvas) { this.paint(camera, values); return; }
    if (this.kept?.width !== width || this.kept.height !== height) this.renew(width, height);
    const key = [values.backdrop_low, this.disc, ...camera.matrix].join();
    if (this.kept.key !== key) {
      this.kept.key = key;
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.kept.buffer);
      gl.disable(gl.SCISSOR_TEST);
      this.paint(camera, values);
      gl.enable(gl.SCISSOR_TEST);
    }
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this.kept.buffer);
    gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  renew(width, height) {
    const { gl } = this;
    if (this.kept) { gl.deleteFramebuffer(this.kept.buffer); gl.deleteRenderbuffer(this.kept.part); }
    this.kept = { width, height, buffer: gl.createFramebuffer(), part: gl.createRenderbuffer() };
    gl.bindRenderbuffer(gl.RENDERBUFFER, this.kept.part);
    gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA8, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.kept.buffer);
    gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, this.kept.part);
  }

  paint(camera, values) {
    const { gl, programs } = this;
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
    programs.get("backdrop", () => shaders.backdropVertex, () => shaders.toneFragment).use(values);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, STRIP, shaders.STRIPS);
    if (camera.eye[1] <= this.floor) return; // from below the floor is not there
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.DST_COLOR, gl.SRC_COLOR);
    programs.get("pool", () => shaders.poolVertex, () => shaders.toneFragment).use(values);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, STRIP, shaders.STRIPS);
    gl.disable(gl.BLEND);
  }

  // The shadow on the floor.
  shade(camera, values, { low, high }, taps) {
    const { gl, floor } = this, air = 0.13 * this.size;
    if (camera.eye[1] <= floor) return;
    // As far as the body's box throws a shadow along the light, and as what touches the floor darkens it.
    const [x, z] = [KEY[0] / KEY[1], KEY[2] / KEY[1]].map((slope) => -slope * Math.max(high[1] - floor, 0));
    const lowest = [low[0] + Math.min(x, 0) - air, low[2] + Math.min(z, 0) - air];
    const shade_box = [...lowest, high[0] + Math.max(x, 0) + air, high[2] + Math.max(z, 0) + air];
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.DST_COLOR, gl.ZERO);
    gl.bindVertexArray(null);
    this.programs.get(`shade ${taps}`, () => shaders.shadeVertex, () => shaders.shadeFragment(taps)).use(values, { shade_box });
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    gl.disable(gl.BLEND);
  }
}
