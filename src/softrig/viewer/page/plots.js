// Curves over the last seconds on small 2D canvases.
const SAMPLES = 150; // at ten a second: fifteen seconds
const HUES = ["--accent", "--cool", "--third", "--fourth", "--fifth", "--sixth"];

export class Plot {
  // `lines`: their names; `format(value)` writes the newest and the scale.
  constructor(canvas, lines, { format = (x) => x.toPrecision(2), least = 0, floor = 0 } = {}) {
    Object.assign(this, { canvas, format, least, floor });
    this.rename(lines);
  }

  rename(lines) {
    if (this.lines && lines.join() === this.lines.join()) return;
    this.lines = lines;
    this.values = lines.map(() => []);
  }

  push(numbers) {
    this.values.forEach((line, i) => {
      line.push(Number.isFinite(numbers[i]) ? numbers[i] : 0);
      if (line.length > SAMPLES) line.shift();
    });
    if (this.canvas.clientWidth) this.draw();
  }

  draw() {
    const { canvas } = this, { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
    const pixels = [width, height].map((side) => Math.round(side * ratio));
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    const style = getComputedStyle(document.documentElement), context = canvas.getContext("2d");
    const colour = (name) => style.getPropertyValue(name).trim();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const all = this.values.flat(), high = Math.max(this.least, ...all) * 1.08 || 1, low = Math.min(this.floor, ...all) * 1.08;
    const top = 18, bottom = height - 3, y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    const x = (i) => (width * i) / (SAMPLES - 1);
    context.strokeStyle = colour("--line");
    context.lineWidth = 1;
    for (const value of low < 0 ? [0, high / 1.08] : [0, high / 2, high]) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath();
      context.moveTo(0, at);
      context.lineTo(width, at);
      context.stroke();
    }
    context.font = "11px " + style.getPropertyValue("--font");
    let place = 0;
    this.values.forEach((line, k) => {
      const hue = colour(HUES[k % HUES.length]), start = SAMPLES - line.length;
      context.beginPath();
      line.forEach((value, i) => context.lineTo(x(start + i), y(value)));
      context.strokeStyle = hue;
      context.lineWidth = 1.6;
      context.lineJoin = "round";
      context.stroke();
      if (this.values.length === 1 && line.length) {
        context.lineTo(width, bottom); context.lineTo(x(start), bottom);
        context.globalAlpha = 0.12; context.fillStyle = hue; context.fill(); context.globalAlpha = 1;
      }
      const text = `${this.lines[k]} ${line.length ? this.format(line.at(-1)) : ""}`, long = context.measureText(text).width + 18;
      if (place + long > width - 4) return; // no room for its name; its curve still shows
      context.fillStyle = hue;
      context.beginPath(); context.arc(place + 4, 7, 3, 0, 7); context.fill();
      context.fillStyle = colour("--quiet");
      context.fillText(text, place + 11, 11);
      place += long + 4;
    });
  }
}
