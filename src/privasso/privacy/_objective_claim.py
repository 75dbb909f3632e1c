"""Guarantees of objective perturbation: which numbers they carry, and how they are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from privasso.accounting import (
    BesideChoices,
    BesideGaussian,
    ChoiceLoss,
    InexactLoss,
    Loss,
    Neighbours,
    ObjectiveLoss,
    Slope,
)
from privasso.privacy._guarantee import Claim, Guarantee, check_budget

_NUMBERS = ("c", "delta", "epsilon", "n_rows", "shift", "t")
#: Where a group is stated, its size.
_GROUP = "group"
#: Of the fits and choices of further rounds, where columns are chosen in several, and how many.
_FURTHER = ("first_c", "first_t", "second_epsilon", "second_choices", "further_rounds")


def objective_parameters(c: float, t: float, shift: float) -> dict[str, float]:
    """Return the numbers of a guarantee from which its loss is rebuilt."""
    return {"c": c, "t": t, "shift": shift}


def further_rounds(rounds: Sequence[tuple[ObjectiveLoss, ChoiceLoss]]) -> dict[str, float]:
    """Return the numbers of further rounds, each a fit and a choice."""
    fit, choice = rounds[0]
    if any(one != rounds[0] for one in rounds):
        raise ValueError("all further rounds must have the same losses")
    numbers = fit.c, fit.t, choice.epsilon_each, float(choice.count), float(len(rounds))
    return dict(zip(_FURTHER, numbers, strict=True))


def _beside(numbers: dict[str, float], neighbours: Neighbours) -> tuple[Loss, ...]:
    """The losses of the choices, and of all fits but the last where there were several rounds."""
    first = ChoiceLoss(numbers["choice_epsilon"], int(numbers["choices"]))
    if not numbers.keys() >= set(_FURTHER):
        return (first,)
    fit = ObjectiveLoss(numbers["first_c"], numbers["first_t"], neighbours)
    choice = ChoiceLoss(numbers["second_epsilon"], int(numbers["second_choices"]))
    return first, *(fit, choice) * int(numbers["further_rounds"])


def _check_choices(kind: str, numbers: dict[str, float]) -> None:
    """Refuse numbers of choices that cannot be."""
    further = [numbers[name] for name in _FURTHER if name in numbers]
    if further and (len(further) < len(_FURTHER) or min(further) <= 0.0):
        raise ValueError(f"a {kind} guarantee needs all numbers of further rounds, or none")
    for name in ("choices", "second_choices", "further_rounds"):
        count = numbers.get(name, 1.0)
        if not (count >= 1.0 and count.is_integer()):
            raise ValueError(f"a {kind} guarantee needs a whole number of {name}")
    if numbers["mu"] < 0.0:
        raise ValueError(f"a {kind} guarantee needs mu of zero or more")


def objective_claim(
    kind: str,
    sentence: Callable[[Guarantee], str],
    neighbours: Neighbours,
    *,
    loss: Slope = "huber",
    gaussian: bool = False,
    screened: bool = False,
    context: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    adjacency: Callable[[int], str],
    assumptions: Callable[[Guarantee, int], tuple[str, ...]] = lambda guarantee, k: (
        guarantee.assumptions
    ),
) -> Claim:
    """Return a kind of guarantee for objective perturbation, ready to be registered.

    Its guarantees have the parameters of `objective_parameters`, epsilon, delta, n_rows and those
    of `context`. One whose ε and δ do not follow from c, t and the shift is refused.

    Parameters
    ----------
    kind : str
        Name of the kind, as written to files.
    sentence : callable
        The claim in words.
    neighbours, loss
        As in `objective_delta`.
    gaussian : bool
        Whether Gaussian releases come before the fit; their sensitivity is the parameter mu. A
        guarantee without them may have that parameter too, for one that comes after the fit.
    screened : bool
        Whether columns were chosen before the fit; the parameters of `ChoiceLoss` say at what
        price, and mu may be zero.
    context : tuple of str
        Further parameters, which must be equal in guarantees that are composed.
    optional : tuple of str
        Further parameters that a guarantee may have.
    adjacency : callable
        What data sets differ in, for a group of k.
    assumptions : callable
        The assumptions of a guarantee, restated for a group of k.
    """
    needed = "c > 0, mu > 0, t and shift that are" if gaussian else "c > 0, t and shift that are"

    def bound(guarantee: Guarantee) -> InexactLoss:
        numbers = dict(guarantee.parameters)
        one: Loss = ObjectiveLoss(numbers["c"], numbers["t"], neighbours, loss)
        if screened:
            one = BesideChoices.of(one, _beside(numbers, neighbours), numbers["mu"])
        elif "mu" in numbers:
            one = BesideGaussian.of(one, numbers["mu"])
        return InexactLoss(one.group(int(numbers.get(_GROUP, 1))), shift=numbers["shift"])

    def check(guarantee: Guarantee) -> None:
        check_budget(guarantee)
        numbers = dict(guarantee.parameters)
        k = numbers.get(_GROUP, 1.0)
        if not (k >= 1.0 and k.is_integer()):
            raise ValueError(f"a {kind} guarantee needs a whole number for its group")
        least = min(numbers["c"], 1.0 if screened else numbers.get("mu", 1.0))
        if screened:
            _check_choices(kind, numbers)
            least = min(least, numbers["choice_epsilon"])
        if least <= 0.0 or bound(guarantee).delta(numbers["epsilon"]) > numbers["delta"]:
            raise ValueError(f"a {kind} guarantee needs {needed} small enough for its ε and δ")

    def group(guarantee: Guarantee, k: int) -> Guarantee:
        if k == 1:
            return guarantee
        if _GROUP in dict(guarantee.parameters):
            raise ValueError("the guarantee is for groups already; group the one for single people")
        epsilon = bound(guarantee).group(k).epsilon(guarantee["delta"])
        if not math.isfinite(epsilon):
            raise ValueError(f"no finite ε holds for groups of {k} at the δ of this guarantee")
        numbers = {**dict(guarantee.parameters), _GROUP: float(k), "epsilon": epsilon}
        return replace(
            guarantee,
            parameters=tuple(numbers.items()),
            adjacency=adjacency(k),
            assumptions=assumptions(guarantee, k),
        )

    return Claim(
        kind,
        (
            *_NUMBERS,
            *(("mu",) if gaussian or screened else ()),
            *(("choice_epsilon", "choices") if screened else ()),
            *context,
        ),
        (_GROUP, *(_FURTHER if screened else () if gaussian else ("mu",)), *optional),
        sentence,
        check,
        loss=bound,
        group=group,
        context=context,
    )
