// The normal law, and what follows from it: ε of a Gaussian mechanism, and the rates of the best membership attack.

const density = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);

// Mills ratio (1 − Φ(x))/φ(x) for x ≥ 0: a series for small x, a continued fraction for large ones.
function mills(x) {
  if (x < 2.5) {
    let term = x, sum = x;
    for (let k = 3; Math.abs(term) > 1e-18 * sum; k += 2) { term *= (x * x) / k; sum += term; }
    return 0.5 / density(x) - sum;
  }
  let below = 0;
  for (let k = 120; k > 0; k -= 1) below = k / (x + below);
  return 1 / (x + below);
}

const normal = (x) => (x < 0 ? density(x) * mills(-x) : 1 - density(x) * mills(x));

// Smallest ε with δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) ≤ δ.
function gaussianEpsilon(delta, mu) {
  if (!(mu < Infinity)) return Infinity;
  const found = (epsilon) => {
    const low = epsilon / mu - mu / 2, high = epsilon / mu + mu / 2;
    return low < 0 ? normal(-low) - density(low) * mills(high) : density(low) * (mills(low) - mills(high));
  };
  if (found(0) <= delta) return 0;
  let low = 0, high = 1;
  while (found(high) > delta) high *= 2;
  for (let k = 0; k < 80; k += 1) {
    const middle = 0.5 * (low + high);
    if (found(middle) > delta) low = middle; else high = middle;
  }
  return high;
}

// Nodes and weights of a standard normal law, dense near zero, from those of Gauss and Legendre on (−1, 1).
function normalNodes(x, w) {
  const edges = [0];
  for (let k = 0; k < 30; k += 1) edges.push(0.4 ** k, -(0.4 ** k));
  for (let k = -12; k <= 12; k += 1) edges.push(k);
  const ordered = [...new Set(edges)].sort((a, b) => a - b), nodes = [];
  for (let k = 0; k + 1 < ordered.length; k += 1) {
    const half = 0.5 * (ordered[k + 1] - ordered[k]), middle = ordered[k] + half;
    x.forEach((at, i) => { const z = middle + half * at; nodes.push([z, half * w[i] * density(z)]); });
  }
  return nodes;
}

// False- and true-positive rates of the likelihood-ratio test, averaged over records, for V and J = P(1 + V)².
function attackRates(V, J, nodes) {
  const k2 = Math.max(J - V * V, 0), k = Math.sqrt(k2), reach = Math.asinh(40 * (1 + Math.sqrt(J)));
  const exceeds = (threshold, shrunk, shift) => nodes.reduce((sum, [z, weight]) => {
    const r = z / shrunk, mean = Math.log1p(V) + (shift * k2 - V - 0.5 * J) * r * r;
    return sum + weight * normal((mean - threshold) / Math.max(k * Math.abs(r), 1e-300));
  }, 0);
  const curve = { false: [1], true: [1] };
  for (let step = -60; step <= 60; step += 1) {
    const threshold = Math.sinh((step / 60) * reach), f = exceeds(threshold, 1, 0);
    if (f <= 1e-6 || f >= 1 - 1e-9) continue;
    curve.false.push(f); curve.true.push(exceeds(threshold, 1 + V, 1));
  }
  const ends = { false: [...curve.false, 0], true: [...curve.true, 0] };
  let auc = 0;
  for (let i = 0; i + 1 < ends.false.length; i += 1) {
    auc += 0.5 * (ends.true[i] + ends.true[i + 1]) * (ends.false[i] - ends.false[i + 1]);
  }
  return { ...curve, auc };
}
