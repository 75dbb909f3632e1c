"""Columns of any correlation, for which the paper makes no claims: its claims carried over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import polars as pl

from privasso.figures import BLUE, GREEN, ORANGE, SKY, Figure
from privasso.model import Model, covariance_from_name
from privasso.noise import MatrixPower, column_noise_from_name
from privasso.paper import _experiment as sim
from privasso.paper import _ink as ink
from privasso.paper._claim import AGREE, ClaimVerdict, Finding, claim, found, verdict_of
from privasso.paper._curves import compare
from privasso.paper._figure import LAWS, PaperFigure, Settings, Simulated, Tables, named
from privasso.problem import critical_lambda
from privasso.solvers import Amp, Status, Vamp, solve
from privasso.theory import FixedPointStatus, correlated_edge, state_evolution, tradeoff

#: The algorithms without another solver to finish for them.
ALONE = {"amp": Amp(polish=False), "vamp": Vamp(polish=False, max_iter=500)}
#: Correlations of the columns, and what they are called.
CORRELATIONS = {
    "ar:0.5": "AR(0.5)",
    "ar:0.9": "AR(0.9)",
    "factors:3,0.5": "3 factors",
    "levels:10,0.5": "two levels",
}
#: The designs of the paper, in both readings of "the Gram matrix", and C itself.
NAMES = {"isotropic": "isotropic", "gram": "diagonal v²", "matrix:1": "C", "matrix:2": "C²"}
COLOURS = {"isotropic": ORANGE, "gram": BLUE, "matrix:1": GREEN, "matrix:2": SKY}
#: The two readings of noise in proportion to the Gram matrix.
GRAMS = ("gram", "matrix:2")
LAM, LEVELS = 0.2, (0.05, 0.1)
#: Law and columns of the trade-off that is drawn.
LAW, SHOWN = "lognormal", "ar:0.9"
#: A difference counts beyond so many standard errors, or if it is predicted, beyond this part.
BEYOND, TIE = 2.0, 0.05
#: With fewer differences than this part of the pairs, a claim about them is undecided.
FEW = 0.25
_CASE = ("law", "columns", "sigma")


@dataclass(frozen=True)
class CorrelatedExperiment(sim.Experiment):
    """E, ρ̂ and the critical λ/σ_η of data sets with correlated columns, and their predictions.

    A case is a law of scales and a correlation; all its data sets have the same covariance C. The
    table has one row per case, design and noise level: ``E`` and ``rho_hat`` of certified solves,
    how many have a minimiser (``exists``), on how many AMP and vector AMP converge without help
    from another solver, the critical ratio by linear programming, and what `state_evolution` and
    `correlated_edge` predict for C.
    """

    kind: ClassVar[str] = "correlated"
    varied: ClassVar[Mapping[str, str]] = {"laws": "law", "correlations": "columns"}

    laws: tuple[str, ...] = ("uniform", "lognormal")
    correlations: tuple[str, ...] = ("ar:0.8",)
    designs: tuple[str, ...] = ("isotropic", "gram", "matrix:2")
    _: KW_ONLY
    lam: float = 0.2
    sigmas: tuple[float, ...] = (0.05,)
    n_features: int = 300
    samples: int = 20
    draws: int = 32

    @staticmethod
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Solve one data set with every design and level; None where there is no minimiser."""
        model, law, n = covariance_model(parameters), parameters["law"], parameters["n_features"]
        words = parameters["columns"], law, n
        s = model.sample(rng=sim.stream(parameters, "correlated data", *words))
        z = sim.stream(parameters, "correlated noise", *words).standard_normal(n)
        C: np.ndarray = model.covariance.covariance
        found: sim.Result = {name: [] for name in ("ratio", "E", "rho_hat", "amp", "vamp")}
        for design in parameters["designs"]:
            noise = column_noise_from_name("design", design, 1.0)
            if isinstance(noise, MatrixPower):
                root = noise.root(C)
                direction = root @ z[: root.shape[1]]
            else:
                direction = z * np.sqrt(noise.variances(s.v))
            ratio = critical_lambda(s.F, direction)
            for sigma in parameters["sigmas"]:
                found["ratio"].append(ratio)
                eta = sigma * direction
                released = solve(s.F, s.y, parameters["lam"], eta, throw=False)
                there = released.status is Status.CONVERGED
                miss = released.x - s.x0
                E = float(miss @ C @ miss) / n + model.sigma_xi**2
                found["E"].append(E if there else None)
                found["rho_hat"].append(float(np.mean(released.x != 0.0)) if there else None)
                for name, method in ALONE.items():
                    alone = solve(s.F, s.y, parameters["lam"], eta, method=method, throw=False)
                    found[name].append(float(alone.status is Status.CONVERGED))
        return found

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        model, drawn = covariance_model(case), {"draws": self.draws, "rng": self.seed}
        units = {name: column_noise_from_name("design", name, 1.0) for name in self.designs}
        edges = {name: correlated_edge(model, unit, **drawn) for name, unit in units.items()}
        for k, (design, sigma) in enumerate(product(self.designs, self.sigmas)):
            point = sim.at(results, k)
            fp = state_evolution(model, self.lam, units[design].with_sigma(sigma), **drawn)
            stable = fp.status is FixedPointStatus.STABLE
            yield {
                "design": design, "sigma": sigma, "exists": sim.known(point["E"]).size,
                **sim.means(E=point["E"], rho_hat=point["rho_hat"]),
                "amp_converged": int(sum(point["amp"])),
                "vamp_converged": int(sum(point["vamp"])),
                **sim.means(ratio=point["ratio"]),
                "ratio_theory": edges[design].ratio,
                "ratio_theory_se": edges[design].standard_error,
                "status_theory": fp.status.value,
                "E_theory": fp.E if stable else None,
                "E_theory_se": fp.standard_errors.E if stable else None,
                "rho_hat_theory": fp.rho_hat if stable else None,
                "rho_hat_theory_se": fp.standard_errors.rho_hat if stable else None,
            }  # fmt: skip


def covariance_model(parameters: sim.Parameters) -> Model:
    """The model with the one covariance of a case, from its seed, law, correlation and N."""
    law, correlation, n = (parameters[name] for name in ("law", "columns", "n_features"))
    rng = sim.stream({**parameters, "index": 0}, "columns", law, correlation, n)
    return replace(
        sim.model_of(parameters), covariance=covariance_from_name("columns", correlation)
    ).realised(n, rng)


def _points(settings: Settings) -> Simulated:
    data = settings.data("correlated") | {"draws": settings.draws}
    grid = tuple(LAWS), tuple(CORRELATIONS), ("isotropic", *GRAMS)
    return {"correlated_points": CorrelatedExperiment(*grid, lam=LAM, sigmas=LEVELS, **data)}


def _theory(settings: Settings) -> Tables:
    """E and the exact OnAveKL over levels of noise, up to 0.9 of the critical one."""
    parts = []
    data, drawn = settings.data("correlated"), {"draws": settings.draws, "rng": settings.seed}
    for correlation, design in product(CORRELATIONS, NAMES):
        case = {"law": LAW, "columns": correlation, "n_features": data["n_features"]}
        model = covariance_model(data | case)
        noise = column_noise_from_name("design", design, 1.0)
        edge = correlated_edge(model, noise, **drawn).ratio
        sigmas = np.geomspace(0.01, 0.9 * LAM / edge, settings.levels)
        rows = tradeoff(model, LAM, noise, sigmas, **drawn)
        first = "law columns design lam sigma n_features seed version"
        parts.append(named(rows, first, **case, design=design, seed=settings.seed))
    return {"correlated_tradeoff": pl.concat(parts)}


def _draw(tables: Tables) -> Figure:
    points, curves = tables["correlated_points"], tables["correlated_tradeoff"]
    canvas, ((left, right),) = ink.panels(9.6, 4.6, 1, 2, width_ratios=(1.15, 1.0))
    first = points.filter(sigma=LEVELS[0])
    cases = first.filter(design="isotropic").select("law", "columns").rows()
    shifts = zip((-0.2, 0.0, 0.2), ("isotropic", *GRAMS), strict=True)
    for (place, (law, columns)), (shift, design) in product(enumerate(cases), shifts):
        row = first.filter(design=design, law=law, columns=columns).row(0, named=True)
        look = {"fmt": "o", "ms": 4, "color": COLOURS[design], "lw": 1.0}
        left.errorbar(row["ratio"], place + shift, xerr=2.0 * row["ratio_se"], **look)
        left.plot(row["ratio_theory"], place + shift, "x", color="black", ms=5)
    names = [f"{LAWS[law].name}, {CORRELATIONS[columns]}" for law, columns in cases]
    left.set_yticks(range(len(cases)), names)
    left.invert_yaxis()
    ink.finish(left, log="x", xlabel="smallest λ/σ with an estimator")
    part = curves.filter(columns=SHOWN)
    for design, name in NAMES.items():
        line = part.filter(design=design, status="stable").sort("sigma")
        look = {"ms": 3, "lw": 1.3, "color": COLOURS[design], "label": name}
        right.plot(line["onavekl"], line["E"], "o-", **look)
    ink.finish(right, f"{LAWS[LAW].name}, {CORRELATIONS[SHOWN]}", ylabel="prediction error E")
    right.set_ylim(top=10.0 * float(part["E"].to_numpy().min()))
    right.set_xlabel("OnAveKL of one replaced record")
    mark = {"ls": "none", "ms": 6}
    entries = [(NAMES[x], {**mark, "marker": "o", "color": COLOURS[x]}) for x in NAMES]
    ink.legend(canvas, [*entries, ("state evolution", {**mark, "marker": "x", "color": "black"})])
    return canvas


def _caption(tables: Tables) -> str:
    points = tables["correlated_points"]
    shares = []
    for design in GRAMS:
        factors = gain(points, design)
        shares.append(f"{NAMES[design]}: {factors.min():.1f} to {factors.max():.1f} times smaller")
    return (
        "Not in the paper, which has independent columns. Left: the smallest λ/σ_η at which an "
        "estimator exists, by linear programming ± 2 standard errors and by state evolution "
        "(crosses), for columns of covariance C; v is its diagonal. Compared with isotropic noise "
        f"it is, for {'; '.join(shares)}. Right: error against leakage, traced by the noise level, "
        f"both predicted (N = {points['n_features'][0]}, {points['samples'][0]} data sets, "
        f"λ = {LAM:g})."
    )


def gain(points: pl.DataFrame, design: str) -> np.ndarray:
    """Critical ratio of isotropic noise divided by that of a design, in each case."""
    one = points.filter(sigma=points["sigma"][0]).sort("law", "columns")
    both = (one.filter(design=name)["ratio"].to_numpy() for name in ("isotropic", design))
    isotropic, other = both
    return isotropic / other


def _pairs(points: pl.DataFrame, design: str) -> pl.DataFrame:
    """Rows of a design, and of isotropic noise (``_iso``) in the same case at the same level."""
    isotropic = points.filter(design="isotropic")
    own = points.filter(design=design)
    return own.join(isotropic, on=_CASE, suffix="_iso", maintain_order="left")


def _off(points: pl.DataFrame, name: str, other: str) -> np.ndarray:
    """Difference of two columns in combined standard errors."""
    spread = np.hypot(points[f"{name}_se"].to_numpy(), points[f"{other}_se"].to_numpy())
    return (points[name] - points[other]).to_numpy() / np.maximum(spread, 1e-9)


@claim("n", BEYOND=BEYOND)
def _stability(points: pl.DataFrame) -> Finding:
    first = points.filter(sigma=points["sigma"][0])
    cells, values, holds = [], {}, []
    for design in GRAMS:
        pairs = _pairs(first, design).rename({"ratio_se_iso": "ratio_iso_se"})
        smaller = _off(pairs, "ratio_iso", "ratio") > BEYOND
        factors = gain(points, design)
        values[design] = factors.tolist()
        holds += smaller.tolist()
        cells.append(
            {
                "noise": NAMES[design], "smaller in": f"{smaller.sum()} of {smaller.size}",
                "by factors of": f"{factors.min():.2f} to {factors.max():.2f}",
            }
        )  # fmt: skip
    off = np.abs(_off(first, "ratio", "ratio_theory"))
    predicted = int(np.sum(off <= AGREE))
    ratios = []
    for law, columns in first.filter(design="isotropic").select("law", "columns").rows():
        same = first.filter(law=law, columns=columns)
        case = {"law": LAWS[law].name, "columns": CORRELATIONS[columns]}
        for name in ("isotropic", *GRAMS):
            case[NAMES[name]] = f"{same.filter(design=name)['ratio'][0]:.2f}"
        ratios.append(case)
    return found(
        verdict_of(float(np.mean(holds))),
        f"State evolution is within {AGREE:g} standard errors of linear programming in "
        f"{predicted} of {off.size} cases.",
        {**values, "predicted": predicted, "cases": int(off.size)},
        ("Critical λ/σ_η compared with isotropic noise", cells),
        ("Critical λ/σ_η", ratios),
    )


@claim("o", BEYOND=BEYOND, FEW=FEW)
def _error(points: pl.DataFrame) -> Finding:
    counts = {}
    for design in GRAMS:
        pairs = _pairs(points, design).rename({"E_se_iso": "E_iso_se"})
        there = (pairs["exists"] >= pairs["samples"]) & (pairs["exists_iso"] >= pairs["samples"])
        off = _off(pairs.filter(there), "E_iso", "E")
        above, below = int(np.sum(off > BEYOND)), int(np.sum(off < -BEYOND))
        counts[design] = {"smaller": above, "larger": below, "equal": off.size - above - below}
    smaller, larger = (sum(x[word] for x in counts.values()) for word in ("smaller", "larger"))
    pairs = sum(sum(count.values()) for count in counts.values())
    few = smaller + larger < FEW * pairs or not pairs
    return found(
        ClaimVerdict.UNDECIDED if few else verdict_of(smaller / (smaller + larger)),
        f"E is smaller than under isotropic noise of the same level in {smaller} of the "
        f"{smaller + larger} differences.",
        counts,
        (
            "Points at which E is smaller or larger than under isotropic noise, of those at "
            "which all data sets have a minimiser under both",
            [
                {"noise": NAMES[design], **{word: str(n) for word, n in count.items()}}
                for design, count in counts.items()
            ],
        ),
    )


@claim("p", TIE=TIE)
def _tradeoff(table: pl.DataFrame) -> Finding:
    law, lam = str(table["law"][0]), float(table["lam"][0])
    holds, cells, values = [], [], {}
    for design in (*GRAMS, "matrix:1"):
        for columns, name in CORRELATIONS.items():
            part = table.filter(columns=columns)
            c = compare(part, law, lam, "onavekl", design, "isotropic", tie=TIE)
            cells.append(
                {
                    "noise": NAMES[design], "columns": name, "it is": c.word,
                    "ratio of E": f"{c.best:.2f} to {c.worst:.2f}",
                    "ratio of least OnAveKL": f"{c.reach:.2f}",
                }
            )  # fmt: skip
            numbers = {"word": c.word, "best": c.best, "worst": c.worst, "reach": c.reach}
            values[f"{design}, {columns}"] = numbers
            if design in GRAMS:
                holds.append(c.word in ("better", "equal"))
    return found(
        verdict_of(float(np.mean(holds))),
        f"The two readings are better than isotropic noise, or equal, in {sum(holds)} of "
        f"{len(holds)} cases.",
        values,
        (
            f"{LAWS[law].name}, λ = {lam:g}, ratios to isotropic noise; E is compared at equal "
            "OnAveKL",
            cells,
        ),
    )


@claim("q", AGREE=AGREE)
def _extension(points: pl.DataFrame) -> Finding:
    there = points.filter(points["exists"] == points["samples"], status_theory="stable")
    shares, parts = {}, []
    for name, said in (("E", "E"), ("rho_hat", "ρ̂")):
        agree = np.abs(_off(there, name, f"{name}_theory")) <= AGREE
        shares[name] = float(np.mean(agree)) if agree.size else 0.0
        parts.append(f"{said} at {agree.sum()} of {agree.size}")
    runs = int(there["samples"].sum())
    amp, vamp = (int(there[f"{name}_converged"].sum()) for name in ("amp", "vamp"))
    cells = []
    for columns, name in CORRELATIONS.items():
        rows = there.filter(columns=columns)
        cell = {"columns": name}
        for kind, said in (("amp", "AMP"), ("vamp", "vector AMP")):
            share = rows[f"{kind}_converged"].sum() / max(int(rows["samples"].sum()), 1)
            cell[said] = f"{share:.0%}"
        cells.append(cell)
    return found(
        verdict_of(min(shares.values())),
        "State evolution for any covariance agrees with certified solves within "
        f"{AGREE:g} standard errors: {', '.join(parts)} points. "
        f"On these {runs} problems AMP converges in {amp} and vector AMP in {vamp}, without "
        "another solver.",
        {**shares, "runs": runs, "amp": amp, "vamp": vamp},
        ("Problems on which an algorithm converges", cells),
    )


CORRELATED = PaperFigure("correlated", "Correlated columns", _draw, _caption, _points, _theory)
