"""Attack a mechanism many times, and compare what that shows with what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privasso._types import Found
from privasso._validation import generator, integer, probability, real_array, real_labels
from privasso.accounting import Loss as PrivacyLoss
from privasso.attacks._evidence import Evidence, Trial, most_promising
from privasso.attacks._pair import Draw, Pair, membership_pairs, pairs_of
from privasso.attacks._result import Audit, Finding
from privasso.fit import Classes, FitOptions, Plan, plan_for
from privasso.noise import Noise
from privasso.privacy import Privacy, check_kind
from privasso.problem import Huber, Loss

FloatArray = NDArray[np.float64]

#: Thresholds of log likelihood ratios at which claims are tested; fixed beforehand.
THRESHOLDS = np.concatenate([np.linspace(0.0, 3.0, 13), [3.5, 4.0, 5.0, 6.0, 8.0]])
#: Releases that confirm the most promising attack, relative to those of each attack.
CONFIRMING = 10
#: How many records are chosen by influence, and how many at random.
_FEW = 2
#: What an attacker knows, by what differs and how.
_KNOWN = {
    ("label", "replaced"): "the covariates, all other labels and all settings, and knows that the "
    "label in question is at one of its bounds, but not at which.",
    ("label", "emptied"): "the covariates, all other labels and all settings, and knows that the "
    "label in question is at its upper bound or missing, but not which.",
    ("record", "emptied"): "all other records and all settings, and knows the record in question, "
    "but not whether it is among the data or an empty one in its place.",
    ("record", "replaced"): "all other records and all settings, and knows two records, each the "
    "mirror image of the other, but not which of them is among the data.",
    None: "all other records and all settings, and knows the record in question, but not whether "
    "it is among the data.",
}
_RATIO = (
    "Each release gets the logarithm of its likelihood with the record over that without it as a "
    "score, which is the most powerful test."
)


def audit(
    privacy: Privacy,
    X: ArrayLike,
    y: ArrayLike,
    *,
    lam: float | Literal["auto"] = "auto",
    noise: Noise | str = "auto",
    fit_intercept: bool = True,
    screen: int | Literal["auto", "all"] | None = None,
    binary: bool = False,
    loss: Loss | None = None,
    records: Literal["auto"] | Sequence[int] | Mapping[int, str] = "auto",
    releases: SupportsIndex = 1000,
    level: float = 0.01,
    rng: int | np.random.Generator | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Attack a private fit of given data by the likelihood-ratio test, and report what it finds.

    The mechanism is run many times on the data and on neighbouring data sets. The density of
    everything that it releases on its way to a model is known, so that the attack is the most
    powerful one there is. For a formal guarantee, lower confidence limits of ε are compared with
    the claimed profile δ(ε). For `OnAverage`, which claims nothing for any one record, the audit
    shows how exposed records are.

    All noise is drawn as in a fit. Minimisers of many runs are computed together, each within a
    proved distance that the noise on it covers, as in a fit; others are computed by themselves.

    The audit itself reveals what an attacker would learn from all those releases: keep its result
    with the data, or run it on simulated data.

    Parameters
    ----------
    privacy : Privacy
        `LabelDP`, `RecordDP` or `OnAverage`.
    X, y : array_like
        Data, given or simulated.
    lam : float or "auto"
        λ; needed for `OnAverage`, and of no importance for `LabelDP`, whose release is attacked.
    noise : NoiseDesign, Shaped or str
        As in `PrivateLasso`.
    fit_intercept : bool
        As in `PrivateLasso`. Under `OnAverage` columns are taken as they are, without an intercept.
    screen : "auto", "all", int or None
        As in `PrivateLasso`.
    binary : bool
        Attack the fit of `PrivateLogisticLasso` to labels 0 and 1.
    loss : Huber, Quantile or Logistic, optional
        As in `PrivateLasso`.
    records : "auto", sequence of int, or mapping of int to str
        Which records are attacked: by default the two of most influence, two at random and some
        that are made up: for `RecordDP` with public bounds at the bounds of the columns, and with
        `screen` such that they decide which columns are chosen.
    releases : int
        Releases from each data set. The attack that comes closest to refuting a claim is repeated
        with ten times as many.
    level : float
        Probability with which a correct mechanism is said to break its claim, at most.
    rng : optional
        Seed or generator for a repeatable audit; by default the operating system's entropy.
    progress : callable, optional
        Called with the number of steps done and in all.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((60, 2)), rng.random(60)
    >>> privacy = pv.LabelDP(epsilon=2.0, delta=0.01, y_bounds=(0, 1))
    >>> found = pv.audit(privacy, X, y, records=[0], releases=20, rng=1)
    >>> found.passed, found.worst.auc > 0.5
    (True, True)
    """
    check_kind(privacy)
    count = integer("releases", releases, minimum=20)
    level = probability("level", level)
    X, y = _data(X, y)
    source = None if rng is None else generator(rng)
    options = FitOptions(
        privacy,
        lam,
        noise,
        fit_intercept=fit_intercept and privacy.formal,
        screen=screen,
        classes=Classes() if binary else None,
        loss=Huber() if loss is None else loss,
    )
    plan = plan_for(X, options)
    if plan.guarantee.kind == "none":
        raise ValueError("there is no noise, so every record can be told from the release")
    claim, among = plan.guarantee.loss, plan.guarantee.neighbours
    chosen = _records(records, X, source)
    pairs = _pairs(plan, X, y, chosen, made_up=records == "auto")
    known = _KNOWN[None if among is None else (among.unit, among.relation)]
    return Audit(
        guarantee=plan.guarantee,
        findings=attack(pairs, claim, count, level, source, progress),
        knowledge=f"The attacker knows {known} {_RATIO}",
        releases=count,
        level=level,
        shape=(X.shape[0], X.shape[1]),
        confirming=0 if claim is None else CONFIRMING * count,
    )


def _pairs(
    plan: Plan, X: FloatArray, y: FloatArray, records: dict[int, str], *, made_up: bool
) -> list[Pair]:
    """The pairs of records, and where there is a claim those of records that are made up."""
    if plan.guarantee.loss is None:
        return membership_pairs(plan, X, y, records)
    worst = plan.worst(y) if made_up else []
    return [
        *pairs_of(plan, y, records),
        *(pair for one, labels, name in worst for pair in pairs_of(one, labels, {0: name})),
    ]


def influence(X: FloatArray) -> FloatArray:
    """How far each record is from the others: its length in the inverse of their covariance.

    Columns are in units of their deviations, and the covariance has a ridge of its mean eigenvalue,
    so that columns may be many.
    """
    deviations = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(deviations > 0.0, deviations, 1.0)
    U, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    squares = sizes**2
    return U**2 @ (squares / (squares + max(float(squares.sum()) / X.shape[1], 1e-300)))


def _data(X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    X = real_array("X", X, shape=(None, None))
    return X, real_labels(y, X.shape[0], finite=True)


def _records(
    records: Literal["auto"] | Sequence[int] | Mapping[int, str],
    X: FloatArray,
    rng: np.random.Generator | None,
) -> dict[int, str]:
    """Positions of the records to attack, each with its name."""
    m = len(X)
    if isinstance(records, str):
        if records != "auto":
            raise ValueError(f"records must be 'auto' or positions of rows, not {records!r}")
        most = np.argsort(-influence(X), kind="stable")[:_FEW].tolist()
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


def attack(
    pairs: Sequence[Pair],
    claim: PrivacyLoss | None,
    count: int,
    level: float,
    rng: np.random.Generator | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Finding, ...]:
    """Attack each pair with `count` releases from each of its data sets.

    Against a claim, half of the `level` is for limits at thresholds that are fixed beforehand, and
    for all pairs at once. The other half is for one set and one point of the claim: those that
    promise most over all pairs, tested on ten times as many new releases.
    """
    show = progress or (lambda done, total: None)
    steps = len(pairs) + (claim is not None)
    findings: list[Finding] = []
    best: tuple[int, Trial] | None = None
    kept: dict[Draw, Found] = {}  # a data set can be in several pairs
    for k, pair in enumerate(pairs):
        for draw in (pair.into, pair.out):
            if draw not in kept:
                kept[draw] = draw(count, rng)
        into, out = (pair.score(kept[draw]) for draw in (pair.into, pair.out))
        evidence, closest = Evidence(into, out, THRESHOLDS, 0.5 * level / len(pairs)), None
        if claim is not None:
            closest = evidence.closest(claim)
            trial = most_promising(into, out, claim, CONFIRMING * count)
            if trial is not None and (best is None or trial.margin > best[1].margin):
                best = k, trial
        findings.append(Finding(pair.name, evidence, closest))
        show(k + 1, steps)
    if best is not None:
        k, trial = best
        into, out = (
            pairs[k].score(draw(CONFIRMING * count, rng)) for draw in (pairs[k].into, pairs[k].out)
        )
        findings[k] = findings[k].with_limit(trial.tested(into, out, 0.5 * level))
    show(steps, steps)
    return tuple(findings)
