import { clamp, mix } from "./math.js";

// The colour ramp of fields, even to the eye: lightness rises in equal steps of OKLab while the hue turns.

// The same knots as softrig's pictures have: dark violet, teal, yellow. Lightness, chroma, hue.
const KNOTS = [[0.27, 0.125, 302], [0.44, 0.125, 272], [0.6, 0.105, 205], [0.76, 0.15, 152], [0.93, 0.175, 103]]
  .map(([lightness, chroma, hue]) => [lightness, chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)]);

function rgb(lightness, a, b) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const light = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return light.map((x) => Math.round(255 * clamp(x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055, 0, 1)));
}

// At 0…1.
function rampColour(t) {
  const place = t * (KNOTS.length - 1), i = Math.min(Math.floor(place), KNOTS.length - 2);
  return rgb(...KNOTS[i].map((x, k) => mix(x, KNOTS[i + 1][k], place - i)));
}

export function rampTexels() {
  const texels = new Uint8Array(1024);
  for (let i = 0; i < 256; i++) texels.set([...rampColour(i / 255), 255], 4 * i);
  return texels;
}

export const rampCss = () => `linear-gradient(90deg, ${Array.from({ length: 13 }, (_, i) => `rgb(${rampColour(i / 12)})`).join(", ")})`;
