"""What a guarantee of label differential privacy says, for single labels and for groups."""

from __future__ import annotations

import math
from dataclasses import replace

from privasso.privacy._gaussian import log_gaussian_delta
from privasso.privacy._guarantee import Claim, Guarantee, check_budget
from privasso.privacy._loss import GaussianLoss
from privasso.privacy._numbers import exactly, rounded_up

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
    check_budget(guarantee)
    if not guarantee["y_low"] < guarantee["y_high"]:
        raise ValueError("a label-dp guarantee needs y_low < y_high")
    mu, epsilon = guarantee["mu"], guarantee["epsilon"]
    if mu <= 0.0 or log_gaussian_delta(epsilon, mu) > math.log(guarantee["delta"]):
        raise ValueError("a label-dp guarantee needs mu > 0 that is small enough for its ε and δ")


def _loss(guarantee: Guarantee) -> GaussianLoss:
    return GaussianLoss(guarantee["mu"])


def _group(guarantee: Guarantee, k: int) -> Guarantee:
    """State the guarantee for label vectors that differ in up to k entries."""
    if k == 1:
        return guarantee
    if guarantee.adjacency != ONE_ENTRY:
        raise ValueError("the guarantee is for groups already; group the one for single labels")
    loss = _loss(guarantee).group(k)
    numbers = {
        **dict(guarantee.parameters),
        "mu": loss.mu,
        "epsilon": loss.epsilon(guarantee["delta"]),
    }
    many = f"each person contributes at most {k} labels"
    return replace(
        guarantee,
        parameters=tuple(numbers.items()),
        adjacency=f"up to {k} entries",
        assumptions=tuple(many if s == ONE_LABEL else s for s in guarantee.assumptions),
    )


LABEL_CLAIM = Claim(
    "label-dp",
    ("delta", "epsilon", "mu", "n_rows", "y_high", "y_low"),
    (),
    _sentence,
    _check,
    loss=_loss,
    group=_group,
    context=("y_low", "y_high"),
)
