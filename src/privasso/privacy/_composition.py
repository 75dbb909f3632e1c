"""What holds for several releases of the same data together, and what a guarantee means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from privasso._validation import positive_float
from privasso.accounting import ApproximateLoss, Loss, together, true_alarms
from privasso.privacy._guarantee import Guarantee, alone
from privasso.privacy._words import rounded_up

_TOGETHER = "the same {}s are used in no other release than these {}, whose loss would add up"


def compose(guarantees: Iterable[Guarantee], delta: float | None = None) -> Guarantee:
    """Return what holds for several releases of the same data together.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Formal guarantees with the same neighbours and the same bounds of the labels, where these
        were known before the fit.
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
    same = all(part.label_bounds == first.label_bounds for part in parts)
    stated = {name: x for name, x in first.parameters if same or name not in ("y_low", "y_high")}
    numbers = {
        **stated,
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


#: What an attacker does not know and what they ask, by the kind of the guarantee.
_SAID = {
    "label-dp": ("one person's label", "whether that label has a certain value"),
    "record-dp": ("one person's record", "whether that record was among the data"),
}
#: Rate of true alarms from which on a guarantee rules out little.
_LITTLE = 0.9
#: A test that accuses so many innocents is used to say what a guarantee means.
_FALSE = 0.05


def meaning(guarantee: Guarantee) -> str:
    """Say what a formal guarantee means for somebody who tries to find out about one person.

    The rate of true alarms follows from the loss that the guarantee has at every ε, not from its
    own ε and δ alone, which allow for much worse releases.
    """
    loss = formal_loss(guarantee)
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    what, question = _SAID[guarantee.kind]
    said = (
        f"What the guarantee means: suppose that somebody knows all of the data except for {what}, "
        f"reads this model and asks {question}. They answer yes, wrongly, in {100 * _FALSE:.0f} % "
        "of the cases in which the answer is no. Of the cases in which it is yes, they then find "
    )
    bound = true_alarms(loss, _FALSE)
    plain = true_alarms(ApproximateLoss(epsilon, delta), _FALSE)
    numbers = f"ε = {rounded_up(epsilon)} and δ = {rounded_up(delta)}"
    if isinstance(loss, ApproximateLoss):
        beside = f" This follows from {numbers} alone, as nothing else is known."
    else:
        beside = f" From {numbers} alone it would be {_percent(max(plain, bound))} %."
    if bound < _LITTLE:
        return f"{said}at most {_percent(bound)} %.{beside}"
    return (
        f"{said}possibly {_percent(bound)} %: the guarantee rules out little for somebody who "
        f"knows that much.{beside}"
    )


def _percent(share: float) -> str:
    """Return a share in per cent, rounded up; near 100 as many digits as tell it from 100.

    Examples
    --------
    >>> _percent(0.1359), _percent(0.95270), _percent(0.9999569), _percent(1.0)
    ('13.6', '95.3', '99.996', '100')
    """
    rest = 100.0 * (1.0 - share)
    if rest < 1e-6:
        return "100"
    digits = max(1, -math.floor(math.log10(rest)))
    return f"{100.0 - math.floor(rest * 10.0**digits + 1e-9) / 10.0**digits:.{digits}f}"
