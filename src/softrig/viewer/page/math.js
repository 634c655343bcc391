// Vectors as arrays of three, matrices as arrays of sixteen in WebGL's column order.

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a, k) => [a[0] * k, a[1] * k, a[2] * k];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const length = (a) => Math.hypot(a[0], a[1], a[2]);
export const unit = (a) => scale(a, 1 / (length(a) || 1));
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const mix = (a, b, t) => a + (b - a) * t;

export function multiply(a, b) {
  const c = new Float32Array(16);
  for (let column = 0; column < 16; column += 4)
    for (let row = 0; row < 4; row++)
      c[column + row] = a[row] * b[column] + a[4 + row] * b[column + 1] + a[8 + row] * b[column + 2] + a[12 + row] * b[column + 3];
  return c;
}

export function perspective(fov, aspect, near, far) {
  const f = 1 / Math.tan(fov / 2);
  return [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, (2 * far * near) / (near - far), 0];
}

// A cube of half the side `half` around the view's origin.
export const orthographic = (half) => [1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, -1 / half, 0, 0, 0, 0, 1];

export function lookAt(eye, target, up) {
  const back = unit(sub(eye, target)), right = unit(cross(up, back)), top = cross(back, right);
  return [right[0], top[0], back[0], 0, right[1], top[1], back[1], 0, right[2], top[2], back[2], 0,
    -dot(right, eye), -dot(top, eye), -dot(back, eye), 1];
}

export const transform = (m, p) => [0, 1, 2, 3].map((row) => m[row] * p[0] + m[4 + row] * p[1] + m[8 + row] * p[2] + m[12 + row]);
