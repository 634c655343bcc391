// What lies under the pointer: the nearest triangle that a ray hits, on the positions drawn last.
import { add, cross, dot, scale, unit } from "./math.js";

let across = new Float32Array(0);

// Each vertex is seen once along the ray (two coordinates); a triangle is hit if the ray's own (0, 0) lies inside it.
export function pick(ray, positions, triangles) {
  const count = positions.length / 3, { origin, direction: d } = ray;
  if (across.length < 2 * count) across = new Float32Array(2 * count);
  const u = unit(cross(d, Math.abs(d[1]) < 0.9 ? [0, 1, 0] : [1, 0, 0])), v = cross(d, u);
  const u0 = dot(u, origin), v0 = dot(v, origin);
  for (let i = 0, p = 0; i < count; i++, p += 3) {
    const x = positions[p], y = positions[p + 1], z = positions[p + 2];
    across[2 * i] = u[0] * x + u[1] * y + u[2] * z - u0;
    across[2 * i + 1] = v[0] * x + v[1] * y + v[2] * z - v0;
  }
  const depth = (i) => d[0] * (positions[3 * i] - origin[0]) + d[1] * (positions[3 * i + 1] - origin[1]) + d[2] * (positions[3 * i + 2] - origin[2]);
  let nearest = Infinity, best = null;
  for (let t = 0; t < triangles.length; t += 3) {
    const a = triangles[t], b = triangles[t + 1], c = triangles[t + 2];
    const ax = across[2 * a], bx = across[2 * b], cx = across[2 * c];
    if ((ax > 0 && bx > 0 && cx > 0) || (ax < 0 && bx < 0 && cx < 0)) continue; // most triangles end here
    const ay = across[2 * a + 1], by = across[2 * b + 1], cy = across[2 * c + 1];
    const wa = bx * cy - by * cx, wb = cx * ay - cy * ax, wc = ax * by - ay * bx;
    if (!((wa >= 0 && wb >= 0 && wc >= 0) || (wa <= 0 && wb <= 0 && wc <= 0))) continue;
    const sum = wa + wb + wc;
    if (sum === 0) continue;
    const distance = (wa * depth(a) + wb * depth(b) + wc * depth(c)) / sum;
    if (distance > 0 && distance < nearest) {
      nearest = distance;
      const [x, y, z] = [wa / sum, wb / sum, wc / sum];
      best = x >= y && x >= z ? a : y >= z ? b : c;
    }
  }
  return best === null ? null : { vertex: best, point: add(origin, scale(d, nearest)), distance: nearest };
}
