"""The privacy statements about whole records."""

from __future__ import annotations

from dataclasses import replace

from privasso.accounting import GaussianLoss, Slope
from privasso.privacy._guarantee import Claim, Guarantee, check_budget, register
from privasso.privacy._numbers import exactly, rounded_up
from privasso.privacy._objective_claim import objective_claim

ONE_RECORD = "one record"
CONTRIBUTES = "each person contributes one record"


def _statement(guarantee: Guarantee) -> str:
    return (
        f"Differential privacy of whole records with ε = {rounded_up(guarantee['epsilon'])} and "
        f"δ = {rounded_up(guarantee['delta'])}: for any two data sets of which one is the other "
        f"with {guarantee.adjacency} replaced by an empty one, every outcome that has probability "
        f"p under one has at least (p − δ)·e^(−ε) under the other. Covariates and labels are "
        f"protected. Labels are clipped to [{exactly(guarantee['y_low'])}, "
        f"{exactly(guarantee['y_high'])}], "
    )


def _sentence(guarantee: Guarantee) -> str:
    return f"{_statement(guarantee)}covariates to the bounds of their columns."


def _scaled_sentence(guarantee: Guarantee) -> str:
    return (
        f"{_statement(guarantee)}covariates to the bounds of their columns or to ranges that were "
        "found in the data with noise. ε and δ include what was released before the fit."
    )


def _screened_sentence(guarantee: Guarantee) -> str:
    return (
        f"{_statement(guarantee)}covariates to the bounds of their columns. ε and δ include the "
        f"choice of {_chosen(guarantee)} columns, which was made with noise."
    )


def _chosen(guarantee: Guarantee) -> str:
    numbers = dict(guarantee.parameters)
    further = numbers.get("second_choices", 0.0) * numbers.get("further_rounds", 0.0)
    return f"{guarantee['choices'] + further:.0f}"


def _adjacency(k: int) -> str:
    return ONE_RECORD if k == 1 else f"up to {k} records"


def _group_assumptions(guarantee: Guarantee, k: int) -> tuple[str, ...]:
    many = f"each person contributes at most {k} records"
    return tuple(many if s == CONTRIBUTES else s for s in guarantee.assumptions)


def _statistics_sentence(guarantee: Guarantee) -> str:
    return (
        f"{_statement(guarantee)}covariates to the bounds of their columns or to ranges that were "
        "found in the data with noise. Coefficients at every λ are covered."
    )


def _check_statistics(guarantee: Guarantee) -> None:
    check_budget(guarantee)
    mu = guarantee["mu"]
    if mu <= 0.0 or GaussianLoss(mu).delta(guarantee["epsilon"]) > guarantee["delta"]:
        raise ValueError(
            "a record-dp-statistics guarantee needs mu > 0 that is small enough for its ε and δ"
        )


def _statistics_loss(guarantee: Guarantee) -> GaussianLoss:
    return GaussianLoss(guarantee["mu"])


def _statistics_group(guarantee: Guarantee, k: int) -> Guarantee:
    if k == 1:
        return guarantee
    if guarantee.adjacency != ONE_RECORD:
        raise ValueError("the guarantee is for groups already; group the one for single people")
    loss = _statistics_loss(guarantee).group(k)
    epsilon = loss.epsilon(guarantee["delta"])
    return replace(
        guarantee,
        parameters=tuple({**dict(guarantee.parameters), "mu": loss.mu, "epsilon": epsilon}.items()),
        adjacency=_adjacency(k),
        assumptions=_group_assumptions(guarantee, k),
    )


def _perturbed(kind: str, loss: Slope, gaussian: bool) -> Claim:
    sentence = _scaled_sentence if gaussian else _sentence
    return register(
        objective_claim(
            kind,
            sentence,
            "records",
            loss=loss,
            gaussian=gaussian,
            context=("y_low", "y_high"),
            adjacency=_adjacency,
            assumptions=_group_assumptions,
        )
    )


#: A perturbed fit alone, and one after Gaussian releases about the columns, whose sensitivity is
#: mu; by the loss.
RECORD_CLAIMS: dict[Slope, tuple[Claim, Claim]] = {
    "huber": (
        _perturbed("record-dp", "huber", gaussian=False),
        _perturbed("record-dp-scaled", "huber", gaussian=True),
    ),
    "logistic": (
        _perturbed("record-dp-logistic", "logistic", gaussian=False),
        _perturbed("record-dp-logistic-scaled", "logistic", gaussian=True),
    ),
}
#: A perturbed fit of columns that were chosen with noise; mu is that of sums of the labels.
SCREENED_CLAIM = register(
    objective_claim(
        "record-dp-screened",
        _screened_sentence,
        "records",
        screened=True,
        context=("y_low", "y_high"),
        adjacency=_adjacency,
        assumptions=_group_assumptions,
    )
)
#: Noisy statistics of records, after other Gaussian releases perhaps; mu is that of all together.
STATISTICS_CLAIM = register(
    Claim(
        "record-dp-statistics",
        ("delta", "epsilon", "mu", "n_rows", "y_high", "y_low"),
        (),
        _statistics_sentence,
        _check_statistics,
        loss=_statistics_loss,
        group=_statistics_group,
        context=("y_low", "y_high"),
    )
)
