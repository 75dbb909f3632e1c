"""What holds for several releases of the same data together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from privasso._validation import positive_float
from privasso.accounting import Loss, together
from privasso.privacy._guarantee import Guarantee, alone

_TOGETHER = "the same {}s are used in no other release than these {}, whose loss would add up"


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
    >>> round(four["epsilon"], 3), len(four.losses)
    (2.123, 4)
    """
    parts = list(guarantees)
    if not parts:
        raise ValueError("there is no guarantee to compose")
    for part in parts:
        formal_loss(part)
    check_same_neighbours(parts)
    delta = positive_float("delta", max(g["delta"] for g in parts) if delta is None else delta)
    first, losses = parts[0], tuple(loss for part in parts for loss in part.losses)
    epsilon = together(losses, first.size).epsilon(delta)
    if not math.isfinite(epsilon):
        raise ValueError(f"no finite ε holds for these releases together at δ = {delta!r}")
    assert first.neighbours is not None
    said = {alone(first.neighbours): _TOGETHER.format(first.neighbours.unit, len(parts))}
    assumptions = [said.get(sentence, sentence) for part in parts for sentence in part.assumptions]
    numbers = {
        **dict(first.parameters),
        "delta": delta,
        "epsilon": epsilon,
        "n_rows": max(part["n_rows"] for part in parts),
    }
    return replace(
        first,
        parameters=tuple(numbers.items()),
        losses=losses,
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
        if (other.neighbours, other.size) != (first.neighbours, first.size):
            raise ValueError(
                f"guarantees for data sets that differ in {_pair(first)} and in {_pair(other)} do "
                "not compose; state both for the same neighbours"
            )
        here, there = (g.label_bounds for g in (first, other))
        if here is not None and there is not None and here != there:
            here, there = (", ".join(map(repr, bounds or ())) for bounds in (here, there))
            raise ValueError(
                f"guarantees for labels within different bounds ({here} and {there}) are not "
                "composed: use the same y_bounds for every release of the same labels"
            )


def _pair(guarantee: Guarantee) -> str:
    assert guarantee.neighbours is not None
    return f"{guarantee.adjacency}, {guarantee.neighbours.relation},"
