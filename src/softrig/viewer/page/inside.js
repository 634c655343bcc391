// Layers that lie inside the body: lines between moving points, or the points themselves as small balls.
import { fill, vertexArray } from "./gl.js";
import * as shaders from "./shaders.js";

const LEAST = 5; // pixels of a point
const LINES = { dark: [1.0, 0.66, 0.5, 0.6], light: [0.62, 0.22, 0.1, 0.55] }; // where the layer says no colours
const LIFT = { dark: 0.45, light: 0 }; // towards white

export class Inside {
  constructor(gl, programs) {
    Object.assign(this, { gl, programs });
    [this.points, this.sizes, this.colours, this.edges] = Array.from({ length: 4 }, () => gl.createBuffer());
    const attributes = [[0, this.points, 3, gl.FLOAT], [2, this.colours, 4, gl.UNSIGNED_BYTE, true], [5, this.sizes, 1, gl.FLOAT]];
    this.array = vertexArray(gl, attributes, this.edges);
    this.clear();
  }

  clear() { Object.assign(this, { count: 0, edgeCount: 0, pointCount: 0, hasColours: false }); }

  get isShown() { return this.count > 0 && (this.edgeCount > 0 || this.pointCount > 0); }

  // What does not move.
  set({ edges, sizes, colours }) {
    const { gl } = this;
    this.clear();
    Object.assign(this, { edgeCount: edges?.length ?? 0, pointCount: sizes?.length ?? 0, hasColours: Boolean(colours) });
    if (edges) fill(gl, this.edges, edges, gl.ELEMENT_ARRAY_BUFFER);
    // Attributes without data would make the whole drawing fail.
    const vertices = edges ? edges.reduce((most, x) => Math.max(most, x), 0) + 1 : this.pointCount;
    fill(gl, this.sizes, sizes ?? new Float32Array(vertices));
    fill(gl, this.colours, colours ?? new Uint8Array(4 * vertices));
  }

  move(points) {
    fill(this.gl, this.points, points);
    this.count = points.length / 3;
  }

  draw(values, theme, points_per_metre) {
    const { gl, programs } = this, own = { points_per_metre, least: LEAST, tint: [0, 0, 0, 0], lift: 0 };
    gl.bindVertexArray(this.array);
    if (this.edgeCount) {
      gl.enable(gl.BLEND);
      gl.depthMask(false);
      programs.get("line", () => shaders.lineVertex, () => shaders.lineFragment)
        .use(values, own, { tint: this.hasColours ? [0, 0, 0, 0] : LINES[theme], lift: LIFT[theme] });
      gl.drawElements(gl.LINES, this.edgeCount, gl.UNSIGNED_INT, 0);
      gl.depthMask(true);
      gl.disable(gl.BLEND);
    }
    if (this.pointCount) {
      const { backdrop_low: low, backdrop_high: high, backdrop_glow: glow } = values;
      const fog = low.map((x, i) => 0.5 * (x + high[i]) + 0.6 * glow[i]);
      programs.get("line", () => shaders.lineVertex, () => shaders.lineFragment, { ROUND: 1 }).use(values, own,
        { fog, lift: 0.3 * LIFT[theme] });
      gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
      gl.colorMask(true, true, true, false);
      gl.drawArrays(gl.POINTS, 0, Math.min(this.pointCount, this.count));
      gl.colorMask(true, true, true, true);
      gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    }
  }
}
