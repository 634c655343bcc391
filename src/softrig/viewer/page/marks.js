// Small flat things over the picture: discs, rings and bands, in pixels of the page, drawn with the rest so that captures show them.
import { fill, Program, vertexArray } from "./gl.js";
import * as shaders from "./shaders.js";

const NUMBERS = 10; // ends 4, colour 4, radius, hole

export class Marks {
  constructor(gl) {
    this.gl = gl;
    this.program = new Program(gl, shaders.markVertex, shaders.markFragment);
    this.buffer = gl.createBuffer();
    const entry = (place, size, offset) => [place, this.buffer, size, gl.FLOAT, false, 4 * NUMBERS, 1, 4 * offset];
    this.array = vertexArray(gl, [entry(0, 4, 0), entry(1, 4, 4), entry(2, 2, 8)]);
    this.list = [];
  }

  line([ax, ay], [bx, by], colour, radius) { this.list.push(ax, ay, bx, by, ...colour, radius, 0); }
  disc([x, y], colour, radius, hole = 0) { this.list.push(x, y, x, y, ...colour, radius, hole); }

  // A band that gets thinner the further it is stretched; it ends in a dot.
  band(from, to, colour) {
    const stretch = Math.hypot(to[0] - from[0], to[1] - from[1]);
    const dark = [0, 0, 0, 0.28], radius = Math.max(1.1, 3.2 - stretch / 110);
    this.line(from, to, dark, radius + 1.4);
    this.line(from, to, colour, radius);
    this.disc(from, dark, 5.6);
    this.disc(from, colour, 4.2);
    this.disc(to, dark, 8.4);
    this.disc(to, colour, 7);
    this.disc(to, [1, 1, 1, 0.95], 2.6);
  }

  draw(resolution, ratio) {
    if (!this.list.length) return;
    const { gl } = this;
    fill(gl, this.buffer, new Float32Array(this.list));
    this.program.use({ resolution, ratio });
    gl.bindVertexArray(this.array);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.list.length / NUMBERS);
    this.list.length = 0;
  }
}
