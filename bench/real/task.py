"""The three comparisons: labels, records, and binary outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.real.contenders import BINARY, LABELS, RECORDS, Contender
from bench.real.tables import Kind


def r_squared(y: np.ndarray, predicted: np.ndarray) -> float:
    """One minus the squared error over that of the mean of these labels."""
    return float(1.0 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def area(y: np.ndarray, predicted: np.ndarray) -> float:
    """Area under the receiver operating characteristic."""
    return float(roc_auc_score(y, predicted))


def log_loss(y: np.ndarray, odds: np.ndarray) -> float:
    """Mean of −log of the probability of each label, from log odds."""
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -odds, odds))))


@dataclass(frozen=True)
class Task:
    """What is compared, on which tables, and by which score.

    Attributes
    ----------
    name, title : str
        As in the command line and on the page.
    kind : "regression" or "binary"
        Tables it runs on.
    contenders : tuple of Contender
        In the order of the columns.
    score : callable
        From labels and predictions of the test rows; larger is better.
    measure : str
        What `score` is, in words.
    forms : tuple of str
        Forms of the columns; contenders that do not depend on it run once.
    least_rows : int
        Smaller tables are left out of ``--tables all``.
        Columns of the page that the summary is about, where they are there.
    second : (str, callable) or None
        Another measure, of which smaller is better.
    duels : tuple of (own, rival)
        Columns that are compared, where they do not all protect the same.
    """

    name: str
    title: str
    kind: Kind
    contenders: tuple[Contender, ...]
    score: Callable[[np.ndarray, np.ndarray], float]
    measure: str
    forms: tuple[str, ...] = ("raw",)
    least_rows: int = 0
    own: str = "privasso"
    oracle: str = "privasso, best λ"
    second: tuple[str, Callable[[np.ndarray, np.ndarray], float]] | None = None
    duels: tuple[tuple[str, str], ...] = ()


_R_SQUARED = "R² on held-out rows"
TASKS = {
    task.name: task
    for task in (
        Task(
            "labels",
            "Private labels, public covariates",
            "regression",
            LABELS,
            r_squared,
            _R_SQUARED,
            forms=("raw", "standardised"),
        ),
        Task(
            "records",
            "Private records",
            "regression",
            RECORDS,
            r_squared,
            _R_SQUARED,
            least_rows=1000,
        ),
        Task(
            "binary",
            "Private binary outcomes",
            "binary",
            BINARY,
            area,
            "area under the ROC curve on held-out rows",
            second=("log loss", log_loss),
            duels=(
                ("privasso, labels", "randomised response"),
                ("privasso, records", "objective perturbation"),
                ("privasso, records", "diffprivlib"),
            ),
        ),
    )
}
