"""Every kind of private fit once, on a small table with a fixed seed: what it publishes.

`python tests/pinned/fits.py` writes ``fits.json`` anew, which is right only where a change of the
results was intended. Nothing here says that a result is right: the oracles of the other tests do.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import privasso as pv
from privasso.blocks import RowBlocks, Variants

FILE = Path(__file__).with_name("fits.json")
BOUNDS = [(0.0, 1.0)] * 6


def table(m=400, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.1, (m, n)) ** 2
    y = 0.2 + 0.5 * X[:, 0] - 0.3 * X[:, 3] + 0.1 * rng.standard_normal(m)
    return X, y


def genotypes(m=400, n=30, seed=1):
    """Random bytes are genotypes, too; a missing one counts as one copy."""
    packed = np.random.default_rng(seed).integers(0, 256, (n, m // 4), dtype=np.uint8)
    return RowBlocks.of_arrays(Variants(packed, m, np.ones(n)), table()[1])


def labels(**settings):
    return pv.LabelDP(1.0, 1e-6, y_bounds=(-0.5, 1.5), **settings)


def records(**settings):
    return pv.RecordDP(**{
        "epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "y_bounds": (-0.5, 1.5), **settings
    })  # fmt: skip


def lasso(privacy, X=None, y=None, **options):
    rows, responses = table()
    X, y = (rows if X is None else X), (responses if y is None else y)
    fitted = options.pop("fitted", {})
    return pv.PrivateLasso(privacy=privacy, random_state=3, **options).fit(X, y, **fitted)


def logistic(privacy, **options):
    X, y = table()
    est = pv.PrivateLogisticLasso(privacy=privacy, random_state=3, classes=(0, 1), **options)
    return est.fit(X, (y > 0.4).astype(float))


def in_blocks(privacy, blocks=None, **options):
    blocks = RowBlocks.of_arrays(*table(), n_parts=3) if blocks is None else blocks
    return pv.PrivateLasso(privacy=privacy, random_state=3, **options).fit(blocks)


def wide(privacy, n=500, **options):
    X, y = table(250, n, seed=2)
    return lasso(privacy, X, y, **options)


WIDE = {"epsilon": 3.0, "delta": 1e-6, "bounds": (0.0, 1.0), "y_bounds": (-0.5, 1.5)}
FITS = {
    "labels": lambda: lasso(labels()),
    "labels, no intercept": lambda: lasso(labels(), fit_intercept=False),
    "labels, level": lambda: lasso(labels(level=True)),
    "labels, kappa and t": lambda: lasso(labels(kappa=0.2, t=0.5)),
    "labels, given lambda": lambda: lasso(labels(), lam=3.0),
    "labels, not denoised": lambda: lasso(labels(), lam=3.0, denoise=False),
    "labels, weights": lambda: lasso(
        labels(), fitted={"sample_weight": np.linspace(0.5, 1.5, 400)}
    ),
    "labels, sparse": lambda: lasso(labels(), sp.csr_array(np.where(table()[0] > 0.6, 1.0, 0.0))),
    "labels, released": lambda: lasso(labels(mechanism="release")),
    "labels, isotropic": lambda: lasso(labels(), noise="isotropic", aim="predict"),
    "labels, gram": lambda: lasso(labels(), noise="gram", aim="predict"),
    "labels, power": lambda: lasso(labels(), noise="power:0.5", aim="predict"),
    "labels, blocks": lambda: in_blocks(labels()),
    "labels, blocks released": lambda: in_blocks(labels(mechanism="release")),
    "labels, screened": lambda: lasso(labels(), screen=2),
    "labels, components": lambda: wide(pv.LabelDP(3.0, 1e-6, (-0.5, 1.5)), 120, screen="auto"),
    "labels, classes": lambda: logistic(pv.LabelDP(1.0, 1e-6, (0, 1))),
    "records": lambda: lasso(records()),
    "records, no intercept": lambda: lasso(records(), fit_intercept=False),
    "records, level": lambda: lasso(records(level=True)),
    "records, kappa and t": lambda: lasso(records(kappa=0.2, t=0.5)),
    "records, given lambda": lambda: lasso(records(), lam=3.0),
    "records, private bounds": lambda: lasso(records(bounds="private")),
    "records, private scales": lambda: lasso(records(scales="private")),
    "records, private shape": lambda: lasso(records(shape="private")),
    "records, public shape": lambda: lasso(records(shape=table(50, seed=5)[0])),
    "records, all private": lambda: lasso(
        records(bounds="private", scales="private", shape="private", epsilon=5.0)
    ),
    "records, statistics": lambda: lasso(records(mechanism="statistics", epsilon=3.0)),
    "records, statistics, scales": lambda: lasso(
        records(mechanism="statistics", scales="private", epsilon=3.0)
    ),
    "records, blocks": lambda: in_blocks(records()),
    "records, screened": lambda: lasso(records(epsilon=3.0), screen=2),
    "records, screened wide": lambda: wide(pv.RecordDP(**WIDE), screen="auto"),
    "records, screened in rounds": lambda: wide(pv.RecordDP(**WIDE), screen=8),
    "records, screened sparse": lambda: lasso(
        records(epsilon=3.0), sp.csr_array(np.where(table()[0] > 0.6, 1.0, 0.0)), screen=2
    ),
    "records, screened blocks": lambda: in_blocks(records(epsilon=3.0), screen=2),
    "records, genotypes": lambda: in_blocks(
        pv.RecordDP(3.0, 1e-6, bounds=(0, 2), y_bounds=(-0.5, 1.5)), genotypes(), screen=3
    ),
    "records, few rows": lambda: lasso(records(), *(part[:5] for part in table())),
    "records, classes": lambda: logistic(records(y_bounds=(0, 1))),
    "records, classes, private bounds": lambda: logistic(
        records(y_bounds=(0, 1), bounds="private", epsilon=3.0)
    ),
    "on average": lambda: lasso(pv.OnAverage(0.1), lam=2.0),
    "on average, gram": lambda: lasso(pv.OnAverage(0.1), lam=2.0, noise="gram"),
}


def published(name):
    """Coefficients, intercept and statement of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = FITS[name]()
    errors = getattr(est, "coef_se_", None)
    return {
        "coef": np.ravel(est.coef_).tolist(),
        "intercept": float(np.ravel(est.intercept_)[0]),
        "errors": None if errors is None else np.ravel(errors).tolist(),
        "guarantee": est.guarantee_.to_dict(),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: published(name) for name in FITS}, indent=1) + "\n")
