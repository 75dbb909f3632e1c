"""Facts that follow from the files in `docs/data`: targets met and missed, medians, extremes.

``python -m bench.summary --write`` renews ``*-facts.csv``, ``bench-targets.csv`` and the pictures.
It measures nothing.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable

import numpy as np
import polars as pl

from bench.page import DATA, write
from bench.real.cells import TRAINING
from bench.real.tables import REGISTRY
from bench.summary_pictures import draw

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    """Rows of a file in `docs/data`."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def column(name: str, title: str) -> np.ndarray:
    """A column of a file as numbers, without the cells that have none."""
    return numbers(row[title] for row in rows(name))


def numbers(cells: Iterable[str]) -> np.ndarray:
    """The number with which each cell begins; cells without one are left out."""
    found = (re.match(r"[-−]?\d[\d.,]*(?:e[-+]?\d+)?", cell) for cell in cells)
    return np.array([float(x[0].replace(",", "").replace("−", "-")) for x in found if x])


def targets() -> pl.DataFrame:
    """Each target with the best and the worst that was measured, and whether all meet it."""
    single = rows("bench-single")
    ahead = "fastest peer / ours"
    quiet, noisy = (
        numbers(row[ahead] for row in single if (row["σ_η"] == "0") is still)
        for still in (True, False)
    )
    private = {row["what"]: row for row in rows("bench-fit") if row["what"].startswith("`privasso")}
    time = "time / scikit-learn"
    labels, records = (
        [row for what, row in private.items() if ("record" in what) is records]
        for records in (False, True)
    )
    start = column("bench-start_up", "s")
    theory = rows("bench-theory")
    points = numbers(row["ratio"] for row in theory if row["beside"] == "plain AMP")
    grids = numbers(row["ratio"] for row in theory if row["beside"] == "import")
    large = [row for row in rows("bench-memory") if float(row["F, MB"]) >= 1.0]
    memory = numbers(row[x] for row in large for x in ("solve", "solve_many"))
    found = [
        ("AMP iteration over two BLAS products", "≤ 0.6", column("bench-passes", "ratio")),
        ("solve, fastest peer over ours, without noise", "≥ 3", quiet),
        ("solve, fastest peer over ours, with noise", "≥ 5", noisy),
        ("passes over F in a solve", "≤ 8", column("bench-single", "passes")),
        ("path of 100 λ, fastest peer over ours", "≥ 3", column("bench-paths", "ratio")),
        ("256 noise vectors, scikit-learn over ours", "≥ 15", column("bench-many", "ratio")),
        ("8 noise vectors, loop over `solve_many`", "≥ 1", column("bench-batches", "ratio")),
        ("memory beyond F, relative to 2 F and 4 squares of the support", "≤ 1", memory),
        ("proof of no minimiser over a solve", "≤ 20", _unbounded()),
        ("seconds to import, beyond NumPy, SciPy, scikit-learn", "≤ 1", start[1:2] - start[:1]),
        ("prediction over plain AMP", "≤ 0.05", points),
        ("400 predictions over their import", "≤ 2", grids),
        ("simulated grid points, ours over NumPy", "≥ 5", _column("experiment / NumPy")),
        ("the same, Algorithm 1 alone", "≥ 5", _column("batch / NumPy")),
        ("fit for labels over scikit-learn", "≤ 4", numbers(row[time] for row in labels)),
        ("fit for records over scikit-learn", "≤ 6", numbers(row[time] for row in records)),
        ("peak MB of a fit of 400 MB", "≤ 1200", numbers(x["peak, MB"] for x in private.values())),
        ("exact release over floats, whole fit", "≤ 1.2", _boundary("whole fit", "ratio")),
        ("seconds for 10⁶ draws of noise", "≤ 2", _boundary("10⁶ draws of noise", "exact, s")),
        ("design, in predictions", "≤ 300", column("bench-design", "points")),
    ]  # fmt: skip
    return pl.DataFrame([_target(*each) for each in found])


def _target(what: str, target: str, measured: np.ndarray) -> dict[str, str]:
    least = target.startswith("≥")
    limit = float(target[2:])
    met = measured >= limit if least else measured <= limit
    best, worst = (measured.max(), measured.min()) if least else (measured.min(), measured.max())
    missed = int(np.sum(~met))
    verdict = "met" if not missed else f"**missed** in {missed} of {met.size}"
    return {
        "what": what, "target": target, "best": _shown(best), "worst": _shown(worst),
        "verdict": verdict,
    }  # fmt: skip


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 1000.0 else f"{value:.3g}"


def _unbounded() -> np.ndarray:
    return numbers(
        row["times a bounded solve"]
        for row in rows("bench-unbounded")
        if row["status"] == "UNBOUNDED"
    )


def _column(title: str) -> np.ndarray:
    return column("bench-reproduction", title)


def _boundary(what: str, title: str) -> np.ndarray:
    return numbers(row[title] for row in rows("bench-boundary") if row["what"] == what)


def facts(**values: float | int | str) -> pl.DataFrame:
    """A table of facts by name; underscores of the names become blanks."""
    cells = [f"{x:.3g}" if isinstance(x, float) else str(x) for x in values.values()]
    return pl.DataFrame({"fact": [x.replace("_", " ") for x in values], "value": cells})


def solvers() -> pl.DataFrame:
    """One solve on many kinds of matrices, and what followed targets leave out."""
    found = [row["ratio"] for row in rows("bench-everywhere")]
    timed = [x for x in found if x != "tie"]
    values = np.array([np.inf if x == "only ours" else float(x) for x in timed])
    known = values[np.isfinite(values)]
    many, loops = column("bench-paths", "ratio"), column("bench-batches", "ratio")
    return facts(
        cells=len(found), matrices=len({row["matrix"] for row in rows("bench-everywhere")}),
        ties=found.count("tie"), only_ours=found.count("only ours"), compared=len(known),
        percent_ahead=f"{100 * np.mean(values >= 1.2):.0f}", slower=int(np.sum(known < 1.0)),
        slowest=known.min(), median=float(np.median(values)), paths=len(rows("bench-paths")),
        paths_below=int(np.sum(many < 3.0)), loops=loops.size,
        loops_below=int(np.sum(loops < 1.0)), targets=len(targets()),
        targets_missed=sum("missed" in x for x in targets()["verdict"]),
    )  # fmt: skip


def wide() -> pl.DataFrame:
    """Predicted against measured R², and how often chosen columns are ahead on real tables."""
    pairs = []
    for name in ("wide-map-1", "wide-map-3"):
        for row in rows(name):
            cells = list(row.values())[2:]
            pairs += [re.findall(r"[-\d.]+", cell) for cell in cells if "(" in cell]
    predicted, measured = np.array(pairs, dtype=float).T
    off = measured - predicted
    labels, records = _kept("wide-real-labels"), _kept("wide-real-records")
    return facts(
        cells=len(pairs), rms=f"{np.sqrt(np.mean(off**2)):.2f}",
        mean=f"{off.mean():.2f}".replace("-", "−"),
        far=int(np.sum(np.abs(off) > 0.1 + 1e-9)), tables=len(labels),
        labels_kept=sum(x >= 0.8 for x in labels), records_kept=sum(x >= 0.8 for x in records),
        records_lost=sum(x < 0.2 for x in records),
    )  # fmt: skip


def _kept(name: str) -> list[float]:
    """Share of the R² without privacy that is kept at ε = 1, for each table."""
    found = [row for row in rows(name) if row["ε"] == "1"]
    return [float(row["**screen, then fit**"]) / float(row["no privacy"]) for row in found]


#: Rows per column from which on most of R² is kept: a rule of thumb, which the table judges.
ENOUGH = {("records", "1"): 70, ("records", "3"): 25, ("labels", "1"): 25, ("labels", "3"): 10}


def enough() -> pl.DataFrame:
    """On how many real tables 80 % of the R² without privacy is kept, by rows for each column."""
    found = []
    for (protects, epsilon), limit in ENOUGH.items():
        kept: dict[bool, list[bool]] = {True: [], False: []}
        sizes = {row["table"]: row["rows × columns"] for row in rows(f"real-{protects}-tables")}
        for row in rows(f"real-{protects}"):
            if row["ε"] == epsilon and row.get("form", "standardised") == "standardised":
                m, n = numbers(sizes[row["table"]].split(" × "))
                own, without = numbers([row["privasso"], row["no privacy"]])
                kept[bool(TRAINING * m / n >= limit)].append(bool(own >= 0.8 * without))
        counts = [f"{sum(kept[many])} of {len(kept[many])}" for many in (True, False)]
        cells = protects, epsilon, str(limit), *counts
        titles = "what is private", "ε", "rows per column", "with more rows", "with fewer rows"
        found.append(dict(zip(titles, cells, strict=True)))
    return pl.DataFrame(found)


def independent() -> pl.DataFrame:
    """Private records on the tables that had no part in the choice of the defaults."""
    names = [name for name, entry in REGISTRY.items() if entry.kind == "regression"]
    chose = set(names[::2])  # as in bench.record_settings
    found = [row for row in rows("real-records") if row["table"] not in chose]
    every = {row["table"] for row in rows("real-records")}
    return facts(
        tables=len(every), chose=len(every & chose), others=len(every - chose),
        losses_on_others=sum(bool(row["loses to"]) for row in found),
    )  # fmt: skip


def scales() -> pl.DataFrame:
    """Rows per column from which on private ranges and scales pay at ε = 1."""
    needed = column("scales-pays", "private bounds and scales, ε = 1")
    each = needed / column("scales-pays", "columns")
    return facts(least=f"{each.min():.0f}", most=f"{each.max():.0f}")


def correlated() -> pl.DataFrame:
    """Predictions against solves and densities, and the shapes of the noise."""
    agreement = rows("correlated-agreement")
    errors, shares = (np.abs(column("correlated-agreement", x)) for x in ("off E", "off ρ̂"))
    densities = np.abs(
        np.concatenate([column(f"correlated-{x}", "off") for x in ("density", "shared")])
    )
    cost = numbers(row["prediction, ms"] for row in rows("correlated-cost") if row["solves"])
    solves = column("correlated-cost", "solves")
    leak = {
        noise: column("correlated-shapes", f"OnAveKL, {noise}")
        / column("correlated-shapes", "OnAveKL, isotropic")
        for noise in ("C", "C²")
    }
    isotropic, full = (column("correlated-shapes", f"λ/σ, {x}") for x in ("isotropic", "C²"))
    real = rows("correlated-real")
    few = numbers(row["E, Gaussian rows"] for row in real) / numbers(row["E"] for row in real)
    hand = np.abs(column("correlated-at_hand", "off"))
    converged = rows("vamp-convergence")
    return facts(
        cases=len(agreement), largest_off=float(max(errors.max(), shares.max())),
        densities=densities.size, density_off=densities.max(),
        least_ms=cost.min(), most_ms=cost.max(), least_solves=int(solves.min()),
        most_solves=int(solves.max()), least_leak_C=f"{leak['C'].min():.2f}",
        most_leak_C=f"{leak['C'].max():.2f}", most_leak_C2=f"{leak['C²'].max():.0f}",
        largest_gain=f"{(isotropic / full).max():.0f}",
        gaussian_within=int(np.sum(np.abs(few - 1.0) <= 0.1)), real=len(real),
        hand_off=hand.max(), hand=hand.size,
        kinds=len(converged), amp=_all(converged, "AMP"),
        textbook=_all(converged, "VAMP, textbook"), vamp=_all(converged, "VAMP"),
        iterates_off=column("vamp-iterates", "largest difference").max(),
    )  # fmt: skip


def _all(found: list[Row], algorithm: str) -> int:
    """On how many kinds of columns an algorithm converges on all eight data sets."""
    return sum(row[algorithm] == "8" for row in found)


def designs() -> pl.DataFrame:
    """What the best shape of the noise gains."""
    gains = rows("design-gains")

    def of(found: list[Row], title: str, scales: str) -> np.ndarray:
        return numbers(row[title] for row in found if row["scales"].startswith(scales))

    first, second = (of(gains, "ratio isotropic", x) for x in ("v1", "v2"))
    powers = {x: of(gains, "γ", x) for x in ("v1", "v2")}
    budget = column("design-labels", "γ")
    crossing = column("design-crossings", "crossing τ, best γ")
    return facts(
        isotropic_v1=_percent(first.max()), isotropic_v2=_percent(second.max()),
        gram_v1=_percent(of(gains, "ratio Gram", "v1").max()),
        gram_v2=_percent(of(gains, "ratio Gram", "v2").max()),
        linear=f"{100 * (column('design-gains', 'ratio γ = 1').max() - 1):.1f}",
        v1_low=f"{powers['v1'].min():.2f}", v1_high=f"{powers['v1'].max():.2f}",
        v2_low=f"{powers['v2'].min():.2f}", v2_high=f"{powers['v2'].max():.2f}",
        budget_low=f"{budget.min():.2f}", budget_high=f"{budget.max():.2f}",
        budget_isotropic_low=_percent(column("design-labels", "ratio isotropic").min()),
        budget_isotropic_high=_percent(column("design-labels", "ratio isotropic").max()),
        budget_gram=f"{column('design-labels', 'ratio Gram').max():.1f}",
        crossing_low=f"{crossing.min():.1f}", crossing_high=f"{crossing.max():.1f}",
    )  # fmt: skip


def _percent(ratio: float) -> str:
    return f"{100.0 * (ratio - 1.0):.0f}"


TABLES = {
    "bench-targets": targets, "bench-facts": solvers, "wide-facts": wide,
    "correlated-facts": correlated, "design-facts": designs, "real-enough": enough,
    "real-independent": independent, "scales-facts": scales,
}  # fmt: skip


if __name__ == "__main__":
    for name, make in TABLES.items():
        table = make()
        print(name, table)
        if "--write" in sys.argv:
            write(name, table, "python -m bench.summary --write")
    if "--write" in sys.argv:
        draw()
