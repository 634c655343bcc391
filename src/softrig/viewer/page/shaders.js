// All GLSL. Light is computed linearly, tone-mapped, and encoded as sRGB at the end of each fragment.

// Square roots and polynomials instead of powers: within half a step of eight bits, and several times faster in software.
const LINEAR = `
vec3 to_linear(vec3 c) { return c * (c * (c * 0.305306011 + 0.682171111) + 0.012522878); }
`;

const COLOUR = LINEAR + `
vec3 to_srgb(vec3 c) { vec3 a = sqrt(c), b = sqrt(a), d = sqrt(b); return 0.662002687 * a + 0.68412206 * b - 0.323583601 * d - 0.022541147 * c; }
// A filmic curve: a short toe, a long shoulder.
vec3 film(vec3 x) { x *= 0.82; return clamp((x * (2.3 * x + 0.06)) / (x * (2.1 * x + 0.72) + 0.14), 0.0, 1.0); }
`;

// Less than one step of eight bits, different in neighbouring pixels: smooth gradients show no bands.
const GRAIN = `
float grain(vec2 pixel) { return fract(52.9829189 * fract(dot(pixel, vec2(0.06711056, 0.00583715)))); }
vec3 dithered(vec3 c) { return c + (grain(gl_FragCoord.xy) - 0.5) / 255.0; }
`;

// Taps spread as the seeds of a sunflower; hardware compares and blends four texels at each.
const taps = (count) => Array.from({ length: count }, (_, i) => {
  const r = Math.sqrt((i + 0.5) / count), a = 2.39996 * i;
  return `vec2(${(r * Math.cos(a)).toFixed(5)}, ${(r * Math.sin(a)).toFixed(5)})`;
});

// `turn` swirls the taps, differently in neighbouring pixels.
const shadowSource = (count) => count === 0 ? `float lit(vec3 p, float spread, float turn) { return 1.0; }` : `
uniform sampler2DShadow shadow_map;
uniform mat4 light_matrix;
const vec2 TAP[${count}] = vec2[${count}](${taps(count).join(", ")});
float lit(vec3 p, float spread, float turn) {
  vec3 s = (light_matrix * vec4(p, 1.0)).xyz * 0.5 + 0.5;
  if (min(s.x, s.y) < 0.0 || max(s.x, s.y) > 1.0) return 1.0; // beside everything that throws a shadow
  s.z = min(s.z, 1.0) - 0.0012;
  mat2 swirl = spread * mat2(cos(turn), sin(turn), -sin(turn), cos(turn));
  float sum = 0.0;
  for (int i = 0; i < ${count}; i++) sum += textureLod(shadow_map, vec3(s.xy + swirl * TAP[i], s.z), 0.0);
  return sum / ${count}.0;
}
`;

// Backdrop and floor change slowly: they are computed at the corners of strips, one strip an instance (STRIPS).
export const STRIPS = 24, ALONG = 48;
export const backdropVertex = `
uniform vec3 backdrop_low, backdrop_high, backdrop_glow;
uniform vec2 resolution;
out vec3 tone;
void main() {
  vec2 uv = vec2(float(gl_VertexID >> 1) / ${ALONG}.0, float(gl_InstanceID + (gl_VertexID & 1)) / ${STRIPS}.0);
  vec2 off = (uv - vec2(0.5, 0.56)) * vec2(resolution.x / resolution.y, 1.15);
  tone = mix(backdrop_low, backdrop_high, smoothstep(0.0, 1.0, uv.y)) + backdrop_glow * exp(-3.2 * dot(off, off));
  gl_Position = vec4(uv * 2.0 - 1.0, 1.0, 1.0);
}
`;

export const toneFragment = GRAIN + `
in vec3 tone;
out vec4 colour;
void main() { colour = vec4(dithered(tone), 1.0); }
`;

// The floor multiplies the backdrop (by twice its colour): a pool of light that fades out, without an edge anywhere.
export const poolVertex = `
uniform mat4 camera;
uniform vec4 disc; // centre x, height, centre z, radius
uniform vec3 floor_tint;
out vec3 tone;
void main() {
  float r = float(gl_InstanceID + (gl_VertexID & 1)) / ${STRIPS}.0, a = float(gl_VertexID >> 1) * 6.2831853 / ${ALONG}.0;
  float fade = (1.0 - r) * (1.0 - r);
  tone = 0.5 * sqrt(1.0 + floor_tint * fade * fade);
  gl_Position = camera * vec4(disc.xyz + disc.w * r * vec3(cos(a), 0.0, sin(a)), 1.0);
}
`;

// What the body takes away of that light: its shadow, and the dark where it touches. Drawn only as far as they reach.
export const shadeVertex = `
uniform mat4 camera;
uniform vec4 disc, shade_box; // shade_box: lowest x and z, highest x and z
out vec3 world;
void main() {
  world = vec3(mix(shade_box.x, shade_box.z, float(gl_VertexID & 1)), disc.y, mix(shade_box.y, shade_box.w, float(gl_VertexID >> 1)));
  gl_Position = camera * vec4(world, 1.0);
}
`;

export const shadeFragment = (count) => GRAIN + shadowSource(count) + `
uniform vec4 contact_box; // lowest x and z, one over the sides
uniform float shadow_depth, floor_spread;
uniform sampler2D contact;
in vec3 world;
out vec4 colour;
void main() {
  float turn = ${count > 4 ? "6.2832 * grain(gl_FragCoord.xy)" : "0.6"};
  float touch = texture(contact, (world.xz - contact_box.xy) * contact_box.zw).r;
  colour = vec4(dithered(vec3(sqrt((1.0 - shadow_depth * (1.0 - lit(world, floor_spread, turn))) * (1.0 - 0.62 * touch)))), 1.0);
}
`;

export const shadowVertex = `
layout(location = 0) in vec3 position;
uniform mat4 light_matrix;
void main() { gl_Position = light_matrix * vec4(position, 1.0); }
`;
export const nothingFragment = `void main() {}`;

// Flesh: light wraps around it, red the furthest, as it does under skin. Gives the colour as shown.
const fleshSource = (count) => COLOUR + shadowSource(count) + `
uniform vec3 eye, key_direction, key_colour, sky, bounce, rim;
uniform float spread, normal_offset, matte, show_field, exposure;
uniform sampler2D ramp;
const vec3 FILL = vec3(0.18, 0.15, 0.14); // of the key light, from the walls: in full shadow dark fur still has a form
vec3 base_colour(vec3 albedo, float field, vec3 coat) {
  return show_field > 0.5 ? to_linear(textureLod(ramp, vec2((field * 255.0 + 0.5) / 256.0, 0.5), 0.0).rgb) : to_linear(albedo) * to_linear(coat);
}
vec3 flesh(vec3 world, vec3 normal, vec3 base, float open, float turn) {
  vec3 n = normalize(normal), to_eye = normalize(eye - world);
  float facing = dot(n, to_eye);
  if (facing < 0.0) { n = normalize(n - 1.02 * facing * to_eye); facing = 0.0; } // past its silhouette
  float grazing = 1.0 - facing, edge = grazing * grazing * grazing;
  float key = dot(n, key_direction);
  vec3 wrap = vec3(0.42, 0.26, 0.2) * (1.0 - 0.5 * matte);
  vec3 around = clamp((key + wrap) / (1.0 + wrap), 0.0, 1.0);
  // Past the edge of light the map would only see the body shadow itself: there the wrapped light goes on.
  float shadow = mix(1.0, lit(world + n * normal_offset, spread, turn), smoothstep(-0.25, 0.12, key));
  vec3 soft_shadow = mix(FILL, vec3(1.0), vec3(mix(shadow, sqrt(shadow), 0.4), shadow, shadow));
  // Openness is that of the rest pose: an arm that hung over a flank may be raised by now, and must leave no dark behind.
  float hidden = mix(0.6, 1.0, open * open);
  vec3 light = key_colour * around * sqrt(around) * soft_shadow * (0.7 + 0.3 * open);
  light += mix(bounce, sky, 0.5 + 0.5 * n.y) * mix(vec3(hidden), vec3(1.0), 0.25 * base);
  float mirror = clamp(dot(n, normalize(key_direction + to_eye)), 0.0, 1.0);
  mirror *= mirror; mirror *= mirror; mirror *= mirror; mirror *= mirror;
  float gloss = 0.03 * mirror + 0.035 * mirror * mirror * mirror * mirror;
  vec3 result = base * light + (1.0 - matte) * key_colour * gloss * shadow * clamp(4.0 * key, 0.0, 1.0) * open;
  result += rim * edge * (0.35 + 0.65 * clamp(n.y * 0.6 + 0.5, 0.0, 1.0)) * hidden * (0.25 + base) * (1.0 - 0.6 * matte);
  return to_srgb(film(exposure * result));
}
`;

// BY_VERTEX: lit at the vertices, for slow machines and fine meshes. GLASS: only the outline stays. COAT: with pictures,
// of which CUT leaves something out. OPEN: both sides can be seen, and the one that faces the eye is lit.
const NO_PICTURE = "254.5"; // layers beyond
export const bodyVertex = (count) => `
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal_in;
layout(location = 2) in vec4 colour_in;
layout(location = 3) in float field_in;
layout(location = 4) in float open_in;
uniform mat4 camera;
out vec3 world, normal, albedo;
out float field, open;
#ifdef COAT
layout(location = 6) in vec2 place_in;
layout(location = 7) in float layer_in;
out vec2 place;
flat out float layer;
#endif
#ifdef BY_VERTEX
${fleshSource(count)}
#ifdef COAT
uniform sampler2DArray coat_map;
#endif
#ifdef OPEN
out vec3 inner;
#endif
#endif
void main() {
  world = position;
  normal = normal_in;
  albedo = colour_in.rgb;
  field = field_in;
  open = open_in;
  vec3 coat = vec3(1.0);
#ifdef COAT
  place = place_in;
  layer = layer_in;
#ifdef BY_VERTEX
  if (layer < ${NO_PICTURE}) coat = textureLod(coat_map, vec3(place, layer), 2.0).rgb;
#endif
#endif
#ifdef BY_VERTEX
  vec3 base = base_colour(albedo, field, coat);
  albedo = flesh(position, normal_in, base, open, 0.6);
#ifdef OPEN
  inner = flesh(position, -normal_in, base, open, 0.6);
#endif
#endif
  gl_Position = camera * vec4(position, 1.0);
}
`;

export const bodyFragment = (count) => GRAIN + `
in vec3 world, normal, albedo;
in float field, open;
out vec4 colour;
#ifdef COAT
uniform sampler2DArray coat_map;
in vec2 place;
flat in float layer;
vec4 worn() { vec4 coat = texture(coat_map, vec3(place, layer)); return layer < ${NO_PICTURE} ? coat : vec4(1.0); }
#else
#define worn() vec4(1.0)
#endif
#ifdef BRUSH
uniform vec3 brush_colour;
uniform vec4 brush; // centre and radius
vec3 brushed(vec3 shown) {
  float d = distance(world, brush.xyz) / brush.w, width = fwidth(d);
  float ring = 1.0 - smoothstep(0.7, 1.9, abs(d - 1.0) / max(width, 1e-5));
  return mix(shown, brush_colour, clamp(0.9 * ring + 0.16 * (1.0 - smoothstep(0.6, 1.0, d)), 0.0, 1.0));
}
#else
#define brushed(shown) shown
#endif
#ifdef GLASS
uniform vec3 eye, glass_colour;
uniform float glass;
void main() {
  vec3 n = normalize(normal);
  float grazing = 1.0 - abs(dot(n, normalize(eye - world)));
  float strength = glass * (0.10 + 0.75 * grazing * grazing * grazing + 0.12 * grazing);
  colour = vec4(glass_colour * (0.75 + 0.35 * n.y) * strength, strength);
}
#elif defined(BY_VERTEX)
#ifdef OPEN
in vec3 inner;
#endif
void main() {
#ifdef CUT
  if (worn().a < 0.5) discard;
#endif
#ifdef OPEN
  colour = vec4(brushed(gl_FrontFacing ? albedo : inner), 1.0);
#else
  colour = vec4(brushed(albedo), 1.0);
#endif
}
#else
${fleshSource(count)}
void main() {
  vec4 coat = worn();
#ifdef CUT
  if (coat.a < 0.5) discard;
#endif
#ifdef OPEN
  vec3 outward = gl_FrontFacing ? normal : -normal;
#else
  vec3 outward = normal;
#endif
  vec3 base = base_colour(albedo, field, coat.rgb);
  colour = vec4(dithered(brushed(flesh(world, outward, base, open, 6.2832 * grain(gl_FragCoord.xy)))), 1.0);
}
#endif
`;

// Lines and points inside the body: what lies deeper is fainter.
export const lineVertex = `
layout(location = 0) in vec3 position;
layout(location = 2) in vec4 colour_in;
layout(location = 5) in float radius;
uniform mat4 camera;
uniform vec4 tint; // used where its alpha is above zero
uniform vec2 depths; // front and back
uniform float points_per_metre, least, lift;
out vec4 tone;
void main() {
  gl_Position = camera * vec4(position, 1.0);
  float deep = clamp((gl_Position.w - depths.x) / (depths.y - depths.x), 0.0, 1.0);
  tone = tint.a > 0.0 ? tint : vec4(mix(colour_in.rgb, vec3(1.0), lift), 1.0);
  tone.a *= mix(1.0, 0.12, smoothstep(0.1, 0.95, deep));
  gl_PointSize = max(2.0 * radius * points_per_metre / gl_Position.w, least);
}
`;

export const lineFragment = `
uniform vec3 fog;
in vec4 tone;
out vec4 colour;
void main() {
#ifdef ROUND
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float r = length(p);
  if (r > 1.0) discard;
  float light = 0.62 + 0.38 * dot(vec3(p.x, -p.y, sqrt(1.0 - r * r)), vec3(-0.35, 0.6, 0.72));
  // Alpha is coverage here; what lies deep fades into the backdrop.
  colour = vec4(mix(fog, tone.rgb * light, 0.3 + 0.7 * tone.a), 1.0 - smoothstep(1.0 - fwidth(r) * 1.5, 1.0, r));
#else
  colour = vec4(tone.rgb * tone.a, tone.a);
#endif
}
`;

export const ballVertex = `
layout(location = 0) in vec3 position;
uniform mat4 camera;
uniform vec4 ball;
out vec3 world, normal;
void main() {
  normal = position;
  world = ball.xyz + ball.w * position;
  gl_Position = camera * vec4(world, 1.0);
}
`;

export const ballFragment = `
uniform vec3 eye, tone;
in vec3 world, normal;
out vec4 colour;
void main() {
  float facing = abs(dot(normalize(normal), normalize(eye - world)));
  float a = mix(0.85, 0.3, smoothstep(0.0, 0.75, facing)), spot = pow(clamp(dot(normalize(normal), normalize(vec3(-0.3, 0.8, 0.5))), 0.0, 1.0), 24.0);
  colour = vec4(tone * a + spot * 0.5, a);
}
`;

// Marks are capsules in pixels: discs, rings and bands. `shape`: radius, hole (a share of it), soft edge.
export const markVertex = `
layout(location = 0) in vec4 ends;
layout(location = 1) in vec4 tone_in;
layout(location = 2) in vec2 shape_in;
uniform vec2 resolution;
uniform float ratio;
out vec2 place;
flat out vec4 segment, tone;
flat out vec2 shape;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  vec2 a = ends.xy, b = ends.zw, along = b - a;
  along = dot(along, along) > 1e-6 ? normalize(along) : vec2(1, 0);
  float reach = shape_in.x + 1.5;
  place = (corner.x < 0.0 ? a - along * reach : b + along * reach) + corner.y * reach * vec2(-along.y, along.x);
  segment = ends; tone = tone_in; shape = shape_in;
  vec2 clip = place * ratio / resolution * 2.0 - 1.0;
  gl_Position = vec4(clip.x, -clip.y, 0.0, 1.0);
}
`;

export const markFragment = `
in vec2 place;
flat in vec4 segment, tone;
flat in vec2 shape;
out vec4 colour;
void main() {
  vec2 a = segment.xy, ab = segment.zw - a;
  float t = clamp(dot(place - a, ab) / max(dot(ab, ab), 1e-6), 0.0, 1.0);
  float d = distance(place, a + t * ab);
  float cover = clamp(shape.x - d + 0.5, 0.0, 1.0) * (shape.y > 0.0 ? clamp(d - shape.x * shape.y + 0.5, 0.0, 1.0) : 1.0);
  colour = vec4(tone.rgb, 1.0) * tone.a * cover;
}
`;

// How open each vertex lies to the sky: seen from many sides, one depth picture each (occlusion.js).
export const openVertex = `
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
uniform mat4 light_matrix;
uniform vec3 key_direction;
uniform vec2 resolution;
uniform float normal_offset, share;
uniform sampler2DShadow shadow_map;
out float seen;
void main() {
  vec2 texel = vec2(float(gl_VertexID % int(resolution.x)), float(gl_VertexID / int(resolution.x))) + 0.5;
  gl_Position = vec4(texel / resolution * 2.0 - 1.0, 0.0, 1.0);
  gl_PointSize = 1.0;
  vec3 s = (light_matrix * vec4(position + normal * normal_offset, 1.0)).xyz * 0.5 + 0.5;
  seen = share * max(dot(normal, key_direction), 0.0) * textureLod(shadow_map, vec3(s.xy, s.z - 0.004), 0.0);
}
`;
export const openFragment = `
in float seen;
out vec4 colour;
void main() { colour = vec4(seen); }
`;
