// Answers from a table in the page: predictions on a grid of settings, in the order of `TABLE.order`.
const decoded = {};
for (const [name, text] of Object.entries(TABLE.values)) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  decoded[name] = name === "status" ? bytes : new Float32Array(bytes.buffer);
}

function at(now, gamma) {
  const { law, alpha, rho, gammas, lam, sigma } = TABLE.axes;
  const k = [law.indexOf(now.law), nearest(alpha, now.alpha), nearest(rho, now.rho), gammas.indexOf(gamma)];
  const sizes = [law.length, alpha.length, rho.length, gammas.length];
  return k.reduce((sum, index, i) => sum * sizes[i] + index, 0) * lam.length * sigma.length;
}

const value = (name, k) => (Number.isFinite(decoded[name][k]) ? decoded[name][k] : null);

const variance = (now) => now.rho * TABLE.laws[now.law].mean + TABLE.sigma_xi ** 2;

// ε of the labels if Fᵀy is released with noise of this level; null where none protects them.
function labelEpsilon(now, gamma, sigma) {
  const sensitivity = TABLE.laws[now.law].sensitivity[`${now.alpha} ${gamma}`];
  return sensitivity === null ? null : gaussianEpsilon(now.delta, (now.width * Math.sqrt(variance(now)) * sensitivity) / sigma);
}

const nodes = normalNodes(TABLE.gauss.nodes, TABLE.gauss.weights);

async function source(what, now) {
  if (what === "numbers" || what === "everything") {
    const [point, curves] = [await source("point", now), await source("curves", now)];
    return { point, curves, notes: point.notes, map: what === "everything" ? await source("map", now) : null };
  }
  const { lam, sigma, gammas } = TABLE.axes, first = at(now, now.gamma);
  const row = nearest(lam, now.lam), fields = ["E", "onavekl", "onavekl_paper", "advantage", "rho_hat"];
  if (what === "point") {
    const k = first + row * sigma.length + nearest(sigma, now.sigma), status = decoded.status[k];
    const numbers = Object.fromEntries(fields.map((name) => [name, value(name, k)]));
    const law = TABLE.laws[now.law];
    return {
      ...numbers, status: ["stable", "unstable", "infinite error"][status], meaning: TABLE.meaning[status],
      stability: numbers.rho_hat === null ? null : numbers.rho_hat / now.alpha, sigma: now.sigma, notes: TABLE.notes,
      null_error: variance(now), label_noise: TABLE.sigma_xi, label_epsilon: labelEpsilon(now, now.gamma, now.sigma),
      critical_noise: now.lam / law.ratio[`${now.alpha} ${now.gamma}`],
    };
  }
  if (what === "curves") {
    const law = TABLE.laws[now.law];
    const curves = gammas.map((gamma, g) => {
      const start = at(now, gamma) + row * sigma.length, keep = [];
      for (let k = 0; k < sigma.length; k += 1) if (decoded.status[start + k] === 0) keep.push(k);
      const take = (name) => keep.map((k) => value(name, start + k));
      return { gamma, name: TABLE.names[g], yours: gamma === now.gamma, sigma: keep.map((k) => sigma[k]),
        E: take("E"), onavekl: take("onavekl"), advantage: take("advantage"),
        epsilon: keep.map((k) => labelEpsilon(now, gamma, sigma[k])) };
    });
    return { curves, scales: law.scales, deviation: law.deviation };
  }
  if (what === "attack") {
    const k = first + row * sigma.length + nearest(sigma, now.sigma), part = value("rho_hat", k);
    if (decoded.status[k] !== 0 || part === null) return { curves: [] };
    const V = part / (now.alpha - part), J = value("onavekl_paper", k) * (1 + V) ** 2;
    return { curves: [{ name: "all records", ...attackRates(V, J, nodes) }] };
  }
  if (what === "fits") return TABLE.fits[`${now.law} ${now.alpha} ${now.rho}`];
  const size = lam.length * sigma.length, take = (name) => Array.from({ length: size }, (_, k) => value(name, first + k));
  return { lam, sigma, status: Array.from(decoded.status.subarray(first, first + size)),
    ...Object.fromEntries(["E", "onavekl", "advantage", "rho_hat"].map((name) => [name, take(name)])) };
}
