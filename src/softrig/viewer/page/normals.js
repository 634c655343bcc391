import { cross, dot } from "./math.js";

// Smooth vertex normals on the welded surface: vertices at one place share one normal, so seams stay invisible.

export class Normals {
  constructor(triangles, weld) {
    this.triangles = triangles;
    this.corners = triangles.map((vertex) => weld[vertex] * 3); // offsets of the representatives, looked up once
    this.weld = weld;
    this.sums = new Float32Array(weld.length * 3);
  }

  // Writes (n, 4) int16: normals times 32767 and a zero, aligned as graphics cards like it. Larger triangles count more.
  compute(positions, target) {
    const { corners, weld, sums } = this;
    sums.fill(0);
    for (let t = 0; t < corners.length; t += 3) {
      const a = corners[t], b = corners[t + 1], c = corners[t + 2];
      const ax = positions[a], ay = positions[a + 1], az = positions[a + 2];
      const ux = positions[b] - ax, uy = positions[b + 1] - ay, uz = positions[b + 2] - az;
      const vx = positions[c] - ax, vy = positions[c + 1] - ay, vz = positions[c + 2] - az;
      const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
      sums[a] += x; sums[a + 1] += y; sums[a + 2] += z;
      sums[b] += x; sums[b + 1] += y; sums[b + 2] += z;
      sums[c] += x; sums[c + 1] += y; sums[c + 2] += z;
    }
    for (let v = 0; v < weld.length; v++) {
      const s = weld[v] * 3, x = sums[s], y = sums[s + 1], z = sums[s + 2];
      const k = 32767 / (Math.sqrt(x * x + y * y + z * z) || 1);
      target[4 * v] = x * k; target[4 * v + 1] = y * k; target[4 * v + 2] = z * k;
    }
    return target;
  }
}

// Positions from the 16-bit numbers of a frame; returns the largest change of a coordinate.
export function unpack(values, [lx, ly, lz], [sx, sy, sz], target) {
  let most = 0;
  for (let i = 0; i < values.length; i += 3) {
    const x = lx + sx * values[i], y = ly + sy * values[i + 1], z = lz + sz * values[i + 2];
    const change = Math.max(Math.abs(x - target[i]), Math.abs(y - target[i + 1]), Math.abs(z - target[i + 2]));
    if (change > most) most = change;
    target[i] = x; target[i + 1] = y; target[i + 2] = z;
  }
  return most;
}

// (k, 2) each edge once, for the wire drawing.
export function edgesOf(triangles, weld) {
  const seen = new Set(), edges = [], count = weld.length;
  for (let t = 0; t < triangles.length; t++) {
    const a = weld[triangles[t]], b = weld[triangles[t % 3 === 2 ? t - 2 : t + 1]];
    const key = a < b ? a * count + b : b * count + a;
    if (!seen.has(key)) { seen.add(key); edges.push(a, b); }
  }
  return Uint32Array.from(edges);
}

// Whether each edge is passed once in each direction, and the triangles look outwards.
export function isClosed(rest, triangles, weld) {
  const passed = new Set(), count = weld.length;
  let volume = 0;
  for (let t = 0; t < triangles.length; t += 3) {
    const [a, b, c] = [weld[triangles[t]], weld[triangles[t + 1]], weld[triangles[t + 2]]];
    for (const edge of [a * count + b, b * count + c, c * count + a]) {
      if (passed.has(edge)) return false;
      passed.add(edge);
    }
    const [p, q, r] = [a, b, c].map((vertex) => rest.subarray(3 * vertex, 3 * vertex + 3));
    volume += dot(p, cross(q, r));
  }
  for (const edge of passed) if (!passed.has((edge % count) * count + Math.floor(edge / count))) return false;
  return volume > 0;
}

// Turns all triangles over, in place, where they look inwards: light and shade are computed for the outside.
export function turnOutside(rest, triangles) {
  const middle = [0, 1, 2].map((axis) => {
    let low = Infinity, high = -Infinity;
    for (let i = axis; i < rest.length; i += 3) { low = Math.min(low, rest[i]); high = Math.max(high, rest[i]); }
    return 0.5 * (low + high);
  });
  let volume = 0, sum = 0;
  for (let t = 0; t < triangles.length; t += 3) {
    const [p, q, r] = [0, 1, 2].map((corner) => middle.map((x, axis) => rest[3 * triangles[t + corner] + axis] - x));
    const part = dot(p, cross(q, r));
    volume += part;
    sum += Math.abs(part);
  }
  if (volume > -0.2 * sum) return; // a sheet has no outside
  for (let t = 0; t < triangles.length; t += 3) [triangles[t + 1], triangles[t + 2]] = [triangles[t + 2], triangles[t + 1]];
}
