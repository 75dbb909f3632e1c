// Plots as SVG, drawn anew at the width they have. Axes are logarithmic unless said otherwise.

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function shown(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "—";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-4) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}

function logTicks(low, high, room) {
  const decades = Math.log10(high / low);
  const marks = decades < 1.3 ? [1, 2, 5] : [1];
  const found = [];
  const step = Math.max(1, Math.ceil(decades / room));
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    if (marks.length === 1 && ((power % step) + step) % step !== 0) continue;
    for (const mark of marks) {
      const value = mark * 10 ** power;
      if (value >= low * 0.9999 && value <= high * 1.0001) found.push(value);
    }
  }
  return found.length >= 3 || decades >= 1.3 ? found : linearTicks(low, high, Math.min(room, 4));
}

function linearTicks(low, high, room) {
  const raw = (high - low) / room;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

class Plot {
  constructor(host, label, { x, y, linear = false, ratio = 0.66 }) {
    const width = Math.max(280, host.clientWidth || 480);
    const height = Math.min(430, Math.max(240, ratio * width));
    this.host = host; this.width = width; this.height = height;
    this.left = 66; this.right = width - 14; this.top = 12; this.bottom = height - 46;
    this.xs = x; this.ys = y; this.linear = linear;
    this.svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    this.svg.style.height = `${height}px`;
  }
  x(value) { return this.#place(value, this.xs, this.left, this.right); }
  y(value) { return this.#place(value, this.ys, this.bottom, this.top); }
  #place(value, [low, high], from, to) {
    const part = this.linear ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low);
    return from + part * (to - from);
  }
  axes(xName, yName) {
    const { svg } = this;
    const ticks = this.linear ? linearTicks : logTicks;
    for (const value of ticks(...this.xs, Math.max(3, this.width / 90))) {
      const at = this.x(value);
      element("line", { x1: at, x2: at, y1: this.top, y2: this.bottom, class: "grid" }, svg);
      element("text", { x: at, y: this.bottom + 17, "text-anchor": "middle" }, svg, shown(value, 3));
    }
    for (const value of ticks(...this.ys, 6)) {
      const at = this.y(value);
      element("line", { x1: this.left, x2: this.right, y1: at, y2: at, class: "grid" }, svg);
      element("text", { x: this.left - 6, y: at + 4, "text-anchor": "end" }, svg, shown(value, 3));
    }
    element("text", { x: (this.left + this.right) / 2, y: this.height - 8, "text-anchor": "middle" }, svg, xName);
    const middle = (this.top + this.bottom) / 2;
    element("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${middle}) rotate(-90)` }, svg, yName);
    element("rect", { x: this.left, y: this.top, width: this.right - this.left, height: this.bottom - this.top, class: "frame" }, svg);
  }
  line(points, classes) {
    let path = "", pen = "M";
    for (const [a, b] of points) {
      if (a === null || b === null || !(a > 0 || this.linear) || !(b > 0 || this.linear)) { pen = "M"; continue; }
      path += `${pen}${this.x(a).toFixed(1)} ${this.y(b).toFixed(1)}`;
      pen = "L";
    }
    const clip = this.clip();
    if (path) element("path", { d: path, class: `line ${classes}`, "clip-path": `url(#${clip})` }, this.svg);
  }
  clip() {
    if (!this.clipId) {
      this.clipId = `clip-${this.host.id}`;
      const made = element("clipPath", { id: this.clipId }, this.svg);
      element("rect", { x: this.left, y: this.top, width: this.right - this.left, height: this.bottom - this.top }, made);
    }
    return this.clipId;
  }
  mark(x, y, classes) {
    if (!(x > 0) || !(y > 0)) return;
    const at = [clamp(this.x(x), this.left, this.right), clamp(this.y(y), this.top, this.bottom)];
    element("circle", { cx: at[0], cy: at[1], r: 6, class: classes }, this.svg);
  }
  show() { this.host.replaceChildren(this.svg); }
}

function clamp(value, low, high) { return Math.min(high, Math.max(low, value)); }

function range(values, { least = 1e-9, most = Infinity, room = 1.15 } = {}) {
  const known = values.filter((v) => v !== null && v > least && v < most);
  if (!known.length) return [0.1, 1];
  let low = Math.min(...known), high = Math.max(...known);
  if (high / low < 1.5) { low /= 1.3; high *= 1.3; }
  return [low / room, high * room];
}

function legend(host, entries) {
  host.replaceChildren(...entries.map(([name, classes]) => {
    const item = document.createElement("li");
    const sample = element("svg", { viewBox: "0 0 36 10", "aria-hidden": "true" });
    element("line", { x1: 1, x2: 35, y1: 5, y2: 5, class: `line ${classes}` }, sample);
    item.append(sample, name);
    return item;
  }));
}

// Colours from dark blue to light yellow, which readers of any colour vision can order.
const COLOURS = [[0, 32, 77], [49, 68, 107], [102, 105, 112], [149, 143, 120], [202, 186, 106], [255, 234, 70]];

function colour(part) {
  const at = clamp(part, 0, 1) * (COLOURS.length - 1), k = Math.min(COLOURS.length - 2, Math.floor(at));
  return COLOURS[k].map((from, i) => Math.round(from + (at - k) * (COLOURS[k + 1][i] - from)));
}

// The map as an image of one pixel per cell; cells without an estimator stay transparent.
function pixels(map, values, low, high) {
  const canvas = document.createElement("canvas");
  canvas.width = map.sigma.length; canvas.height = map.lam.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let row = 0; row < canvas.height; row += 1) {
    for (let column = 0; column < canvas.width; column += 1) {
      const k = row * canvas.width + column, value = values[k];
      if (map.status[k] !== 0 || value === null) continue;
      const part = Math.log(Math.max(value, low) / low) / Math.log(high / low);
      const at = 4 * ((canvas.height - 1 - row) * canvas.width + column);
      image.data.set([...colour(part), 255], at);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
