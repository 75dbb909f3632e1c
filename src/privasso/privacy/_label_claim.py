"""What a guarantee of label differential privacy says, for single labels and for groups."""

from __future__ import annotations

import math
from dataclasses import replace

from privasso.accounting import GaussianLoss, Loss, log_gaussian_delta
from privasso.privacy._guarantee import Claim, Guarantee, check_budget, register
from privasso.privacy._numbers import exactly, rounded_up
from privasso.privacy._objective_claim import objective_claim

ONE_ENTRY = "one entry"
ONE_LABEL = "each person contributes one label"


def _sentence(guarantee: Guarantee) -> str:
    return (
        f"Label differential privacy with ε = {rounded_up(guarantee['epsilon'])} and "
        f"δ = {rounded_up(guarantee['delta'])}: for any two label vectors that differ in "
        f"{guarantee.adjacency}, every outcome that has probability p under one has at least "
        f"(p − δ)·e^(−ε) under the other. Labels are clipped to "
        f"[{exactly(guarantee['y_low'])}, {exactly(guarantee['y_high'])}]. "
        f"The covariates are not protected."
    )


def _check(guarantee: Guarantee) -> None:
    if not guarantee["y_low"] < guarantee["y_high"]:
        raise ValueError("a label-dp guarantee needs y_low < y_high")
    if not perturbed(guarantee):
        return _check_gaussian(guarantee)
    missing = {"c", "kappa", "shift", "t"} - dict(guarantee.parameters).keys()
    if missing:
        raise ValueError("a label-dp guarantee needs either mu, or c, kappa, shift and t")
    if not guarantee["kappa"] > 0.0:
        raise ValueError("a label-dp guarantee needs kappa > 0")
    return _OBJECTIVE.check(guarantee)


def _check_gaussian(guarantee: Guarantee) -> None:
    check_budget(guarantee)
    if "mu" not in dict(guarantee.parameters):
        raise ValueError("a label-dp guarantee needs either mu, or c, kappa, shift and t")
    mu, epsilon = guarantee["mu"], guarantee["epsilon"]
    if mu <= 0.0 or log_gaussian_delta(epsilon, mu) > math.log(guarantee["delta"]):
        raise ValueError("a label-dp guarantee needs mu > 0 that is small enough for its ε and δ")


def perturbed(guarantee: Guarantee) -> bool:
    """Whether the guarantee is one of objective perturbation, or else of a Gaussian mechanism."""
    return not {"c", "group", "kappa", "shift", "t"}.isdisjoint(dict(guarantee.parameters))


def _loss(guarantee: Guarantee) -> Loss:
    if perturbed(guarantee):
        assert _OBJECTIVE.loss is not None
        return _OBJECTIVE.loss(guarantee)
    return GaussianLoss(guarantee["mu"])


def _group(guarantee: Guarantee, k: int) -> Guarantee:
    """State the guarantee for label vectors that differ in up to k entries."""
    if k == 1:
        return guarantee
    if guarantee.adjacency != ONE_ENTRY:
        raise ValueError("the guarantee is for groups already; group the one for single labels")
    if perturbed(guarantee):
        assert _OBJECTIVE.group is not None
        return _OBJECTIVE.group(guarantee, k)
    loss = GaussianLoss(guarantee["mu"]).group(k)
    numbers = {
        **dict(guarantee.parameters),
        "mu": loss.mu,
        "epsilon": loss.epsilon(guarantee["delta"]),
    }
    return replace(
        guarantee,
        parameters=tuple(numbers.items()),
        adjacency=_adjacency(k),
        assumptions=_group_assumptions(guarantee, k),
    )


def _adjacency(k: int) -> str:
    return ONE_ENTRY if k == 1 else f"up to {k} entries"


def _group_assumptions(guarantee: Guarantee, k: int) -> tuple[str, ...]:
    many = f"each person contributes at most {k} labels"
    return tuple(many if s == ONE_LABEL else s for s in guarantee.assumptions)


def _screened_sentence(guarantee: Guarantee) -> str:
    return (
        f"{_sentence(guarantee)} ε and δ include the choice of {guarantee['choices']:.0f} columns, "
        "which was made with noise."
    )


_BOUNDS = ("y_low", "y_high")
#: A perturbed fit of columns that were chosen with noise; mu is that of sums of the labels.
SCREENED_LABEL_CLAIM = register(
    objective_claim(
        "label-dp-screened",
        _screened_sentence,
        "labels",
        screened=True,
        context=_BOUNDS,
        optional=("kappa",),
        adjacency=_adjacency,
        assumptions=_group_assumptions,
    )
)
_OBJECTIVE = objective_claim(
    "label-dp",
    _sentence,
    "labels",
    context=_BOUNDS,
    optional=("kappa",),
    adjacency=_adjacency,
    assumptions=_group_assumptions,
)
LABEL_CLAIM = Claim(
    "label-dp",
    ("delta", "epsilon", "n_rows", *_BOUNDS),
    ("c", "group", "kappa", "mu", "shift", "t"),
    _sentence,
    _check,
    loss=_loss,
    group=_group,
    context=_BOUNDS,
)
