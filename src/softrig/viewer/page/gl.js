// Thin helpers over WebGL2: programs that know their uniforms, buffers, textures.

export class Program {
  constructor(gl, vertex, fragment, defines = {}) {
    this.gl = gl;
    const lines = Object.entries(defines).map(([name, value]) => `#define ${name} ${value}\n`);
    const head = `#version 300 es\nprecision highp float;\nprecision highp sampler2DShadow;\nprecision highp sampler2DArray;\n${lines.join("")}`;
    const program = (this.program = gl.createProgram());
    for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, head + source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error([gl.getProgramInfoLog(program), ...logs].join("\n"));
    }
    this.setters = new Map();
    let unit = 0;
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const { name, type } = gl.getActiveUniform(program, i), place = gl.getUniformLocation(program, name);
      const kind = { [gl.SAMPLER_2D]: gl.TEXTURE_2D, [gl.SAMPLER_2D_SHADOW]: gl.TEXTURE_2D, [gl.SAMPLER_2D_ARRAY]: gl.TEXTURE_2D_ARRAY }[type];
      this.setters.set(name, kind ? this.texture(place, unit++, kind) : this.number(place, type));
    }
  }

  number(place, type) {
    const { gl } = this;
    if (type === gl.FLOAT) return (value) => gl.uniform1f(place, value);
    if (type === gl.FLOAT_VEC2) return (value) => gl.uniform2fv(place, value);
    if (type === gl.FLOAT_VEC3) return (value) => gl.uniform3fv(place, value);
    if (type === gl.FLOAT_VEC4) return (value) => gl.uniform4fv(place, value);
    if (type === gl.FLOAT_MAT4) return (value) => gl.uniformMatrix4fv(place, false, value);
    throw new Error("a uniform of a type that nobody asked for");
  }

  texture(place, unit, kind) {
    const { gl } = this;
    return (texture) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(kind, texture);
      gl.uniform1i(place, unit);
    };
  }

  // Makes it current; values the program does not use are passed over, so that all can be given the same ones.
  use(...groups) {
    this.gl.useProgram(this.program);
    for (const values of groups) for (const name in values) this.setters.get(name)?.(values[name]);
    return this;
  }
}

// Programs by name, made when first wanted.
export class Programs {
  constructor(gl) { Object.assign(this, { gl, known: new Map() }); }

  get(name, vertex, fragment, defines = {}) {
    const key = [name, ...Object.keys(defines)].join(" ");
    if (!this.known.has(key)) this.known.set(key, new Program(this.gl, vertex(), fragment(), defines));
    return this.known.get(key);
  }
}

// `attributes`: [[location, buffer, size, type, normalised, stride, divisor]].
export function vertexArray(gl, attributes, elements) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  for (const [place, buffer, size, type, normalised = false, stride = 0, divisor = 0, offset = 0] of attributes) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, normalised, stride, offset);
    gl.vertexAttribDivisor(place, divisor);
  }
  if (elements) gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, elements);
  gl.bindVertexArray(null);
  return array;
}

export function fill(gl, buffer, data, target = gl.ARRAY_BUFFER) {
  gl.bindVertexArray(null);
  gl.bindBuffer(target, buffer);
  gl.bufferData(target, data, gl.DYNAMIC_DRAW);
  return buffer;
}

export const bufferOf = (gl, data, target) => fill(gl, gl.createBuffer(), data, target);

export function textureOf(gl, internal, width, height, format, type, data = null, filter = gl.LINEAR) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texImage2D(gl.TEXTURE_2D, 0, internal, width, height, 0, format, type, data);
  for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
  for (const use of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, use, filter);
  return texture;
}
