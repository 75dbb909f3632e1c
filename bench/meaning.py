"""ε, OnAveKL and what the best attack reaches, side by side.

``python -m bench.meaning --write`` renews its tables in `docs/data`. The second one needs the
tables of ``pip install --group real``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.colors import LogNorm

import privasso as pv
from bench.page import renew
from bench.real.tables import load
from privasso.figures import figure, plain_ticks, save
from privasso.fit import FitOptions, plan_fit

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "attack-map.png"
LAM = 0.2
DESIGNS = {"isotropic": 0.0, "γ = 1": 1.0, "Gram": 2.0}
RELEASES = 500


def predicted() -> pl.DataFrame:
    """Designs of the paper and ours at the same noise level, by state evolution."""
    lines = []
    for law, scales in (("v1", pv.Uniform(0.1, 1.0)), ("v2", pv.LogNormal(0.0, 0.5))):
        for alpha in (0.5, 2.0):
            model = pv.Model(alpha=alpha, scales=scales)
            for name, gamma in DESIGNS.items():
                fp = pv.state_evolution(model, LAM, pv.PowerLaw(0.1, gamma))
                if fp.status.value != "stable":
                    continue
                attack = fp.attack()
                lines.append(
                    {
                        "law": law,
                        "α": f"{alpha:g}",
                        "noise": name,
                        "E": f"{fp.E:.3f}",
                        "OnAveKL, paper": f"{fp.onavekl('paper'):.2f}",
                        "OnAveKL": f"{fp.onavekl():.2f}",
                        "AUC": f"{attack.auc:.3f}",
                        "advantage": f"{attack.advantage:.3f}",
                        "true positives at 1 %": f"{float(attack.tpr(0.01)):.1%}",
                        "AUC, most exposed 1 %": f"{attack.of_quantile(0.99).auc:.3f}",
                    }
                )
    return pl.DataFrame(lines)


def measured() -> pl.DataFrame:
    """Formal and average-case fits of two real tables, attacked."""
    lines = []
    for name in ("diabetes", "cars"):
        table = load(name)
        bounds = {"y_bounds": table.y_bounds}
        kinds: list[tuple[str, pv.privacy.Privacy, dict]] = []
        for epsilon in (1.0, 3.0):
            kinds += [
                (f"labels, ε = {epsilon:g}", pv.LabelDP(epsilon, 1e-6, **bounds), {}),
                (
                    f"records, ε = {epsilon:g}",
                    pv.RecordDP(epsilon, 1e-6, bounds=table.column_bounds, **bounds),
                    {},
                ),
            ]
        release = pv.LabelDP(1.0, 1e-6, mechanism="release", **bounds)
        level = plan_fit(table.X, FitOptions(release)).calibration.level
        kinds.append(("on average, noise of ε = 1", pv.OnAverage(level), {"lam": level}))
        for words, privacy, options in kinds:
            found = pv.audit(privacy, table.X, table.y, releases=RELEASES, rng=0, **options)
            areas = [one.auc for one in found.findings]
            worst = max(found.findings, key=lambda one: one.auc)
            closest = found.worst.closest
            lines.append(
                {
                    "table": name,
                    "fit": words,
                    "AUC, mean": f"{np.mean(areas):.3f}",
                    "AUC, largest": f"{worst.auc:.3f} ± {worst.evidence.auc_error:.3f}",
                    "true positives at 1 %": f"{worst.evidence.true_positives(0.01)[0]:.1%}",
                    "share of the claim": "—"
                    if closest is None
                    else f"{max(closest.share, 0):.0%}",
                }
            )
    return pl.DataFrame(lines)


def draw() -> None:
    """Error, divergence and advantage over λ and the noise level, by state evolution."""
    model = pv.Model(alpha=0.5, scales=pv.LogNormal(0.0, 0.5))
    lams, sigmas = np.geomspace(0.05, 1.0, 60), np.geomspace(0.01, 0.6, 60)
    table = pv.phase_diagram(model, lams, pv.PowerLaw(1.0, 1.0), sigmas)
    sheet = figure(10.5, 3.4)
    for axes, (column, title, levels) in zip(
        sheet.subplots(1, 3, sharey=True),
        (
            ("E", "prediction error E", np.linspace(0.0, 0.16, 9)),
            ("onavekl", "OnAveKL", [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]),
            ("advantage", "advantage of the best attack", np.linspace(0.0, 1.0, 11)),
        ),
        strict=True,
    ):
        values = table[column].to_numpy().reshape(lams.size, sigmas.size)
        shown = np.where(np.isfinite(values), values, np.nan)
        scale = LogNorm(levels[0], levels[-1]) if column == "onavekl" else None
        filled = axes.contourf(
            sigmas, lams, shown, levels=levels, norm=scale, cmap="viridis", extend="both"
        )
        bar = sheet.colorbar(filled, ax=axes)
        bar.ax.tick_params(labelsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("noise level σ")
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
    sheet.axes[0].set_ylabel("λ")
    save(sheet, IMAGE)


def main() -> None:
    renew(
        "python -m bench.meaning",
        __doc__,
        {"predicted": predicted, "measured": measured},
        "meaning",
    )
    if "--write" in sys.argv:
        draw()


if __name__ == "__main__":
    main()
