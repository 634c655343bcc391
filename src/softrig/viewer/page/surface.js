// The character's surface on the graphics card: soft and plain positions share triangles, colours and the rest.
import { Coat } from "./coat.js";
import { bufferOf, fill, vertexArray } from "./gl.js";
import { clamp, sub } from "./math.js";
import { edgesOf, isClosed, Normals, turnOutside, unpack } from "./normals.js";

const NOTHING = 3e-5; // of the size
export const CONTACT = 64; // cells on a side of the picture of what touches the floor

export class Surface {
  constructor(gl, header, { rest, triangles, weld, colours }) {
    const count = weld.length;
    Object.assign(this, { gl, rest, triangles, weld, colours, count, hasField: false, hasPlain: false, unseen: 0, kinds: "" });
    turnOutside(rest, triangles);
    this.normals = new Normals(triangles, weld);
    this.restNormals = this.normals.compute(rest, new Int16Array(4 * count));
    this.isClosed = isClosed(rest, triangles, weld);
    this.exposure = exposure(colours);
    this.elements = bufferOf(gl, triangles, gl.ELEMENT_ARRAY_BUFFER);
    this.colourBuffer = bufferOf(gl, colours);
    this.fieldBuffer = bufferOf(gl, new Uint8Array(count));
    this.openBuffer = bufferOf(gl, new Uint8Array(count).fill(225)); // a fair guess until occlusion is known
    this.coat = null;
    this.soft = this.skin();
    this.plain = this.skin();
    this.upload(this.soft);
    this.upload(this.plain);
    this.contact = new Uint8Array(CONTACT * CONTACT);
    [this.low, this.high] = header.bounds;
  }

  skin() {
    const { gl } = this, positions = Float32Array.from(this.rest), normals = this.restNormals.slice();
    const skin = { positions, normals, position: bufferOf(gl, positions), normal: bufferOf(gl, normals) };
    const bytes = (place, buffer, size) => [place, buffer, size, gl.UNSIGNED_BYTE, true];
    skin.attributes = [[0, skin.position, 3, gl.FLOAT], [1, skin.normal, 3, gl.SHORT, true, 8],
      bytes(2, this.colourBuffer, 4), bytes(3, this.fieldBuffer, 1), bytes(4, this.openBuffer, 1)];
    skin.array = vertexArray(gl, skin.attributes, this.elements);
    return skin;
  }

  // Pictures on it, as `decodeCoat` gives them.
  wear(decoded, sharp) {
    this.coat?.close();
    this.coat = new Coat(this.gl, decoded, sharp);
    for (const skin of [this.soft, this.plain]) {
      this.gl.deleteVertexArray(skin.array);
      skin.array = vertexArray(this.gl, [...skin.attributes, ...this.coat.attributes], this.elements);
    }
  }

  upload(skin) {
    fill(this.gl, skin.position, skin.positions);
    fill(this.gl, skin.normal, this.normals.compute(skin.positions, skin.normals));
  }

  // Takes a frame; false if nobody could see the difference.
  setFrame(header, arrays) {
    this.low = header.low;
    this.high = header.low.map((x, i) => x + 65535 * header.step[i]);
    this.hasPlain = Boolean(arrays.plain);
    this.hasField = Boolean(arrays.field);
    // Flesh at rest still trembles by less than a pixel: such changes are gathered until they are worth a picture.
    const kinds = Object.keys(arrays).join(), names = ["soft", "plain"].filter((name) => arrays[name]);
    for (const name of names) this.unseen += unpack(arrays[name], header.low, header.step, this[name].positions);
    if (this.unseen < NOTHING * Math.hypot(...sub(this.high, this.low)) && !arrays.field && kinds === this.kinds) return false;
    this.unseen = 0;
    this.kinds = kinds;
    for (const name of names) this.upload(this[name]);
    if (arrays.field) fill(this.gl, this.fieldBuffer, arrays.field);
    return true;
  }

  setColours(colours) { fill(this.gl, this.colourBuffer, colours ?? this.colours); }
  setOpen(open) { fill(this.gl, this.openBuffer, open); }

  // Lines of the plain skin, made when first asked for.
  get wire() {
    if (!this.wireArray) {
      const edges = edgesOf(this.triangles, this.weld);
      const elements = bufferOf(this.gl, edges, this.gl.ELEMENT_ARRAY_BUFFER);
      const array = vertexArray(this.gl, [[0, this.plain.position, 3, this.gl.FLOAT]], elements);
      this.wireArray = { elements, array, count: edges.length };
    }
    return this.wireArray;
  }

  // What is close to the floor, blurred: a contact shade that costs nothing to draw. Returns the box it covers, in x and z.
  touchFloor(floor, positions, size) {
    const margin = 0.12 * size, low = [this.low[0] - margin, this.low[2] - margin];
    const sides = [0, 2].map((axis) => this.high[axis] - this.low[axis] + 2 * margin), grid = new Float32Array(CONTACT * CONTACT);
    const kx = CONTACT / sides[0], kz = CONTACT / sides[1], reach = 1 / (0.035 * size);
    for (let p = 0; p < positions.length; p += 3) {
      const near = 1 - (positions[p + 1] - floor) * reach;
      if (near <= 0) continue;
      const cell = Math.floor((positions[p] - low[0]) * kx) + CONTACT * Math.floor((positions[p + 2] - low[1]) * kz);
      if (near > grid[cell]) grid[cell] = Math.min(near, 1);
    }
    for (const step of [1, CONTACT, 1, CONTACT, 1, CONTACT]) blur(grid, step);
    for (let i = 0; i < grid.length; i++) this.contact[i] = Math.min(255, 330 * grid[i]);
    return [...low, 1 / sides[0], 1 / sides[1]];
  }

  close() {
    const { gl } = this;
    const { soft, plain, wireArray: wire } = this;
    this.coat?.close();
    for (const array of [soft.array, plain.array, wire?.array]) gl.deleteVertexArray(array ?? null);
    for (const buffer of [soft.position, soft.normal, plain.position, plain.normal, wire?.elements, this.elements, this.colourBuffer,
      this.fieldBuffer, this.openBuffer])
      gl.deleteBuffer(buffer ?? null);
  }
}

// As a photographer would: less light on a polar bear than on a gorilla.
function exposure(colours) {
  let sum = 0;
  for (let i = 0; i < colours.length; i += 4) {
    const [r, g, b] = [colours[i], colours[i + 1], colours[i + 2]].map((x) => (x / 255) ** 2.2);
    sum += 0.21 * r + 0.72 * g + 0.07 * b;
  }
  return clamp((0.12 / (sum / (colours.length / 4) + 1e-3)) ** 0.28, 0.55, 1.1);
}

// The mean of three neighbours, `step` apart; rows run into each other, but nothing reaches the border.
function blur(grid, step) {
  for (let start = 0; start < step; start++) {
    let before = 0;
    for (let i = start; i + step < grid.length; i += step) {
      const here = grid[i];
      grid[i] = (before + here + grid[i + step]) / 3;
      before = here;
    }
  }
}
