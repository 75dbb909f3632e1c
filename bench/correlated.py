"""Predictions for correlated columns against solves and exact densities.

``python -m bench.correlated [NAME ...]`` runs them. With ``--write``, the tables replace their
places in `docs/correlated.md`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.correlated_density import SHARED, exact_divergence
from bench.page import renew
from privasso.model import (
    AutoRegressive,
    Blocks,
    Factors,
    GivenCovariance,
    PowerSpectrum,
    RandomEigenvectors,
    TwoLevel,
)
from privasso.noise import MatrixPower

N, SOLVES, DRAWS = 1000, 24, 16
ONE, LOG = pv.Constant(1.0), pv.LogNormal(0.0, 0.5)
KINDS: dict[str, Any] = {
    "AR .5": AutoRegressive(0.5),
    "AR .8": AutoRegressive(0.8),
    "AR .95": AutoRegressive(0.95),
    "blocks of 20, .7": Blocks(20, 0.7),
    "3 factors, .5": Factors(3, 0.5),
    "spectrum 1/k": RandomEigenvectors(PowerSpectrum(1.0)),
    "two levels, 10": RandomEigenvectors(TwoLevel(10.0)),
}
SHAPES: dict[str, Any] = {
    "isotropic": pv.Isotropic(0.05),
    "diagonal": pv.Gram(0.1),
    "full Gram": MatrixPower(0.1, 2.0),
}
#: α, columns, scales and noise of each point: every kind with every α and with every shape.
POINTS = [
    (alpha, kind, law, shape)
    for i, (alpha, shape) in enumerate(
        [(0.3, "isotropic"), (0.5, "diagonal"), (1.5, "full Gram"), (0.5, "isotropic")]
    )
    for j, kind in enumerate(KINDS)
    for law in ("equal" if (i + j) % 2 else "log-normal",)
] + [(0.5, "AR .8", "log-normal", "full Gram"), (1.5, "AR .8", "equal", "isotropic")]


def eta_of(noise: Any, C: GivenCovariance, rng: np.random.Generator) -> np.ndarray:
    if isinstance(noise, MatrixPower):
        root = noise.root(C.covariance)
        return root @ rng.standard_normal(root.shape[1])
    return noise.draw(C.diagonal, rng)


def solves(model: pv.Model, lam: float, noise: Any, count: int, rng: np.random.Generator):
    """E, ρ̂, the largest share of a column in the error, and seconds, of certified solves."""
    C = model.covariance
    rows = []
    for _ in range(count):
        s = model.sample(rng=rng)
        eta = eta_of(noise, C, rng)
        start = time.perf_counter()
        sol = pv.solve(s.F, s.y, lam, eta)
        seconds = time.perf_counter() - start
        assert sol.kkt_beyond_rounding <= 1e-8
        d = sol.x - s.x0
        parts = d * (C.covariance @ d) / d.size
        rows.append((model.sigma_xi**2 + parts.sum(), np.mean(sol.x != 0), parts.max(), seconds))
    return np.array(rows)


def agreement() -> pl.DataFrame:
    rows = []
    for alpha, kind, law, shape in POINTS:
        rng = np.random.default_rng(len(rows))
        scales = LOG if law == "log-normal" else ONE
        model = pv.Model(alpha, 0.1, 0.1, scales, covariance=KINDS[kind]).realised(N, rng)
        fp = pv.state_evolution(model, 0.2, SHAPES[shape], draws=DRAWS, rng=rng)
        found = solves(model, 0.2, SHAPES[shape], SOLVES, rng)
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SOLVES)
        off_E = (fp.E - mean[0]) / np.hypot(error[0], fp.standard_errors.E)
        off_rho = (fp.rho_hat - mean[1]) / np.hypot(error[1], fp.standard_errors.rho_hat)
        rows.append(
            {
                "columns": kind, "scales": law, "α": str(alpha), "noise": shape,
                "E": fp.E, "± E": fp.standard_errors.E, "E, solves": mean[0], "± solves": error[0],
                "ρ̂": fp.rho_hat, "ρ̂, solves": mean[1],
                "off E": f"{off_E:.1f}", "off ρ̂": f"{off_rho:.1f}",
                "largest column": f"{found[:, 2].max() / (mean[0] - 0.01):.2f}",
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


DENSITY: list[tuple[str, Any, float, float, Any]] = [
    ("AR .7", (AutoRegressive(0.7), ONE), 0.5, 0.2, pv.Isotropic(0.1)),
    ("AR .9", (AutoRegressive(0.9), ONE), 0.5, 0.2, pv.Isotropic(0.1)),
    ("AR .7, log-normal", (AutoRegressive(0.7), LOG), 0.5, 0.2, pv.Gram(0.1)),
    ("blocks of 10, .6", (Blocks(10, 0.6), ONE), 1.5, 0.3, pv.Isotropic(0.2)),
    ("3 factors, .5, log-normal", (Factors(3, 0.5), LOG), 0.5, 0.3, pv.PowerLaw(0.2, 1.0)),
    ("two levels, 10", (RandomEigenvectors(TwoLevel(10.0)), ONE), 0.8, 0.2, pv.Isotropic(0.1)),
]


def density() -> pl.DataFrame:
    """OnAveKL against Monte Carlo of the exact density at N = 400."""
    rows = []
    records = 40
    for name, (kind, law), alpha, lam, noise in DENSITY:
        model = pv.Model(alpha, 0.1, 0.1, law, covariance=kind).realised(400, rng=0)
        fp = pv.state_evolution(model, lam, noise, draws=32, rng=1)
        rng = np.random.default_rng(0)
        m = round(alpha * 400)
        larger = replace(model, alpha=(m + records) / 400)
        means = []
        for _ in range(150):
            s = larger.sample(rng=rng)
            F, y, variances = s.F[:m], s.y[:m], noise.variances(s.v)
            x = pv.solve(F, y, lam, noise.draw(s.v, rng)).x[:, None]
            # KL(D ‖ D∪a) over new records, and KL(D∪a ‖ D) over members: one replaced is both.
            new, old = (
                pv.theory.membership_losses(
                    F, y, lam, variances, x, rows=part[0], labels=part[1], member=member
                )
                for part, member in (((s.F[m:], s.y[m:]), False), ((F, y), True))
            )
            means.append(float(np.mean(old) - np.mean(new)))
        mean, error = float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(len(means)))
        off = (fp.onavekl() - mean) / np.hypot(error, fp.standard_errors.onavekl)
        rows.append(
            {
                "columns": name, "α": str(alpha), "λ": str(lam), "noise": repr(noise),
                "V": fp.V, "formula": fp.onavekl(), "±": fp.standard_errors.onavekl,
                "exact density": mean, "± exact": error, "off": f"{off:.1f}",
                "component-wise": fp.onavekl("paper"), "bound": fp.onavekl("bound"),
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def shared() -> pl.DataFrame:
    """OnAveKL of noise that is correlated over the columns, against its exact density."""
    rows = []
    for name, kind, law, alpha, lam, noise in SHARED:
        model = pv.Model(alpha, 0.1, 0.1, law, covariance=kind).realised(400, rng=0)
        C = model.covariance.covariance
        shape, density = noise(C)
        fp: Any = pv.state_evolution(model, lam, shape, draws=32, rng=1)
        start = time.perf_counter()
        formula = fp.onavekl()
        seconds = time.perf_counter() - start
        mean, error = exact_divergence(model, lam, shape.covariance(C).matrix(), density, 60, 40)
        off = (formula - mean) / np.hypot(error, fp.onavekl_error)
        rows.append(
            {
                "columns, noise": name, "α": str(alpha), "λ": str(lam), "σ": str(shape.sigma),
                "V": fp.V, "OnAveKL": formula, "±": fp.onavekl_error, "exact density": mean,
                "± exact": error, "off": f"{off:.1f}", "component-wise": fp.onavekl("paper"),
                "bound": fp.onavekl("bound"), "s": f"{seconds:.1f}",
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def real() -> pl.DataFrame:
    """Covariates of real tables with rows resampled and labels simulated."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
    from sklearn.preprocessing import PolynomialFeatures

    loaders: dict[str, Any] = {
        "cancer": load_breast_cancer,
        "diabetes": load_diabetes,
        "digits": load_digits,
        "wine": load_wine,
    }
    data = {name: load(return_X_y=True)[0] for name, load in loaders.items()}
    X = {
        "breast cancer (30)": data["cancer"],
        "diabetes, degree 2 (65)": PolynomialFeatures(2, include_bias=False).fit_transform(
            data["diabetes"]
        ),
        "digits (pixels that vary)": data["digits"],
        "wine (13)": data["wine"],
    }
    rows = []
    for name, table in X.items():
        table = table[:, table.std(axis=0) > 0]
        table = (table - table.mean(axis=0)) / table.std(axis=0)
        rng = np.random.default_rng(0)
        n = table.shape[1]
        for alpha in (0.5, 3.0):
            covariance = GivenCovariance.of(table, shrink=0.0 if len(table) > 5 * n else None)
            C = GivenCovariance(covariance.covariance / n)
            model = pv.Model(alpha, 0.2, 0.1, covariance=C)
            noise = pv.Isotropic(0.05)
            fp = pv.state_evolution(model, 0.2, noise, draws=64, rng=rng)
            m = round(alpha * n)
            measured = {}
            for rows_of in ("table", "Gaussian"):
                found = []
                for _ in range(200):
                    if rows_of == "table":
                        F = table[rng.choice(len(table), m)] / np.sqrt(n)
                    else:
                        F = model.sample(rng=rng).F
                    x0 = np.where(rng.random(n) < 0.2, rng.standard_normal(n), 0.0)
                    y = F @ x0 + 0.1 * rng.standard_normal(m)
                    sol = pv.solve(F, y, 0.2, noise.draw(np.ones(n), rng), throw=False)
                    d = sol.x - x0
                    found.append((0.01 + d @ C.covariance @ d / n, np.mean(sol.x != 0)))
                values = np.array(found)
                measured[rows_of] = values[np.isfinite(values[:, 0])]
            values = measured["table"]
            mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
            kurtosis = float(np.mean(table**4))
            rows.append(
                {
                    "table": name, "rows × columns": f"{m} × {n}", "E": fp.E,
                    "E, independent": _independent(model, noise),
                    "E, measured": mean[0], "±": error[0],
                    "E, Gaussian rows": measured["Gaussian"][:, 0].mean(), "ρ̂": fp.rho_hat,
                    "ρ̂, measured": mean[1], "E / measured": fp.E / mean[0],
                    "kurtosis": kurtosis,
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def _independent(model: pv.Model, noise: Any) -> float:
    diagonal = np.diag(np.diag(model.covariance.covariance))
    return pv.state_evolution(replace(model, scales=None, covariance=diagonal), 0.2, noise).E


def shapes() -> pl.DataFrame:
    """Existence, error and leakage by the shape of the noise."""
    rows = []
    for name in ("independent", "AR .5", "AR .8", "AR .95", "3 factors, .5", "two levels, 10"):
        for law, scales in (("equal", ONE), ("log-normal", LOG)):
            rng = np.random.default_rng(0)
            kind = KINDS.get(name)
            model = pv.Model(0.5, 0.1, 0.1, scales, covariance=kind).realised(500, rng)
            row: dict[str, Any] = {"columns": name, "scales": law}
            for shape, noise in (
                ("isotropic", pv.Isotropic(0.05)),
                ("diagonal v²", pv.Gram(0.05)),
                ("C", MatrixPower(0.05, 1.0)),
                ("C²", MatrixPower(0.05, 2.0)),
            ):
                edge = pv.theory.correlated_edge(model, noise, draws=8, rng=1)
                fp = pv.state_evolution(model, 0.2, noise, draws=16, rng=1)
                row[f"λ/σ, {shape}"] = edge.ratio
                row[f"E, {shape}"] = fp.E
                row[f"OnAveKL, {shape}"] = fp.onavekl()
                if shape.startswith("C"):
                    row[f"bound, {shape}"] = fp.onavekl("bound")
            rows.append(row)
            print(row, flush=True)
    return pl.DataFrame(rows)


def at_hand() -> pl.DataFrame:
    """Predictions for scales and noise at hand, towards the edge of stability."""
    rows = []
    rng = np.random.default_rng(0)
    v = pv.Uniform().draw(N, rng) ** 2
    unit = pv.Isotropic(1.0).draw(v, rng)
    model = pv.Model(0.5, 0.1, 0.1, covariance=np.diag(v))
    for sigma in (0.01, 0.03, 0.05, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.13):
        noise, eta = pv.Isotropic(sigma), sigma * unit
        given = pv.state_evolution(model, 0.2, noise, eta=eta)
        mean = pv.state_evolution(model, 0.2, noise)
        law = pv.state_evolution(pv.Model(0.5, 0.1, 0.1), 0.2, noise, n_features=N)
        found = []
        for _ in range(16):
            s = model.sample(rng=rng)
            sol = pv.solve(s.F, s.y, 0.2, eta, throw=False)
            if sol.status is pv.Status.CONVERGED:
                found.append((0.01 + np.mean(v * (sol.x - s.x0) ** 2), np.mean(sol.x != 0)))
        if len(found) < 2:
            print(f"no minimiser at σ = {sigma}; predicted: {given.status.name}")
            continue
        measured = np.mean(found, axis=0)
        error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
        rows.append(
            {
                "σ": str(sigma), "E, law": law.E, "E, these scales": mean.E,
                "E, these scales and noise": given.E, "E, solves": measured[0], "±": error[0],
                "off": f"{(given.E - measured[0]) / error[0]:.1f}",
                "ρ̂": given.rho_hat, "ρ̂, solves": measured[1], "exists": len(found),
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def designs() -> pl.DataFrame:
    """Powers of C and the full shape at a label budget."""
    tables = []
    for alpha in (10.0, 50.0):
        model = pv.Model(alpha, 0.1, 0.1, LOG, covariance=KINDS["AR .8"]).realised(200, rng=0)
        best: Any = pv.optimal_design(
            model, pv.Budget(pv.LabelDP(1.0, 1e-6, (-1, 1))), family="full", rng=0
        )
        table = best.comparison().with_columns(pl.lit(f"{alpha:g}").alias("α"))
        tables.append(table.select("α", "noise", "lam", "sigma", "E", "E_se", "rho_hat"))
        print(table, flush=True)
    return pl.concat(tables)


def cost() -> pl.DataFrame:
    """Time of a prediction with eight draws, in solves of 1000 columns in the same run."""
    rows = []
    for alpha, name in ((0.5, "AR .5"), (0.5, "AR .8"), (0.5, "AR .95"), (1.5, "AR .8")):
        for shape, noise in SHAPES.items():
            rng = np.random.default_rng(0)
            model = pv.Model(alpha, 0.1, 0.1, LOG, covariance=KINDS[name]).realised(N, rng)
            _ = model.covariance.root
            pv.state_evolution(model, 0.2, noise, rng=1)
            seconds = []
            for seed in range(3):
                start = time.perf_counter()
                pv.state_evolution(model, 0.2, noise, rng=seed)
                seconds.append(time.perf_counter() - start)
            one = float(np.median(solves(model, 0.2, noise, 9, rng)[:, 3]))
            rows.append(
                {
                    "columns": name, "α": str(alpha), "noise": shape,
                    "prediction, ms": 1e3 * min(seconds), "solve, ms": 1e3 * one,
                    "solves": f"{min(seconds) / one:.0f}",
                }
            )  # fmt: skip
    rows.append(_scalar())
    return pl.DataFrame(rows)


def _scalar() -> dict[str, Any]:
    """The scalar recursion of vector AMP."""
    from privasso.model import RotatedModel

    model = RotatedModel(0.5, scales=LOG, spectrum=TwoLevel(100.0))
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        pv.state_evolution(model, 0.2, pv.Gram(0.1))
        seconds.append(time.perf_counter() - start)
    return {
        "columns": "two levels, scalar recursion of vector AMP", "α": "0.5", "noise": "diagonal",
        "prediction, ms": 1e3 * min(seconds), "solve, ms": None, "solves": "",
    }  # fmt: skip


TABLES = {"agreement": agreement, "density": density, "shared": shared, "real": real}
TABLES |= {"shapes": shapes, "at_hand": at_hand, "designs": designs, "cost": cost}

if __name__ == "__main__":
    renew("python -m bench.correlated", __doc__, TABLES, "correlated")
