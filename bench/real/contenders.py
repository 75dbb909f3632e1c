"""The methods that are compared: what each is called, what it protects, and how it predicts."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

import privasso
from bench.real import ours
from bench.real.peers.label_noise import lasso_cv
from bench.real.peers.linear import Linear
from bench.real.peers.randomised_response import logistic_cv
from bench.real.split import Split

Predictions = Mapping[str, np.ndarray]
_PEERS = Path(__file__).parent / "peers"
_SHARED = ("linear", "gaussian", "bounded")


@dataclass(frozen=True)
class Contender:
    """A method with one or more columns of the table.

    Attributes
    ----------
    name : str
        Its name in files and options.
    columns : tuple of str
        The titles of its columns.
    protects : str
        "labels", "records" or "nothing".
    run : callable
        Predictions for the test rows, by the title of their column.
    sources : tuple of Path
        Files and folders whose change makes kept results outdated.
    by_form, private : bool
        Whether the predictions depend on the form of the columns, and on the guarantee.
    missing : callable
        Says why the method cannot run here; empty if it can.
    """

    name: str
    columns: tuple[str, ...]
    protects: str
    run: Callable[[Split], Predictions]
    sources: tuple[Path, ...]
    by_form: bool = False
    private: bool = True
    missing: Callable[[], str] = str


def fingerprint(contender: Contender) -> str:
    """A hash of the method's source."""
    return _hash(contender.sources)


@cache
def _hash(sources: tuple[Path, ...]) -> str:
    found = hashlib.sha256()
    for source in sources:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _peer(title: str, module: str, protects: str, brought: bool = False) -> Contender:
    """A file of `peers`; one that another package brings is tried first."""

    def run(split: Split) -> Predictions:
        fit: Callable[..., Linear] = importlib.import_module(f"bench.real.peers.{module}").fit
        model = fit(
            split.X,
            split.y,
            epsilon=split.epsilon,
            delta=split.delta,
            y_bounds=split.y_bounds,
            column_bounds=split.column_bounds,
            rng=np.random.default_rng(split.seed),
        )
        return {title: model.predict(split.X_test)}

    missing = partial(_trial, module) if brought else str
    sources = tuple(_PEERS / f"{name}.py" for name in (module, *_SHARED))
    return Contender(module.replace("_", "-"), (title,), protects, run, sources, missing=missing)


def _without_privacy(title: str, fit: Callable[[np.ndarray, np.ndarray], Linear]) -> Contender:
    def run(split: Split) -> Predictions:
        return {title: fit(split.X, split.y).predict(split.X_test)}

    source = _PEERS / f"{fit.__module__.rpartition('.')[2]}.py"
    return Contender("no-privacy", (title,), "nothing", run, (source,), private=False)


def _trial(module: str) -> str:
    """Say why a peer that another package brings cannot fit twenty rows here."""
    fit: Callable[..., Linear] = importlib.import_module(f"bench.real.peers.{module}").fit
    X, y = np.linspace(0.0, 1.0, 20)[:, None], np.arange(20) % 2.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(
                X,
                y,
                epsilon=1.0,
                delta=1e-6,
                y_bounds=(0.0, 1.0),
                column_bounds=np.array([[0.0, 1.0]]),
                rng=np.random.default_rng(0),
            )
    except (ImportError, AttributeError, TypeError) as error:
        # What follows in brackets is a path of this machine.
        what = str(error).partition(" (")[0]
        return f"{module.replace('_', '-')} does not work with the packages installed here: {what}"
    return ""


_OURS = (Path(str(privasso.__file__)).parent, Path(str(ours.__file__)))

LABELS = (
    Contender(
        "privasso",
        ("privasso", "privasso, best λ"),
        "labels",
        ours.default_and_best,
        _OURS,
        by_form=True,
    ),
    Contender("release", ("release of Fᵀy",), "labels", ours.released, _OURS),
    Contender("diagonal-noise", ("diagonal noise",), "labels", ours.diagonal, _OURS, by_form=True),
    _peer("label noise + LassoCV", "label_noise", "labels"),
    _peer("noisy products", "noisy_products", "labels"),
    _without_privacy("no privacy", lasso_cv),
)
RECORDS = (
    Contender("privasso-records", ("privasso",), "records", ours.records, _OURS),
    _peer("AdaSSP", "adassp", "records"),
    _peer("boosted AdaSSP", "boosted_adassp", "records"),
    _peer("TukeyEM", "tukey", "records"),
    _peer("DP-SGD", "dp_sgd", "records"),
    _peer("diffprivlib", "diffprivlib_linear", "records", brought=True),
    _without_privacy("no privacy", lasso_cv),
)
BINARY = (
    Contender("privasso-labels", ("privasso, labels",), "labels", ours.binary_labels, _OURS),
    Contender("privasso-records", ("privasso, records",), "records", ours.binary_records, _OURS),
    _peer("randomised response", "randomised_response", "labels"),
    _peer("objective perturbation", "objective_perturbation", "records"),
    _peer("diffprivlib", "diffprivlib_logistic", "records", brought=True),
    _without_privacy("no privacy", logistic_cv),
)

__all__ = ["BINARY", "LABELS", "RECORDS", "Contender", "Split", "fingerprint"]
