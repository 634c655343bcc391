// How much work a picture may be. Slow machines (software GL above all) get less while things move; a still picture always gets all.

const LEVELS = [
  { ratio: 2, samples: 4, shadow: 2048, taps: 16 },
  { ratio: 1, samples: 4, shadow: 1024, taps: 8 },
  { ratio: 1, samples: 0, shadow: 256, taps: 4, byVertex: true },
  { ratio: 1, samples: 0, shadow: 0, taps: 0, byVertex: true },
  { ratio: 1, most: 700_000, samples: 0, shadow: 0, taps: 0, byVertex: true }, // `most` pixels, for large screens
];
const BARE = LEVELS.map((level) => ({ ...level, shadow: 0, taps: 0 }));
const SLOW = 80, FAST = 22, PATIENCE = 6; // milliseconds, milliseconds, pictures
const WARMING = -3; // pictures that do not count, as programs are compiled in them

export class Quality {
  constructor(renderer) {
    // Software rendering begins low: its first seconds would otherwise be spent on finding out.
    this.isSoftware = /swiftshader|llvmpipe|software|basic render/i.test(renderer);
    this.level = this.isSoftware ? 2 : 0;
    Object.assign(this, { mean: 0, count: WARMING, refused: -1, shadows: true, pinned: false });
  }

  get now() { return this.shadows ? LEVELS[this.level] : BARE[this.level]; }
  get best() { return this.shadows ? LEVELS[0] : BARE[0]; }

  // Milliseconds that the graphics card took for a picture.
  measured(milliseconds) {
    if (this.count++ < 0) return;
    this.mean = this.count > 1 ? this.mean + 0.2 * (milliseconds - this.mean) : milliseconds;
    if (this.count < PATIENCE || this.pinned) return;
    if (this.mean > SLOW && this.level < LEVELS.length - 1) {
      this.refused = this.level;
      this.change(+1);
    } else if (this.mean < FAST && this.count > 40 * PATIENCE && this.level - 1 > this.refused) {
      this.change(-1); // but a level that was too slow once is not tried again
    }
  }

  // Stay at one level, for measurements.
  pin(level) { Object.assign(this, { level, pinned: true, count: WARMING }); }

  change(by) { this.level += by; this.count = WARMING; }
}
