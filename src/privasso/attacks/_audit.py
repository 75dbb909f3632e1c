"""Attack a mechanism many times, and compare what that shows with what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._validation import finite_labels, generator, integer, probability, real_array
from privasso.attacks._evidence import Evidence
from privasso.attacks._labels import label_influence, label_pairs
from privasso.attacks._on_average import membership_pairs
from privasso.attacks._pair import Pair
from privasso.attacks._records import canary, record_influence, record_pairs
from privasso.attacks._result import Audit, Finding
from privasso.fit import FitOptions, PerturbedPlan, plan_fit, plan_for
from privasso.noise import Noise
from privasso.privacy import (
    Guarantee,
    LabelDP,
    OnAverage,
    PerturbedObjective,
    Privacy,
    RecordDP,
    check_kind,
)

FloatArray = NDArray[np.float64]

#: Thresholds of log likelihood ratios at which claims are tested; fixed beforehand.
THRESHOLDS = np.concatenate([np.linspace(0.0, 3.0, 13), [3.5, 4.0, 5.0, 6.0, 8.0]])
#: How many records are chosen by influence, and how many at random.
_FEW = 2
_RATIO = (
    "Each release gets the logarithm of its likelihood with the record over that without it as a "
    "score, which is the most powerful test."
)
_KNOWLEDGE = {
    "labels": (
        "The attacker knows the covariates, all other labels and all settings, and knows that the "
        "label in question is at one of its bounds, but not at which."
    ),
    "records": (
        "The attacker knows all other records and all settings, and knows the record in question, "
        "but not whether it is among the data or an empty one in its place."
    ),
    "membership": (
        "The attacker knows all other records and all settings, and knows the record in question, "
        "but not whether it is among the data."
    ),
}


@dataclass(frozen=True, eq=False)
class _Target:
    """A mechanism on given data, ready to be attacked."""

    guarantee: Guarantee
    influence: FloatArray
    pairs: Callable[[dict[int, str]], list[Pair]] = field(repr=False)
    knowledge: str
    extra: Callable[[], list[Pair]] = field(default=list, repr=False)


def audit(
    privacy: Privacy,
    X: ArrayLike,
    y: ArrayLike,
    *,
    lam: float | Literal["auto"] = "auto",
    noise: Noise | str = "auto",
    fit_intercept: bool = True,
    records: Literal["auto"] | Sequence[int] | Mapping[int, str] = "auto",
    releases: SupportsIndex = 1000,
    level: float = 0.01,
    rng: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Attack a private fit of given data by the likelihood-ratio test, and report what it finds.

    The mechanism is run many times on the data and on neighbouring data sets. The density of what
    it releases is known exactly, so that the attack is the most powerful one there is. For a formal
    guarantee, lower confidence limits of ε are compared with the claimed profile δ(ε). For
    `OnAverage`, which claims nothing for any one record, the audit shows how exposed records are.

    The audit itself reveals what an attacker would learn from all those releases: keep its result
    with the data, or run it on simulated data.

    Parameters
    ----------
    privacy : Privacy
        `LabelDP`, `RecordDP` with public bounds, or `OnAverage`.
    X, y : array_like
        Data, given or simulated.
    lam : float or "auto"
        λ; needed for `OnAverage`, and of no importance for `LabelDP`, whose release is attacked.
    noise : NoiseDesign, Shaped or str
        As in `PrivateLasso`.
    fit_intercept : bool
        As in `PrivateLasso`. Under `OnAverage` columns are taken as they are, without an intercept.
    records : "auto", sequence of int, or mapping of int to str
        Which records are attacked: by default the two of most influence, two at random and, for
        `RecordDP`, one that is made up, at the bounds of the columns.
    releases : int
        Releases from each data set.
    level : float
        Probability with which a correct mechanism is said to break its claim, at most.
    rng : optional
        Seed or generator for a repeatable audit; by default the operating system's entropy.
    progress : callable, optional
        Called with the number of records done and in all.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((60, 2)), rng.random(60)
    >>> privacy = pv.LabelDP(epsilon=2.0, delta=0.01, y_bounds=(0, 1))
    >>> found = pv.audit(privacy, X, y, records=[0], releases=300, rng=1)
    >>> found.passed, found.worst.auc > 0.5
    (True, True)
    """
    check_kind(privacy)
    count = integer("releases", releases, minimum=100)
    level = probability("level", level)
    X, y = _data(X, y)
    source = None if rng is None else generator(rng)
    target = _target(privacy, X, y, lam, noise, fit_intercept)
    chosen = _records(records, target.influence, source)
    pairs = target.pairs(chosen) + (target.extra() if records == "auto" else [])
    claim = target.guarantee.loss
    findings = []
    for k, pair in enumerate(pairs):
        into, out = (pair.score(world.releases(count, source)) for world in (pair.into, pair.out))
        evidence = Evidence(into, out, THRESHOLDS, level / len(pairs))
        closest = None if claim is None else evidence.closest(claim)
        findings.append(Finding(pair.name, evidence, closest))
        if progress is not None:
            progress(k + 1, len(pairs))
    return Audit(
        guarantee=target.guarantee,
        findings=tuple(findings),
        knowledge=f"{_KNOWLEDGE[target.knowledge]} {_RATIO}",
        releases=count,
        level=level,
        shape=(X.shape[0], X.shape[1]),
    )


def _data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    X = real_array("X", X, shape=(None, None))
    labels = finite_labels(y)
    if labels.size != X.shape[0]:
        raise ValueError(
            f"y must have one label for each of the {X.shape[0]} rows, not {labels.size}"
        )
    return X, labels


def _target(
    privacy: Privacy,
    X: FloatArray,
    y: FloatArray,
    lam: float | str,
    noise: Noise | str,
    fit_intercept: bool,
) -> _Target:
    if isinstance(privacy, RecordDP):
        return _record_target(privacy, X, y, lam, fit_intercept)
    if isinstance(privacy, LabelDP):
        plan = plan_fit(X, FitOptions(privacy, lam, noise, fit_intercept=fit_intercept))
        return _Target(
            plan.guarantee,
            label_influence(plan),
            lambda chosen: label_pairs(plan, y, chosen),
            "labels",
        )
    if not isinstance(privacy, OnAverage) or privacy.sigma == 0.0:
        raise ValueError("there is no noise, so every record can be told from the release")
    plan = plan_fit(X, FitOptions(privacy, lam, noise, fit_intercept=False))
    fixed = plan.options.fixed_lam
    assert fixed is not None
    live, variances = plan.rows.live, plan.calibration.covariance.diagonal
    F = np.ascontiguousarray(X[:, live])
    leverage = np.einsum("ij,ij->i", F, np.linalg.lstsq(F, np.eye(len(F)), rcond=None)[0].T)
    return _Target(
        plan.guarantee,
        leverage,
        lambda chosen: membership_pairs(F, y, fixed, variances, chosen),
        "membership",
    )


def _record_target(
    privacy: RecordDP, X: FloatArray, y: FloatArray, lam: float | str, fit_intercept: bool
) -> _Target:
    if privacy.released_before or privacy.shape is not None or privacy.mechanism != "objective":
        raise ValueError(
            "the likelihood ratio is known for public bounds and mechanism='objective' without a "
            "shape only; attack other fits with privasso.attacks.black_box"
        )
    options = FitOptions(privacy, lam, fit_intercept=fit_intercept)
    plan = plan_for(X, options)
    assert isinstance(plan, PerturbedPlan)
    objective, fixed = plan.objective, plan.lam
    assert isinstance(objective, PerturbedObjective)

    def made_up() -> list[Pair]:
        other, labels = X.copy(), y.copy()
        other[0] = canary(privacy, objective, X)
        labels[0] = privacy.y_bounds[1]
        name = "a record made up at the bounds"
        return record_pairs(objective, fixed, other, labels, {0: name})

    return _Target(
        plan.guarantee,
        record_influence(objective, X, y),
        lambda chosen: record_pairs(objective, fixed, X, y, chosen),
        "records",
        made_up,
    )


def _records(
    records: Literal["auto"] | Sequence[int] | Mapping[int, str],
    influence: FloatArray,
    rng: np.random.Generator | None,
) -> dict[int, str]:
    """Positions of the records to attack, each with its name."""
    m = influence.size
    if isinstance(records, str):
        if records != "auto":
            raise ValueError(f"records must be 'auto' or positions of rows, not {records!r}")
        most = np.argsort(-influence, kind="stable")[:_FEW].tolist()
        rest = np.setdiff1d(np.arange(m), most)
        drawn = np.random.default_rng() if rng is None else rng
        some = drawn.choice(rest, size=min(_FEW, rest.size), replace=False).tolist()
        return {
            **{k: f"row {k}, among the {_FEW} of most influence" for k in most},
            **{k: f"row {k}, chosen at random" for k in some},
        }
    named = records if isinstance(records, Mapping) else {k: f"row {k}" for k in records}
    found = {integer("records", k, minimum=0): str(name) for k, name in named.items()}
    if not found or max(found) >= m:
        raise ValueError(f"records must be positions of rows from 0 to {m - 1}")
    return found
