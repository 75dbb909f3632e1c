// The page: controls become settings, a source answers questions about them, and plots show the answers.
// `SPEC` is what the page was made with; `source` answers from this machine or from a table in the page.

const byId = (id) => document.getElementById(id);
const controls = new Map();

class Slider {
  constructor(host) {
    this.name = host.dataset.name;
    this.spec = SPEC.controls[this.name];
    this.slider = host.querySelector("input[type=range]");
    this.field = host.querySelector("input[type=number]");
    this.output = host.querySelector("output");
    const { values, whole, low, high } = this.spec;
    this.steps = values ? values.length - 1 : whole ? high - low : 400;
    this.slider.min = 0; this.slider.max = this.steps; this.slider.step = 1;
    this.set(this.spec.start);
    this.slider.addEventListener("input", () => { this.set(this.#at(Number(this.slider.value)), true); changed(); });
    if (this.field) {
      this.field.addEventListener("input", () => {
        const typed = this.field.value.trim() === "" ? NaN : Number(this.field.value);
        if (Number.isFinite(typed)) { this.value = typed; this.slider.value = this.#position(typed); this.#say(); }
        changed();
      });
    }
  }
  #at(position) {
    const { low, high, scale, values } = this.spec;
    if (values) return values[position];
    const part = position / this.steps;
    const exact = scale === "log" ? low * (high / low) ** part : low + part * (high - low);
    if (this.spec.whole) return Math.round(exact);
    return Number(scale === "log" ? exact.toPrecision(3) : exact.toFixed(4));
  }
  #position(value) {
    const { low, high, scale, values } = this.spec;
    if (values) return nearest(values, value);
    const part = scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.round(clamp(part, 0, 1) * this.steps);
  }
  set(value, moved = false) {
    this.value = this.spec.values ? this.spec.values[nearest(this.spec.values, value)] : value;
    if (!moved) this.slider.value = this.#position(this.value);
    if (this.field) this.field.value = this.value;
    this.#say();
  }
  step(by) { this.set(this.#at(clamp(this.#position(this.value) + by, 0, this.steps))); }
  #say() {
    this.slider.setAttribute("aria-valuetext", shown(this.value));
    if (this.output) this.output.textContent = shown(this.value, 3);
  }
}

function nearest(values, value) {
  let best = 0;
  const far = (v) => (value > 0 && v > 0 ? Math.abs(Math.log(v / value)) : Math.abs(v - value));
  values.forEach((v, k) => { if (far(v) < far(values[best])) best = k; });
  return best;
}

const chosen = (name) => document.querySelector(`input[name=${name}]:checked`)?.value;

function settings() {
  const found = Object.fromEntries([...controls].map(([name, control]) => [name, control.value]));
  found.law = byId("law").value;
  found.noise_by = chosen("noise_by") || "level";
  found.correlation = byId("correlation")?.value ?? "none";
  const many = byId("n_features");
  found.n_features = many && chosen("columns") === "some" ? Number(many.value) : null;
  found.scales = null;
  if (found.law === "own") {
    found.scales = byId("scales").value.split(/[\s,;]+/).filter((word) => word).map(Number);
  }
  return found;
}

function visible(now) {
  const shown = { law: now.law, noise: now.noise_by, correlation: now.correlation };
  for (const [kind, chosenOne] of Object.entries(shown)) {
    document.querySelectorAll(`[data-${kind}]`).forEach((part) => {
      const hidden = part.dataset[kind] !== chosenOne;
      if (part.hidden !== hidden) part.hidden = hidden;
    });
  }
  const many = byId("n_features");
  if (many) many.disabled = chosen("columns") !== "some";
}

// One round of questions at a time; what changed meanwhile is asked in the next round.
const root = document.documentElement;
let version = 0, asking = false, idle = 0;
const last = {};

function changed() {
  version += 1;
  root.dataset.version = version;
  visible(settings());
  clearTimeout(idle);
  if (!asking) ask();
}

async function ask() {
  asking = true;
  let at = -1;
  while (at !== version) {
    at = version;
    const now = settings();
    try {
      await round(now);
    } catch (problem) {
      if (!(problem instanceof Refused)) { asking = false; gone(problem); return; }
      refuse(problem.message);
    }
    root.dataset.shown = at;
  }
  asking = false;
  idle = setTimeout(rest, 200);
}

class Refused extends Error {}

async function round(now) {
  last.now = now;
  if (byId("correlated")) moveCorrelated(now);
  const key = JSON.stringify([now.alpha, now.rho, now.sigma_xi, now.law, now.low, now.high, now.mu, now.spread,
    now.value, now.scales, now.gamma, now.n_features]);
  const moved = key !== last.key, found = await source(moved ? "everything" : "numbers", now);
  last.point = { ...found.point, notes: found.notes };
  last.curves = found.curves;
  if (moved) { last.map = found.map; last.key = key; last.fine = false; }
  if (now.noise_by === "labels" && controls.has("sigma")) controls.get("sigma").set(last.point.sigma);
  showPoint(now, last.point);
  drawCurves(); drawScales();
  drawMap();
}

// What takes longer comes when nothing moves: a finer map, and the attack.
async function rest() {
  const at = version;
  try {
    if (byId("attack")) {
      const found = await source("attack", last.now);
      if (at === version) { last.attack = found; drawAttack(); }
    }
    const fits = await source("fits", last.now);
    if (at === version) showFits(fits);
    if (byId("correlated")) await askCorrelated(last.now, () => at === version);
    if (SPEC.fine && !last.fine && at === version) {
      const found = await source("fine map", last.now);
      if (at === version) { last.map = found; last.fine = true; drawMap(); }
    }
  } catch (problem) {
    if (!(problem instanceof Refused)) { gone(problem); return; }
  }
  if (at === version) { root.dataset.rested = at; speak(); }
}

function refuse(sentence) {
  verdict(sentence, true);
  for (const name of ["E", "rho_hat", "stability", "onavekl", "advantage", "sigma"]) number(name, null, "");
  if (byId("python")) { byId("python").textContent = ""; byId("command").textContent = ""; }
  byId("spoken").textContent = sentence;
}

function gone() {
  verdict("The program that computes does not answer any more. Start privasso explore again.", true);
}

function verdict(sentence, bad) {
  byId("verdict").textContent = sentence;
  byId("verdict").classList.toggle("bad", bad);
}

function number(name, value, note) {
  const cell = byId(`out-${name}`);
  cell.dataset.value = value === null ? "" : value;
  const small = document.createElement("small");
  small.textContent = note;
  cell.replaceChildren(shown(value), small);
}

function showPoint(now, point) {
  const stable = point.status === "stable";
  const gain = point.E === null ? null : 1 - point.E / point.null_error;
  let sentence = point.meaning;
  if (stable) {
    sentence = gain > 0
      ? `The estimator exists. Its R² on new rows is ${gain.toFixed(2)}, of ${(1 - point.label_noise ** 2 / point.null_error).toFixed(2)} that the columns could explain.`
      : "The estimator exists, but it predicts worse than releasing nothing: R² is below 0.";
  }
  verdict(sentence, !stable || point.E > point.null_error);
  number("E", point.E, `releasing nothing: ${shown(point.null_error, 3)}`);
  number("rho_hat", point.rho_hat, `true: ${shown(now.rho, 3)}`);
  number("stability", point.stability, "exists below 1");
  number("onavekl", point.onavekl, `paper's: ${shown(point.onavekl_paper, 3)}`);
  number("advantage", point.advantage, "0: a guess, 1: certainty");
  number("sigma", point.sigma, `too much from ${shown(point.critical_noise, 3)}`);
  const unprotected = "If Fᵀy were released, no level of this noise would protect the labels: columns of scale near zero get next to none.";
  byId("notes").textContent = [...point.notes, point.label_epsilon === null ? unprotected :
    point.label_epsilon ? `If Fᵀy were released with this noise, labels in a range of ${shown(now.width, 3)} deviations would have ε = ${shown(point.label_epsilon, 3)} at δ = ${shown(now.delta, 3)}.` : ""].join(" ");
  if (byId("python")) {
    byId("python").textContent = asPython(now, point.sigma);
    byId("command").textContent = asCommand(now, point.sigma);
    byId("scales-file").hidden = now.law !== "own";
  }
}

const float = (value) => (Number.isInteger(value) && Math.abs(value) < 1e15 ? `${value}.0` : String(value));

function asPython(now, sigma) {
  const laws = {
    uniform: `Uniform(${float(now.low)}, ${float(now.high)})`,
    lognormal: `LogNormal(${float(now.mu)}, ${float(now.spread)})`,
    constant: `Constant(${float(now.value)})`,
    own: `Empirical([${(now.scales || []).map(float).join(", ")}])`,
  };
  const count = now.n_features === null ? "" : `, n_features=${now.n_features}`;
  return [
    "import privasso as pv", "", `scales = pv.${laws[now.law]}`,
    `model = pv.Model(alpha=${float(now.alpha)}, rho=${float(now.rho)}, sigma_xi=${float(now.sigma_xi)}, scales=scales)`,
    `noise = pv.PowerLaw(sigma=${float(sigma)}, gamma=${float(now.gamma)})`,
    `fp = pv.state_evolution(model, lam=${float(now.lam)}, noise=noise${count})`,
    "print(fp.E, fp.rho_hat, fp.stability, fp.onavekl(), fp.advantage())",
    ...correlatedPython(now, correlatedCount(now)),
  ].join("\n");
}

function asCommand(now, sigma) {
  const laws = {
    uniform: `uniform:${now.low},${now.high}`, lognormal: `lognormal:${now.mu},${now.spread}`,
    constant: `constant:${now.value}`, own: "scales.txt",
  };
  const count = correlatedOptions(now, correlatedCount(now)) || (now.n_features === null ? "" : ` --n-features ${now.n_features}`);
  return `privasso theory --alpha ${now.alpha} --rho ${now.rho} --sigma-xi ${now.sigma_xi} --scales ${laws[now.law]} ` +
    `--lam ${now.lam} --noise power:${now.gamma} --sigma ${sigma}${count}`;
}

function showFits(fits) {
  last.fits = fits;
  byId("fits-about").textContent = `Predicted R² on new rows for ${fits.rows} rows and ${fits.columns} independent columns of ` +
    `one scale, δ = ${shown(fits.delta, 3)}, and bounds of the labels ${shown(fits.width, 3)} deviations apart. None: no better than the mean label.`;
  const cells = (values) => values.map((r2) => (r2 > 0 ? r2.toFixed(2) : "none"));
  table(byId("fits"), ["private", ...fits.epsilon.map((e) => `ε = ${e}`)],
    [["whole records", ...cells(fits.records)], ["labels", ...cells(fits.labels)]]);
}

function speak() {
  const { point } = last;
  if (!point) return;
  byId("spoken").textContent = point.status !== "stable" ? point.meaning
    : `Error ${shown(point.E, 3)}, nonzero coefficients ${shown(point.rho_hat, 3)}, stability ${shown(point.stability, 3)}, ` +
      `average leakage ${shown(point.onavekl, 3)}, advantage of an attack ${shown(point.advantage, 3)}.`;
}

const STYLES = ["g0 d0", "g1 d1", "g2 d2", "g3"];
const styleOf = (gamma) => { const k = SPEC.compared.indexOf(gamma); return k < 0 ? "own" : STYLES[k]; };
const NAMES = { onavekl: "average leakage, OnAveKL", advantage: "advantage of an attack", epsilon: "ε of the labels, Fᵀy released" };

function drawCurves() {
  const { curves } = last.curves, by = byId("privacy").value, here = last.point;
  const most = 1.6 * Math.max(here.null_error, here.E || 0);
  const inside = curves.flatMap((c) => c[by].filter((v, k) => c.E[k] !== null && c.E[k] < most));
  const mine = by === "epsilon" ? here.label_epsilon : here[by];
  const plot = new Plot(byId("curves"), `Prediction error against ${NAMES[by]} for ${curves.length} shapes of noise; ` +
    "the numbers are in the table below.", {
    x: range([...inside, mine], { least: by === "advantage" ? 1e-4 : 1e-3, most: by === "epsilon" ? 1e4 : 50 }),
    y: range(curves.flatMap((c) => c.E).concat(here.E), { most }),
  });
  plot.axes(NAMES[by], "prediction error E");
  for (const c of curves) {
    const points = c[by].map((v, k) => [v, c.E[k], c.sigma[k]]);
    // The point that is set lies between levels of its curve, which must pass through it.
    if (c.yours && here.status === "stable") points.push([mine, here.E, here.sigma]);
    points.sort((a, b) => a[2] - b[2]);
    plot.line(points.map(([v, E]) => [v, E]), `${styleOf(c.gamma)}${c.yours ? " yours" : ""}`);
  }
  if (here.status === "stable") plot.mark(mine, here.E, "here");
  plot.show();
  const note = (c) => (c.yours ? " (set)" : "") + (c.E.some((v) => v !== null) ? "" : ": no finite error");
  legend(byId("curves-legend"), curves.map((c) => [c.name + note(c), styleOf(c.gamma)]));
  const heads = ["noise", "σ_η", "E", "OnAveKL", "advantage"];
  const rows = curves.flatMap((c) => c.sigma.map((s, k) => [c.name, s, c.E[k], c.onavekl[k], c.advantage[k]]));
  table(byId("curves-table"), heads, rows);
}

function table(host, heads, rows) {
  const line = (cells, tag) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => {
      const made = document.createElement(tag);
      if (tag === "th") made.scope = "col";
      made.textContent = typeof cell === "string" ? cell : shown(cell, 3);
      return made;
    }));
    return row;
  };
  const head = document.createElement("thead"), body = document.createElement("tbody");
  head.append(line(heads, "th"));
  body.append(...rows.map((cells) => line(cells, "td")));
  host.replaceChildren(head, body);
}

function drawScales() {
  const { scales, deviation, curves } = last.curves, sigma = last.point.sigma;
  const lines = curves.map((c) => [c.gamma, scales.map((s, k) => [s, sigma * deviation[String(c.gamma)][k]])]);
  const plot = new Plot(byId("scales-plot"), "Standard deviation of the noise of a column against the scale of the column.", {
    x: range(scales), y: range(lines.flatMap(([, points]) => points.map(([, d]) => d))),
  });
  plot.axes("scale of a column, s", "deviation of its noise");
  for (const [gamma, points] of lines) {
    plot.line(points, `${styleOf(gamma)}${gamma === last.now.gamma ? " yours" : ""}`);
  }
  plot.show();
  legend(byId("scales-legend"), curves.map((c) => [c.name + (c.yours ? " (set)" : ""), styleOf(c.gamma)]));
}

function drawAttack() {
  const { curves } = last.attack;
  const host = byId("attack");
  if (!curves.length) { host.replaceChildren(); byId("attack-legend").replaceChildren(); return; }
  const plot = new Plot(host, "True- against false-positive rate of the best membership attack.", { x: [1e-4, 1], y: [1e-4, 1] });
  plot.axes("false-positive rate", "true-positive rate");
  plot.line([[1e-4, 1e-4], [1, 1]], "own d0");
  curves.forEach((c, k) => plot.line(c.false.map((f, i) => [f, c.true[i]]), k ? "g0 d2" : "g3"));
  plot.show();
  legend(byId("attack-legend"), [...curves.map((c, k) => [`${c.name} (AUC ${shown(c.auc, 3)})`, k ? "g0 d2" : "g3"]), ["guessing", "own d0"]]);
}

let frame = null;

function drawMap() {
  const { map, point, now } = last, what = byId("shown").value;
  const values = map[what].map((v, k) => (map.status[k] === 0 ? v : null));
  const cap = what === "E" ? 4 * point.null_error : Infinity;
  const [low, high] = range(values.map((v) => (v === null ? null : Math.min(v, cap))), { least: 1e-6, most: 1e5, room: 1 });
  const half = (list) => Math.sqrt(list[1] / list[0]);
  const edges = (list) => [list[0] / half(list), list[list.length - 1] * half(list)];
  const names = { E: "prediction error E", onavekl: "OnAveKL", advantage: "advantage of an attack", rho_hat: "nonzero coefficients" };
  const plot = new Plot(byId("map"), `Map of the ${names[what]} over noise level and penalty; hatched where no estimator with a finite error exists.`,
    { x: edges(map.sigma), y: edges(map.lam), ratio: 0.72 });
  plot.right -= 74;
  const { svg } = plot, box = { x: plot.left, y: plot.top, width: plot.right - plot.left, height: plot.bottom - plot.top };
  const pattern = element("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg);
  element("rect", { width: 7, height: 7, class: "hatch" }, pattern);
  element("line", { x1: 0, x2: 0, y1: 0, y2: 7, class: "hatch-line" }, pattern);
  plot.axes("noise level σ_η", "penalty λ");
  element("rect", { ...box, fill: "url(#hatch)" }, svg);
  element("image", { ...box, href: pixels(map, values, low, high), preserveAspectRatio: "none", class: "pixels" }, svg);
  for (let k = 0; k < 40; k += 1) {
    const h = box.height / 40;
    element("rect", { x: plot.right + 12, y: plot.bottom - (k + 1) * h, width: 14, height: h + 0.6, fill: `rgb(${colour((k + 0.5) / 40)})` }, svg);
  }
  for (const value of logTicks(low, high, 5)) {
    const y = plot.bottom - box.height * Math.log(value / low) / Math.log(high / low);
    element("text", { x: plot.right + 30, y: y + 4 }, svg, shown(value, 2) + (value >= cap * 0.999 ? "+" : ""));
  }
  const x = clamp(plot.x(point.sigma || 1e-9), plot.left, plot.right), y = clamp(plot.y(now.lam), plot.top, plot.bottom);
  for (const kind of ["cross", "cross2"]) {
    element("line", { x1: x - 11, x2: x + 11, y1: y, y2: y, class: kind }, svg);
    element("line", { x1: x, x2: x, y1: y - 11, y2: y + 11, class: kind }, svg);
  }
  frame = plot;
  plot.show();
}

function cell(event) {
  const bounds = frame.svg.getBoundingClientRect(), { map } = last;
  const x = ((event.clientX - bounds.left) * frame.width) / bounds.width;
  const y = ((event.clientY - bounds.top) * frame.height) / bounds.height;
  const column = Math.floor(((x - frame.left) / (frame.right - frame.left)) * map.sigma.length);
  const row = Math.floor(((frame.bottom - y) / (frame.bottom - frame.top)) * map.lam.length);
  if (column < 0 || row < 0 || column >= map.sigma.length || row >= map.lam.length) return null;
  return { lam: map.lam[row], sigma: map.sigma[column], k: row * map.sigma.length + column };
}

function readMap(event) {
  const at = cell(event), { map } = last;
  if (!at) return;
  const where = `λ = ${shown(at.lam, 3)}, σ_η = ${shown(at.sigma, 3)}: `;
  const what = ["", "no estimator exists.", "the error grows with the number of columns."][map.status[at.k]] ||
    `E = ${shown(map.E[at.k], 3)}, ρ̂ = ${shown(map.rho_hat[at.k], 3)}, OnAveKL = ${shown(map.onavekl[at.k], 3)}, ` +
    `advantage = ${shown(map.advantage[at.k], 3)}.`;
  byId("map-readout").textContent = where + what;
}

function takeLevel() {
  const by = document.querySelector("input[name=noise_by][value=level]");
  if (by) by.checked = true;
}

function listen() {
  const map = byId("map");
  map.addEventListener("pointermove", readMap);
  map.addEventListener("click", (event) => {
    const at = cell(event);
    if (!at) return;
    takeLevel();
    controls.get("lam").set(Number(at.lam.toPrecision(3)));
    controls.get("sigma").set(Number(at.sigma.toPrecision(3)));
    changed();
  });
  map.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: ["sigma", -1], ArrowRight: ["sigma", 1], ArrowDown: ["lam", -1], ArrowUp: ["lam", 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    if (step[0] === "sigma") takeLevel();
    controls.get(step[0]).step(step[1] * (SPEC.controls[step[0]].values ? 1 : 4));
    changed();
    byId("map-readout").textContent = `λ = ${shown(controls.get("lam").value, 3)}, σ_η = ${shown(controls.get("sigma").value, 3)}`;
  });
  byId("shown").addEventListener("change", drawMap);
  byId("privacy").addEventListener("change", drawCurves);
  document.querySelectorAll("[data-change]").forEach((part) => part.addEventListener("input", changed));
  document.querySelectorAll("button[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  byId("scales-file")?.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(settings().scales.join("\n") + "\n")}`;
    link.download = "scales.txt";
    link.click();
  });
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (last.map) { drawCurves(); drawScales(); drawMap(); }
      if (last.attack) drawAttack();
    }, 100);
  });
}

async function copy(button) {
  const text = byId(button.dataset.copy);
  const usual = button.textContent;
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(text);
    button.textContent = "Selected: press Ctrl+C";
  }
  byId("spoken").textContent = button.textContent;
  setTimeout(() => { button.textContent = usual; }, 2000);
}

document.querySelectorAll(".control[data-name]").forEach((host) => {
  const control = new Slider(host);
  controls.set(control.name, control);
});
listen();
changed();
