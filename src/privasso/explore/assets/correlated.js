// Predictions for correlated columns: simulated when nothing moves, with standard errors.

const CORRELATED_ROWS = [
  ["E", "Prediction error E"], ["rho_hat", "Nonzero coefficients ρ̂"], ["stability", "Stability ρ̂/α"],
  ["onavekl", "Average leakage, OnAveKL"], ["advantage", "Advantage of an attack"], ["critical_noise", "Critical noise level σ_η"],
];

function correlatedState(sentence, busy) {
  byId("correlated-state").textContent = sentence;
  byId("correlated-progress").hidden = !busy;
  byId("correlated").setAttribute("aria-busy", busy);
}

// What the table shows is about earlier settings as soon as something moves.
function moveCorrelated(now) {
  if (now.correlation === "none" && byId("correlated-state").dataset.kind === "none") return;
  byId("correlated-state").dataset.kind = now.correlation;
  if (now.correlation === "none") {
    correlatedState("Choose a kind of correlation to see what it changes.", false);
    byId("correlated").replaceChildren();
  } else {
    correlatedState("Simulating …", true);
  }
}

async function askCorrelated(now, current) {
  if (now.correlation === "none") return;
  let found;
  try {
    found = await source("correlated", now);
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    if (current()) { correlatedState(problem.message, false); byId("correlated").replaceChildren(); }
    return;
  }
  if (!current()) return;
  const { correlated, independent, columns } = found;
  const cell = (name) => {
    const value = correlated[name], error = correlated.errors[name];
    return shown(value) + (value !== null && error ? ` ± ${shown(error, 2)}` : "");
  };
  correlatedState(`${columns} columns, noise of the shape and level that are set; ± is the standard error of the simulation.` +
    (correlated.status === "stable" ? "" : " No estimator exists for correlated columns."), false);
  table(byId("correlated"), ["", "independent", "correlated"],
    CORRELATED_ROWS.map(([name, words]) => [words, shown(independent[name]), cell(name)]));
  CORRELATED_ROWS.forEach(([name], k) => {
    byId("correlated").tBodies[0].rows[k].dataset.name = name;
    byId("correlated").tBodies[0].rows[k].dataset.value = correlated[name] === null ? "" : correlated[name];
  });
}

// The same in Python, after the lines for independent columns.
function correlatedPython(now, count) {
  const kinds = {
    ar: `AutoRegressive(${float(now.neighbour_r)})`, blocks: `Blocks(${now.block_size}, ${float(now.block_r)})`,
    factors: `Factors(${now.n_factors}, ${float(now.factor_share)})`,
  };
  if (!(now.correlation in kinds)) return [];
  return [
    "", "# Correlated columns, simulated:", `correlation = pv.model.${kinds[now.correlation]}`,
    `model = pv.Model(alpha=${float(now.alpha)}, rho=${float(now.rho)}, sigma_xi=${float(now.sigma_xi)}, scales=scales, covariance=correlation)`,
    `fp = pv.state_evolution(model, lam=${float(now.lam)}, noise=noise, n_features=${count}, rng=0)`,
    "print(fp.E, fp.rho_hat, fp.stability, fp.onavekl(), fp.advantage())",
  ];
}

// ` --covariance …` for the command; it is empty for independent columns and for those of a table.
function correlatedOptions(now, count) {
  const kinds = {
    ar: `ar:${now.neighbour_r}`, blocks: `blocks:${now.block_size},${now.block_r}`,
    factors: `factors:${now.n_factors},${now.factor_share}`,
  };
  return now.correlation in kinds ? ` --covariance ${kinds[now.correlation]} --n-features ${count} --seed 0` : "";
}

const correlatedCount = (now) => now.n_features ?? (now.law === "own" ? now.scales.length : SPEC.correlated);
