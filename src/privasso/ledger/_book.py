"""A budget and what was charged to it, as a value that knows how much is left."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privasso._documents import DocumentError, Fields
from privasso._validation import positive_float, probability
from privasso.accounting import (
    GaussianLoss,
    Loss,
    compose_losses,
    gaussian_epsilon,
    sensitivity_for,
)
from privasso.privacy import Guarantee, check_same_neighbours, formal_loss, rounded_down, rounded_up

FORMAT = "privasso-ledger"
VERSION = 1
_MOST_ENTRIES = 1_000_000
#: Digits of ε in messages.
_DIGITS = 4
#: Halvings of the interval in which the room that is left is searched for.
_HALVINGS = 12
#: The part of the room that is stated where the kind of a further release leaves it uncertain,
#: the steps in which that is searched for, and the smallest release worth mentioning.
_CAUTION, _STEP, _LEAST = 0.99, 0.02, 1e-2


class BudgetError(ValueError):
    """A release would exceed the budget of its ledger; nothing of it was drawn.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> ledger, privacy = pv.Ledger(1.0, 1e-6), pv.LabelDP(2.0, 1e-6, y_bounds=(0.0, 1.0))
    >>> try:
    ...     pv.PrivateLasso(privacy=privacy, ledger=ledger).fit(np.eye(9), np.ones(9))
    ... except pv.BudgetError:
    ...     print("nothing was released")
    nothing was released
    """


@dataclass(frozen=True)
class Entry:
    """One release that was charged.

    Attributes
    ----------
    time : str
        When it was charged, in UTC.
    what : str
        What was released, in words that do not depend on the labels.
    guarantee : Guarantee
        What was stated for it.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> ledger = pv.Ledger(epsilon=2.0, delta=1e-6)
    >>> privacy = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1))
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> _ = pv.PrivateLasso(10.0, privacy, ledger=ledger).fit(X, np.linspace(0, 0.9, 300))
    >>> entry = ledger.book.entries[0]
    >>> entry.guarantee["epsilon"]
    1.0
    """

    time: str
    what: str
    guarantee: Guarantee

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"time": self.time, "what": self.what, "guarantee": self.guarantee.to_dict()}


@dataclass(frozen=True)
class Book:
    """A budget (ε, δ), what it is for, and the entries charged to it, in order.

    Every entry has a hash of itself and of the hash before it, and the first follows the hash of
    the budget. The last hash so stands for the whole content.

    Examples
    --------
    >>> book = Book(epsilon=2.0, delta=1e-6, data="a study", identity="0" * 32)
    >>> Book.from_document(book.to_document()) == book
    True
    >>> round(book.left(), 6)
    2.0
    """

    epsilon: float
    delta: float
    data: str
    identity: str
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_float("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        if not isinstance(self.data, str):
            raise ValueError("data must be a text that says what the budget is for")

    @property
    def total(self) -> Loss:
        """The loss of all entries together."""
        return compose_losses(formal_loss(entry.guarantee) for entry in self.entries)

    def spent(self, delta: float | None = None) -> float:
        """Return the ε of all entries together at δ, that of the budget if none is given."""
        return self.total.epsilon(self.delta if delta is None else delta) if self.entries else 0.0

    def left(self, delta: float | None = None, like: Guarantee | None = None) -> float:
        """Return the largest ε that one further release may have at its δ.

        It is one of the same kind as `like`, or as the last entry if that is not given. Where it
        is not a Gaussian mechanism, a little is left out of account, because the settings of a fit
        may vary with the data.
        """
        delta = self.delta if delta is None else delta
        if not self.entries and delta == self.delta:
            return self.epsilon
        like = self.entries[-1].guarantee if like is None and self.entries else like
        loss = None if like is None else like.loss
        if loss is None or isinstance(loss, GaussianLoss):
            mu = self._room()
            return gaussian_epsilon(delta, mu) if mu > 0.0 else 0.0
        assert like is not None
        return self._room_for(loss, like["epsilon"], delta)

    def charged(self, entry: Entry) -> Book:
        """Return the book with one more entry; one that exceeds the budget is refused."""
        guarantee = entry.guarantee
        loss = formal_loss(guarantee)
        check_same_neighbours([*(old.guarantee for old in self.entries[:1]), guarantee])
        if compose_losses([self.total, loss]).delta(self.epsilon) > self.delta:
            raise BudgetError(self._refusal(guarantee))
        return replace(self, entries=(*self.entries, entry))

    def hashes(self) -> list[str]:
        """Return the hash of the budget and then one for each entry."""
        header = {name: getattr(self, name) for name in ("epsilon", "delta", "data", "identity")}
        chain = [_hash("", header)]
        for entry in self.entries:
            chain.append(_hash(chain[-1], entry.to_dict()))
        return chain

    def to_document(self) -> dict[str, Any]:
        """Plain values for JSON, with the hashes."""
        chain = self.hashes()
        return {
            "format": FORMAT,
            "version": VERSION,
            "identity": self.identity,
            "data": self.data,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "entries": [
                {**entry.to_dict(), "hash": mark}
                for entry, mark in zip(self.entries, chain[1:], strict=True)
            ],
            "n_entries": len(self.entries),
            "last_hash": chain[-1],
        }

    @classmethod
    def from_document(cls, document: object) -> Book:
        """Rebuild what `to_document` gave; a file that was changed raises `DocumentError`."""
        fields = Fields.of_file(document, "a ledger", FORMAT, VERSION)
        listed = fields.take("entries")
        if not isinstance(listed, list):
            raise DocumentError("entries must be a list")
        entries, marks = [], []
        for value in listed:
            inner = Fields(value, "an entry of the ledger")
            guarantee = Guarantee.from_dict(inner.take("guarantee"))
            entries.append(Entry(inner.text("time"), inner.text("what"), guarantee))
            marks.append(inner.text("hash"))
            inner.end()
        try:
            book = cls(
                epsilon=fields.number("epsilon"),
                delta=fields.number("delta"),
                data=fields.text("data"),
                identity=fields.text("identity"),
                entries=tuple(entries),
            )
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(str(error)) from None
        book._check_chain(marks, fields.whole("n_entries", 0, _MOST_ENTRIES))
        if fields.text("last_hash") != book.hashes()[-1]:
            raise DocumentError(_CHANGED)
        fields.end()
        return book

    def _check_chain(self, marks: Sequence[str], count: int) -> None:
        if count != len(self.entries):
            raise DocumentError(
                f"the ledger lists {len(self.entries)} entries but was written with {count}; "
                "entries are never removed or added by hand"
            )
        for k, (mark, true) in enumerate(zip(marks, self.hashes()[1:], strict=True), start=1):
            if mark != true:
                raise DocumentError(f"{_CHANGED} (first noticed at entry {k})")

    def _room(self) -> float:
        """Largest μ of a further Gaussian mechanism within the budget."""
        total, limit = self.total, sensitivity_for(self.epsilon, self.delta)
        if isinstance(total, GaussianLoss):
            return math.sqrt(max(limit - total.mu, 0.0) * (limit + total.mu))
        low, high = 0.0, limit
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            inside = compose_losses([total, GaussianLoss(middle)]).delta(self.epsilon) <= self.delta
            low, high = (middle, high) if inside else (low, middle)
        return low

    def _room_for(self, loss: Loss, epsilon: float, delta: float) -> float:
        """An ε at δ that a further release may have whose loss is this one scaled, nearly the most.

        The search starts from Gaussian mechanisms of the same ε, whose losses add up to less, and
        goes down in small steps: each takes a convolution.
        """
        total, spent = self.total, self.spent()
        limit, used = (sensitivity_for(e, self.delta) for e in (self.epsilon, max(spent, 1e-9)))
        if used >= limit:
            return 0.0
        factor = gaussian_epsilon(delta, math.sqrt(limit**2 - used**2)) / epsilon
        while factor > _LEAST:
            together = compose_losses([total, loss.scaled(factor)])
            if together.delta(self.epsilon) <= self.delta:
                return _CAUTION * loss.scaled(factor).epsilon(delta)
            factor *= 1.0 - _STEP
        return 0.0

    def _refusal(self, guarantee: Guarantee) -> str:
        delta, left = guarantee["delta"], self.left(guarantee["delta"], guarantee)
        room = (
            f"at δ = {rounded_up(delta)} a further one may have ε up to "
            f"{rounded_down(left, _DIGITS)}"
            if left > 0.0
            else "nothing is left"
        )
        return (
            f"a release with ε = {rounded_up(guarantee['epsilon'])} does not fit into the budget "
            f"of ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta)}: "
            f"ε = {rounded_up(self.spent(), _DIGITS)} is spent by {_releases(self)}, and {room}; "
            "nothing was drawn"
        )


def summary(book: Book) -> str:
    """Say what was spent and what is left.

    >>> summary(Book(2.0, 1e-6, "", "0"))
    'Spent: nothing. One further fit at δ = 1e-06 may have ε up to 2.'
    """
    spent = (
        f"Spent: ε = {rounded_up(book.spent(), _DIGITS)} at δ = {rounded_up(book.delta)}, by "
        f"{_releases(book)}."
        if book.entries
        else "Spent: nothing."
    )
    left = book.left()
    if left == 0.0:
        return f"{spent} Nothing is left."
    return (
        f"{spent} One further fit at δ = {rounded_up(book.delta)} may have ε up to "
        f"{rounded_down(left, _DIGITS)}."
    )


def _releases(book: Book) -> str:
    count = len(book.entries)
    return "1 release" if count == 1 else f"{count} releases together"


_CHANGED = "the ledger was changed by other means than charging it: its hashes do not fit"


def _hash(before: str, value: dict[str, Any]) -> str:
    text = json.dumps([before, value], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
