"""Losses as plain values for files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields

from privasso._documents import DocumentError, Fields
from privasso.accounting._choice_loss import ChoiceLoss
from privasso.accounting._inexact import InexactLoss
from privasso.accounting._loss import ApproximateLoss, GaussianLoss, Loss
from privasso.accounting._objective_loss import ObjectiveLoss

#: The losses that single questions have, by their names in files.
_NAMES: dict[str, type[Loss]] = {
    "gaussian": GaussianLoss,
    "choice": ChoiceLoss,
    "objective": ObjectiveLoss,
    "approximate": ApproximateLoss,
}
#: Most questions that a file may list.
_MOST = 100_000


def losses_to_list(losses: Iterable[Loss]) -> list[dict[str, object]]:
    """Plain values for JSON.

    >>> losses_to_list([GaussianLoss(0.2)])
    [{'type': 'gaussian', 'mu': 0.2}]
    """
    return [_to_dict(loss) for loss in losses]


def _to_dict(loss: Loss) -> dict[str, object]:
    if isinstance(loss, InexactLoss):
        return {**_to_dict(loss.ideal), "shift": loss.shift}
    (name,) = (name for name, kind in _NAMES.items() if type(loss) is kind)
    return {"type": name, **asdict(loss)}  # type: ignore[call-overload]


def losses_from_list(values: object) -> tuple[Loss, ...]:
    """Rebuild what `losses_to_list` wrote; anything else raises `DocumentError`."""
    if not isinstance(values, list) or len(values) > _MOST:
        raise DocumentError("losses must be a list")
    return tuple(_from_dict(one) for one in values)


def _from_dict(values: object) -> Loss:
    given = Fields(values, "a loss")
    name = given.text("type")
    if name not in _NAMES:
        raise DocumentError(f"a loss has the unknown type {name!r:.60}")
    numbers: dict[str, object] = {}
    for one in fields(_NAMES[name]):  # type: ignore[arg-type]
        if one.name in ("neighbours", "loss"):
            numbers[one.name] = given.text(one.name)
        elif one.name == "count":
            numbers[one.name] = given.whole(one.name, 1, _MOST)
        else:
            numbers[one.name] = given.number(one.name, least=0.0)
    shift = given.number("shift", least=0.0) if "shift" in given.names() else None
    given.end()
    try:
        loss = _NAMES[name](**numbers)
        return loss if shift is None else InexactLoss(loss, shift)
    except ValueError as error:
        raise DocumentError(str(error)) from None
