// The pictures on the skin: layers of one texture, all of one size, and where each vertex lies in them.
import { bufferOf } from "./gl.js";

// Decodes the pictures of a coat message; they come as bytes that the server made itself.
export async function decodeCoat({ side, types }, arrays) {
  const picture = (type, i) => createImageBitmap(new Blob([arrays[`picture ${i}`]], { type }),
    { premultiplyAlpha: "none", colorSpaceConversion: "none" });
  return { side, types, places: arrays.places, layers: arrays.layers, pictures: await Promise.all(types.map(picture)) };
}

export class Coat {
  // `sharp`: also where it is seen at a slant, which costs.
  constructor(gl, { side, types, places, layers, pictures }, sharp) {
    this.gl = gl;
    this.cuts = types.includes("image/png"); // somewhere it is left out
    this.places = bufferOf(gl, places);
    this.layers = bufferOf(gl, layers);
    this.texture = gl.createTexture();
    const kind = gl.TEXTURE_2D_ARRAY;
    gl.bindTexture(kind, this.texture);
    gl.texStorage3D(kind, 1 + Math.floor(Math.log2(side)), gl.RGBA8, side, side, pictures.length);
    pictures.forEach((picture, i) => {
      gl.texSubImage3D(kind, 0, 0, 0, i, side, side, 1, gl.RGBA, gl.UNSIGNED_BYTE, picture);
      picture.close();
    });
    gl.generateMipmap(kind);
    gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    const slant = sharp && gl.getExtension("EXT_texture_filter_anisotropic");
    if (slant) gl.texParameterf(kind, slant.TEXTURE_MAX_ANISOTROPY_EXT, 4);
  }

  // What a vertex array needs of it.
  get attributes() {
    const { gl } = this;
    return [[6, this.places, 2, gl.FLOAT], [7, this.layers, 1, gl.UNSIGNED_BYTE]];
  }

  close() {
    const { gl } = this;
    gl.deleteTexture(this.texture);
    for (const buffer of [this.places, this.layers]) gl.deleteBuffer(buffer);
  }
}
