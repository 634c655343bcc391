// Pictures and short films of the view, saved by the browser.
const LONGEST = 60_000; // milliseconds
const TYPES = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// `draw` must draw right now: a canvas forgets its picture once it has been shown.
export function savePicture(canvas, draw, name) {
  draw();
  return new Promise((done) => canvas.toBlob((blob) => { download(blob, name); done(blob); }, "image/png"));
}

export class Film {
  constructor(canvas, name, changed) {
    const type = TYPES.find((each) => globalThis.MediaRecorder?.isTypeSupported(each));
    if (!type || !canvas.captureStream) throw new Error("This browser cannot record a canvas.");
    this.recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 12_000_000 });
    const pieces = [];
    this.recorder.ondataavailable = ({ data }) => { if (data.size) pieces.push(data); };
    this.recorder.onstop = () => {
      clearInterval(this.clock);
      if (pieces.length) download(new Blob(pieces, { type: "video/webm" }), name);
      changed(null);
    };
    this.recorder.start(1000);
    const begin = performance.now();
    this.clock = setInterval(() => {
      changed((performance.now() - begin) / 1000);
      if (performance.now() - begin > LONGEST) this.stop();
    }, 250);
    changed(0);
  }

  stop() { if (this.recorder.state !== "inactive") this.recorder.stop(); }
}
