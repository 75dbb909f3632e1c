"""Guarantees of several releases of the same data, taken together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from privasso._validation import positive_float
from privasso.accounting import ApproximateLoss, InexactLoss, Loss, compose_losses
from privasso.privacy._guarantee import CLAIMS, Claim, Guarantee, check_budget, register
from privasso.privacy._numbers import rounded_up

_ALONE = "the same {} are not used in another release, whose loss would add to this one"
_TOGETHER = "the same {} are used in no other release than these {}, whose loss would add up"
#: What an assumption about other releases may be about.
_PROTECTED = ("labels", "records")


def alone(protected: str) -> str:
    """The assumption that the same labels, or records, are not used in another release."""
    if protected not in _PROTECTED:
        raise ValueError(f"what is protected must be one of {', '.join(_PROTECTED)}")
    return _ALONE.format(protected)


def compose(guarantees: Iterable[Guarantee], delta: float | None = None) -> Guarantee:
    """Return what holds for several releases of the same data together.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Formal guarantees with the same neighbours and the same bounds of the labels.
    delta : float, optional
        δ of the result, the largest δ among the guarantees if it is not given.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.privacy import Terms, compose
    >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
    >>> one = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(terms)
    >>> four = compose([one] * 4)
    >>> round(four["epsilon"], 3), round(four["mu"] / one["mu"], 9)
    (2.123, 2.0)
    """
    parts = list(guarantees)
    if not parts:
        raise ValueError("there is no guarantee to compose")
    losses = [formal_loss(part) for part in parts]
    check_same_neighbours(parts)
    delta = positive_float("delta", max(g["delta"] for g in parts) if delta is None else delta)
    loss = compose_losses(losses)
    first, kinds = parts[0], {part.kind for part in parts}
    same = len(kinds) == 1 and {_family(part) for part in losses} == {_family(loss)}
    numbers = {
        **_context(first),
        **dict(loss.parameters if same else ()),
        "delta": delta,
        "epsilon": loss.epsilon(delta),
        "n_rows": max(part["n_rows"] for part in parts),
    }
    if not math.isfinite(numbers["epsilon"]):
        raise ValueError(f"no finite ε holds for these releases together at δ = {delta!r}")
    together = {alone(what): _TOGETHER.format(what, len(parts)) for what in _PROTECTED}
    assumptions = [
        together.get(sentence, sentence) for part in parts for sentence in part.assumptions
    ]
    return Guarantee(
        kind=first.kind if same else _CLAIM.kind,
        parameters=tuple(numbers.items()),
        adjacency=first.adjacency,
        assumptions=tuple(dict.fromkeys(assumptions)),
        released=tuple(dict.fromkeys(what for part in parts for what in part.released)),
        seeded=any(part.seeded for part in parts),
    )


def formal_loss(guarantee: Guarantee) -> Loss:
    """Return the loss of a guarantee, and refuse one that bounds nothing.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.privacy import Terms
    >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=50)
    >>> round(formal_loss(pv.LabelDP(1.0, 1e-6, (0, 1)).guarantee(terms)).epsilon(1e-6), 3)
    1.0
    """
    if guarantee.loss is None:
        raise ValueError(
            f"a guarantee of kind {guarantee.kind!r} bounds no loss, so there is nothing to compose"
        )
    return guarantee.loss


def check_same_neighbours(guarantees: Sequence[Guarantee]) -> None:
    """Refuse guarantees that speak of different neighbours or of different label bounds.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.privacy import Terms
    >>> terms = Terms(fit_intercept=True, seeded=False, n_rows=1000)
    >>> wide, narrow = (pv.LabelDP(1.0, 1e-6, (0, high)).guarantee(terms) for high in (9, 1))
    >>> check_same_neighbours([wide, wide])  # they compose: nothing happens
    >>> check_same_neighbours([wide, narrow])
    Traceback (most recent call last):
    ValueError: guarantees for labels within different bounds (0.0, 9.0 and 0.0, 1.0) are not ...
    """
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.adjacency != first.adjacency:
            raise ValueError(
                f"guarantees for data sets that differ in {first.adjacency} and in "
                f"{other.adjacency} do not compose; state both for the same neighbours"
            )
        if _context(other) != _context(first):
            here, there = (", ".join(map(repr, _context(g).values())) for g in (first, other))
            raise ValueError(
                f"guarantees for labels within different bounds ({here} and {there}) are not "
                "composed: use the same y_bounds for every release of the same labels"
            )


def _family(loss: Loss) -> tuple[type[Loss], ...]:
    """The type of a loss and of its parts, which says what its parameters are."""
    if isinstance(loss, InexactLoss):
        return (InexactLoss, *_family(loss.ideal))
    return (type(loss), *(type(part) for part in getattr(loss, "parts", ())))


def _context(guarantee: Guarantee) -> dict[str, float]:
    """What must agree between guarantees that are composed."""
    numbers = dict(guarantee.parameters)
    names = CLAIMS[guarantee.kind].context
    return {name: numbers[name] for name in names if name in numbers}


def _sentence(guarantee: Guarantee) -> str:
    return (
        f"Several releases together are differentially private with "
        f"ε = {rounded_up(guarantee['epsilon'])} and δ = {rounded_up(guarantee['delta'])}: for any "
        f"two data sets that differ in {guarantee.adjacency}, every outcome that has probability p "
        f"under one has at least (p − δ)·e^(−ε) under the other."
    )


_CLAIM = register(
    Claim(
        "composed",
        ("delta", "epsilon", "n_rows"),
        ("y_high", "y_low"),
        _sentence,
        check=check_budget,
        loss=lambda guarantee: ApproximateLoss(guarantee["epsilon"], guarantee["delta"]),
        context=("y_low", "y_high"),
    )
)
