// The websocket to the simulation: decodes its messages, sends commands, and comes back after every loss.

const VIEWS = { float32: Float32Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, uint8: Uint8Array };
const FIRST_WAIT = 400, LONGEST_WAIT = 8000; // milliseconds
const text = new TextDecoder();

// uint32 length | header as JSON | arrays, each at a multiple of eight bytes: views into the message, nothing is copied.
function decode(buffer) {
  const headerLength = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(text.decode(new Uint8Array(buffer, 4, headerLength)));
  const arrays = {};
  let place = 4 + headerLength;
  for (const { name, type, shape } of header.arrays) {
    const View = VIEWS[type], count = shape.reduce((a, b) => a * b, 1);
    arrays[name] = new View(buffer, place, count);
    place += Math.ceil((count * View.BYTES_PER_ELEMENT) / 8) * 8;
  }
  return { header, arrays };
}

// The token is in the address on the first visit; later the cookie speaks for us, which frames of other sites may not get.
export function address(path) {
  const url = new URL(path, location.href), token = new URLSearchParams(location.search).get("token");
  if (token) url.searchParams.set("token", token);
  return url;
}

export class Connection {
  // `on(kind, header, arrays)` is called for each message, `status(connected)` when the line opens or breaks.
  constructor(on, status) {
    Object.assign(this, { on, status, connected: false, wait: FIRST_WAIT, socket: null, timer: 0 });
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => !document.hidden && !this.connected && this.retry());
    this.open();
  }

  open() {
    const url = address("live");
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => { this.connected = true; this.wait = FIRST_WAIT; this.status(true); };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") { const message = JSON.parse(data); this.on(message.is, message, {}); return; }
      const { header, arrays } = decode(data);
      this.on(header.is, header, arrays);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      if (this.connected) this.status(false);
      this.connected = false;
      this.timer = setTimeout(() => this.open(), this.wait * (0.8 + 0.4 * Math.random()));
      this.wait = Math.min(this.wait * 1.7, LONGEST_WAIT);
    };
  }

  retry() {
    if (this.connected || this.socket.readyState === WebSocket.CONNECTING) return;
    clearTimeout(this.timer);
    this.wait = FIRST_WAIT;
    this.open();
  }

  send(command, values = {}) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ do: command, ...values }));
  }
}
