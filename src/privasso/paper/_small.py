"""What small columns reveal: quarters of the columns by scale, measured and predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import polars as pl
from scipy.special import erfc, ndtr

import privasso as pv
from privasso.figures import Figure
from privasso.noise import noise_from_name
from privasso.paper import _experiment as sim
from privasso.paper import _ink as ink
from privasso.paper._claim import Finding, claim, found, groups, verdict_if
from privasso.paper._figure import (
    ALPHA,
    DESIGNS,
    LAMS,
    LAWS,
    LOOKS,
    RHO,
    PaperFigure,
    Settings,
    Simulated,
    Tables,
    model,
    named,
)

QUARTERS = 4
#: λ/σ_η, at which both designs have a fixed point under both laws.
RATIO = 4.0
#: The λ that is drawn.
SHOWN = 0.2
#: Scales that are drawn; smaller columns are practically always zero.
LIMITS = {"uniform": (0.09, 1.1), "lognormal": (0.2, 5.0)}
#: Columns and axis titles of what is drawn.
PANELS = {
    "change": "change by one record",
    "nonzero": "probability of being nonzero",
    "leakage": "leakage of a coefficient",
}
#: A difference counts beyond this many standard errors.
REAL = 2.0


@dataclass(frozen=True)
class QuarterExperiment(sim.Experiment):
    """Quarters of the columns by scale, the smallest first, for every law, design and λ.

    σ is λ divided by `ratio`. ``nonzero`` is the share of a quarter's coefficients that are not
    zero. ``change`` is the mean square by which a coefficient changes when one record is replaced
    by another of the same law and the noise stays as it is, times N. Both are means over the
    ``exists`` data sets that have a minimiser, before and after each of `records` replacements.
    """

    kind: ClassVar[str] = "quarters"

    laws: tuple[str, ...] = ("uniform", "lognormal")
    designs: tuple[str, ...] = ("isotropic", "gram")
    lams: tuple[float, ...] = (0.1, 0.2, 0.5)
    _: KW_ONLY
    ratio: float = 4.0
    n_features: int = 400
    records: int = 8

    @staticmethod
    def compute(parameters: sim.Parameters) -> sim.Result:
        """Solve for one data set, and again with each of some records replaced."""
        law, n = parameters["law"], parameters["n_features"]
        v, pairs = sim.neighbours(parameters, "quarters data")
        z = sim.stream(parameters, "quarters noise", law, n).standard_normal(n)
        parts = np.array_split(np.argsort(v), QUARTERS)
        found: sim.Result = {"scale": [], "nonzero": [], "change": []}
        for design, lam in product(parameters["designs"], parameters["lams"]):
            noise = noise_from_name("design", design, lam / parameters["ratio"])
            eta = z * np.sqrt(noise.variances(v))
            answers = [sim.released(F, y, lam, eta) for F, y in pairs]
            points = [x for x in answers if x is not None]
            moved = None
            if len(points) == len(answers):
                moved = n * np.mean([(x - points[0]) ** 2 for x in points[1:]], axis=0)
            for part in parts:
                found["scale"].append(float(np.sqrt(v[part]).mean()))
                there = None if moved is None else float(np.mean(points[0][part] != 0.0))
                found["nonzero"].append(there)
                found["change"].append(None if moved is None else float(moved[part].mean()))
        return found

    def rows(self, case: sim.Parameters, results: list[sim.Result]) -> Iterator[sim.Row]:
        grid = product(self.designs, self.lams, range(QUARTERS))
        for k, (design, lam, quarter) in enumerate(grid):
            point = sim.at(results, k)
            yield {
                "design": design, "alpha": self.alpha, "rho": self.rho, "lam": lam,
                "sigma": lam / self.ratio, "quarter": quarter + 1,
                "exists": sim.known(point["nonzero"]).size,
                "scale": float(np.mean(point["scale"])),
                **sim.means(nonzero=point["nonzero"], change=point["change"]),
            }  # fmt: skip


def _points(settings: Settings) -> Simulated:
    data = settings.data("small")
    data |= {"ratio": RATIO, "records": min(8, data["n_features"] // 8)}
    return {"small_points": QuarterExperiment(tuple(LAWS), DESIGNS, LAMS, **data)}


def _theory(settings: Settings) -> Tables:
    parts = []
    for law, design, lam in product(LAWS, DESIGNS, LAMS):
        noise = LOOKS[design].noise.with_sigma(lam / RATIO)
        n = settings.data("small")["n_features"]
        fp = pv.state_evolution(model(law), lam, noise, n_features=n)
        v = np.sort(LAWS[law].scales.quantiles(n)) ** 2
        deviations = np.sqrt(noise.variances(v))
        found = [column(fp.E, fp.V, lam, *pair) for pair in zip(v, deviations, strict=True)]
        nonzero, leakage = np.array(found).T
        part = pl.DataFrame({"scale": np.sqrt(v), "nonzero": nonzero, "leakage": leakage})
        what = {"law": law, "design": design, "lam": lam, "sigma": lam / RATIO, "n_features": n}
        first = "law design lam sigma n_features version status"
        parts.append(named(part, first, **what, status=fp.status.value))
    return {"small_theory": pl.concat(parts)}


def column(E: float, V: float, lam: float, v: float, deviation: float) -> tuple[float, float]:
    """P(x̂ ≠ 0) and α⁻² E R_v/v, the summand of the paper's cwOnAveKL, of a column with v = s².

    `deviation` is σ_η(v). m̂ is normal with variance E/(αv), or 1 + E/(αv) for a true coefficient.
    """
    width = (1.0 + V) / (ALPHA * v)
    tau, kappa = width * deviation, lam / deviation
    nonzero = leakage = 0.0
    for share, signal in ((1.0 - RHO, 0.0), (RHO, 1.0)):
        field = math.sqrt(signal + E / (ALPHA * v))
        total = math.hypot(field, tau)
        t = lam * width / total
        chance = float(erfc(t / math.sqrt(2.0)))
        # E[r''] in closed form, and E[r'²/(1−r)] on a grid of m̂/τ.
        curvature = 2.0 * t * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / total**2
        information = curvature + (chance + _zero(kappa, field / tau)) / tau**2
        nonzero += share * chance
        leakage += share * E * information / (ALPHA**2 * v)
    return nonzero, leakage


def _zero(kappa: float, spread: float) -> float:
    """Mean of (φ(a) − φ(b))²/(Φ(a) − Φ(−b)), a = κ − z, b = κ + z, over z ~ N(0, spread²)."""
    first, last = max(0.0, kappa - 9.0), min(9.0 * spread, kappa + 9.0)
    if last <= first:  # z would be nine deviations away
        return 0.0
    z = np.linspace(first, last, 1 + math.ceil(40.0 * (last - first) / min(spread, 1.0)))
    a, b = kappa - z, kappa + z
    slope = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / math.sqrt(2.0 * math.pi)
    mass = np.maximum(ndtr(a) - ndtr(-b), 1e-300)
    prior = np.exp(-0.5 * (z / spread) ** 2) / (spread * math.sqrt(2.0 * math.pi))
    return float(2.0 * np.trapezoid(slope**2 / mass * prior, z))


def _draw(tables: Tables) -> Figure:
    points, theory = (tables[name].filter(lam=SHOWN) for name in ("small_points", "small_theory"))
    name = "scale s of the column"
    canvas, panels = ink.panels(10.5, 6.8, 2, len(PANELS), x=name, sharex="row")
    for (row, law), (place, name) in product(zip(panels, LAWS, strict=True), enumerate(PANELS)):
        axes = row[place]
        for design in DESIGNS:
            look = LOOKS[design]
            if name in theory.columns:
                line = theory.filter(law=law, design=design)
                axes.plot(line["scale"], line[name], color=look.colour, lw=1.4)
            if name in points.columns:
                rows = points.filter(law=law, design=design)
                marks = {"fmt": look.marker, "color": look.colour, **ink.OPEN}
                axes.errorbar(rows["scale"], rows[name], rows[f"{name}_se"], zorder=3, **marks)
        ink.finish(axes, ylabel=PANELS[name], xlim=LIMITS[law])
        if name == "nonzero":
            axes.set_ylim(1e-4, 1.0)
        elif name == "leakage":
            top = 2.0 * float(theory.filter(law=law)["leakage"].to_numpy().max())
            axes.set_ylim(top / 1e4, top)
        if place == 0:
            axes.set_title(LAWS[law].title, loc="left", fontsize=10)
    ink.legend(canvas, ink.SOLVED)
    return canvas


def _caption(tables: Tables) -> str:
    points = tables["small_points"]
    sigma = SHOWN / RATIO
    return (
        f"Not in the paper, which says so in words. λ = {SHOWN:g}, σ_η = {sigma:g}. Marks: "
        f"quarters of the columns by scale (N = {points['n_features'][0]}, "
        f"{points['samples'][0]} data sets). Lines: prediction for one column. Left: by how much "
        "a coefficient changes when one record is replaced (mean square, times N). Middle: how "
        "often it is released as nonzero. Right: what the coefficient adds to the paper's "
        "cwOnAveKL, which is the mean over the columns."
    )


@claim("s", REAL=REAL)
def _small_columns(points: pl.DataFrame, theory: pl.DataFrame) -> Finding:
    cells, holds = [], []
    for (law, lam), rows in groups(points, "lam"):
        small, large = _ends(rows.filter(design="isotropic"))
        columns = theory.filter(law=law, lam=lam)
        iso, gram = (_quarters(columns.filter(design=design)) for design in DESIGNS)
        error = float(np.hypot(small["change_se"], large["change_se"]))
        holds.append(
            (
                small["change"] - large["change"] > REAL * error,
                iso["leakage"][0] > iso["leakage"][1],
                gram["nonzero"][0] < iso["nonzero"][0],
                gram["leakage"][0] < iso["leakage"][0],
            )
        )
        cells.append(
            {
                "law": LAWS[law].name, "λ": f"{lam:g}",
                "change": _against(small["change"], large["change"]),
                "leakage, isotropic": _against(*iso["leakage"]),
                "leakage, Gram-based": _against(*gram["leakage"]),
                "nonzero, Gram : isotropic": _against(gram["nonzero"][0], iso["nonzero"][0]),
                "leakage, Gram : isotropic": _against(gram["leakage"][0], iso["leakage"][0]),
            }
        )  # fmt: skip
    counts = [sum(x) for x in zip(*holds, strict=True)]
    cases = len(holds)
    enough = [count >= 0.95 * cases for count in counts]
    changed, leaking, hidden, safer = (f"{count} of {cases}" for count in counts)
    return found(
        verdict_if(all(enough), any(enough)),
        f"Under isotropic noise a record changes small coefficients more in {changed} cases, and "
        f"they leak more in {leaking}. Gram-based noise sets them to zero more often in {hidden}, "
        f"and they then leak less in {safer}.",
        {"changed": counts[0], "leaking": counts[1], "hidden": counts[2], "safer": counts[3]},
        (
            f"σ_η = λ/{RATIO:g}; the first three columns of ratios are the smallest quarter over "
            "the largest, the last two the smallest quarter under both designs",
            cells,
        ),
    )


def _ends(rows: pl.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """What was measured of the quarter of the smallest and of the largest columns."""
    known = rows.sort("quarter").fill_null(float("nan"))
    return known.row(0, named=True), known.row(-1, named=True)


def _quarters(columns: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Predicted means over the smallest and over the largest quarter of the columns."""
    ordered, ends = columns.sort("scale"), {}
    for name in ("nonzero", "leakage"):
        parts = np.array_split(ordered[name].to_numpy(), QUARTERS)
        ends[name] = float(parts[0].mean()), float(parts[-1].mean())
    return ends


def _against(one: float, other: float) -> str:
    return f"{one / other:.2g}" if other > 0.0 else "—"


SMALL = PaperFigure("small", "What small columns reveal", _draw, _caption, _points, _theory)
