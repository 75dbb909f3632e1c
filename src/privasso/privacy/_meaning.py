"""What a guarantee means for somebody who tries to find out, in plain words."""

from __future__ import annotations

import math

from privasso.accounting import ApproximateLoss, true_alarms
from privasso.privacy._composition import formal_loss
from privasso.privacy._guarantee import Guarantee
from privasso.privacy._words import rounded_up

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
