// How open each vertex lies, in the rest pose: depth pictures from many sides, then a test of every vertex in each.
// Four small pictures a frame: it is spread over the first frames after loading.
import { bufferOf, Program, textureOf, vertexArray } from "./gl.js";
import { add, lookAt, multiply, orthographic, scale } from "./math.js";
import * as shaders from "./shaders.js";

const SIDES = 64, SIDE = 256;

export class Occlusion {
  constructor(gl, surface, bounds) {
    const count = surface.weld.length, width = Math.min(count, 1024), height = Math.ceil(count / width);
    Object.assign(this, { gl, surface, count, width, height, side: 0 });
    this.middle = scale(add(bounds[0], bounds[1]), 0.5);
    this.radius = 0.51 * Math.hypot(...bounds[0].map((x, i) => x - bounds[1][i])) || 1;
    this.depth = depthMap(gl, SIDE);
    this.sums = gl.createFramebuffer();
    this.texture = textureOf(gl, gl.RGBA8, width, height, gl.RGBA, gl.UNSIGNED_BYTE);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.sums);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.texture, 0);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.draw = new Program(gl, shaders.shadowVertex, shaders.nothingFragment);
    this.test = new Program(gl, shaders.openVertex, shaders.openFragment);
    const positions = bufferOf(gl, surface.rest), normals = bufferOf(gl, surface.restNormals);
    this.buffers = [positions, normals];
    this.array = vertexArray(gl, [[0, positions, 3, gl.FLOAT], [1, normals, 3, gl.SHORT, true, 8]], surface.elements);
  }

  // Some more sides; the (n,) bytes when all are done, else null.
  advance(sides = 4) {
    const { gl } = this;
    gl.disable(gl.SCISSOR_TEST);
    for (const end = Math.min(SIDES, this.side + sides); this.side < end; this.side++) {
      const y = 1 - (2 * this.side + 1) / SIDES, r = Math.sqrt(1 - y * y), a = 2.39996 * this.side;
      const direction = [r * Math.cos(a), y, r * Math.sin(a)];
      const up = Math.abs(y) > 0.9 ? [1, 0, 0] : [0, 1, 0], from = add(this.middle, scale(direction, 1e-3));
      const values = {
        light_matrix: multiply(orthographic(this.radius), lookAt(from, this.middle, up)), key_direction: direction, shadow_map: this.depth.texture,
        resolution: [this.width, this.height], normal_offset: 0.012 * this.radius, share: 4 / SIDES,
      };
      gl.bindVertexArray(this.array);
      gl.disable(gl.BLEND);
      gl.enable(gl.DEPTH_TEST);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.depth.target);
      gl.viewport(0, 0, SIDE, SIDE);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      this.draw.use(values);
      gl.drawElements(gl.TRIANGLES, this.surface.triangles.length, gl.UNSIGNED_INT, 0);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.sums);
      gl.viewport(0, 0, this.width, this.height);
      gl.disable(gl.DEPTH_TEST);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE);
      this.test.use(values);
      gl.drawArrays(gl.POINTS, 0, this.count);
    }
    return this.side < SIDES ? null : this.finish();
  }

  finish() {
    const { gl } = this, texels = new Uint8Array(4 * this.width * this.height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.sums);
    gl.readPixels(0, 0, this.width, this.height, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    const open = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i++) open[i] = texels[4 * this.surface.weld[i]];
    this.close();
    return open;
  }

  close() {
    const { gl } = this;
    for (const texture of [this.texture, this.depth.texture]) gl.deleteTexture(texture);
    for (const target of [this.sums, this.depth.target]) gl.deleteFramebuffer(target);
    for (const buffer of this.buffers) gl.deleteBuffer(buffer);
    gl.deleteVertexArray(this.array);
  }
}

// A square picture of depths that a shader can compare against.
export function depthMap(gl, side) {
  const texture = textureOf(gl, gl.DEPTH_COMPONENT24, side, side, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL);
  const target = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, target);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, texture, 0);
  return { texture, target, side };
}
