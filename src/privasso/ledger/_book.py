"""A budget and what was charged to it, as a value that knows how much is left."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast, get_args

from privasso._documents import DocumentError, Fields
from privasso._validation import positive_float, probability
from privasso.accounting import GaussianLoss, Loss, spent_epsilon, within_budget
from privasso.privacy import Guarantee, check_same_neighbours, formal_loss, rounded_down, rounded_up

FORMAT = "privasso-ledger"
VERSION = 3
_MOST_ENTRIES = 1_000_000
#: Digits of ε in messages.
_DIGITS = 4
#: Halvings of the interval in which the room that is left is searched for: of a Gaussian mechanism,
#: and of others, whose losses take longer to compute.
_HALVINGS = {True: 40, False: 10}
#: The part of the room that is stated where the kind of a further release leaves it uncertain, and
#: the smallest part of a release that is worth mentioning.
_CAUTION, _LEAST = 0.99, 1e-2

#: How an entry came about: a release that was charged, one that was only reserved, and a release
#: that uses a reservation and costs nothing more.
Status: TypeAlias = Literal["charged", "reserved", "used"]


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
    """One release that was charged or reserved.

    Attributes
    ----------
    time : str
        When it was entered, in UTC.
    what : str
        What was released, in words that do not depend on the labels.
    guarantee : Guarantee
        What was stated for it.
    status : str
        ``"charged"`` for a release, ``"reserved"`` for one that may be made later, and ``"used"``
        for a release that was reserved before and costs nothing more.
    """

    time: str
    what: str
    guarantee: Guarantee
    status: Status = "charged"

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; a release that was charged has no status there."""
        values = {"time": self.time, "what": self.what, "guarantee": self.guarantee.to_dict()}
        return values if self.status == "charged" else {**values, "status": self.status}


@dataclass(frozen=True)
class Book:
    """A budget (ε, δ), what it is for, and the entries charged to it, in order.

    Every entry has a hash of itself and of the hash before it, and the first follows the hash of
    the budget. The last hash so stands for the whole content.
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
    def declared(self) -> list[Loss]:
        """Losses of what was entered before anything was released: they are composed tightly."""
        return self._losses[0]

    @property
    def chosen(self) -> list[Loss]:
        """Losses of later entries, whose settings may depend on earlier releases."""
        return self._losses[1]

    @property
    def _losses(self) -> tuple[list[Loss], list[Loss]]:
        found: tuple[list[Loss], list[Loss]] = ([], [])
        released = False
        for entry in self.entries:
            if entry.status != "used":
                found[released].append(formal_loss(entry.guarantee))
            released = released or entry.status != "reserved"
        return found

    @property
    def released(self) -> int:
        """How many releases were made."""
        return sum(entry.status != "reserved" for entry in self.entries)

    @property
    def waiting(self) -> Counter[Loss]:
        """Losses of reservations that are not used yet, with how many there are of each."""
        found: Counter[Loss] = Counter()
        for entry in self.entries:
            found[formal_loss(entry.guarantee)] += {"charged": 0, "reserved": 1, "used": -1}[
                entry.status
            ]
        return +found

    def spent(self, delta: float | None = None) -> float:
        """Return the ε of the smallest budget at δ that would have admitted all entries.

        δ is that of the budget if none is given.
        """
        delta = self.delta if delta is None else delta
        return spent_epsilon(delta, *self._losses) if self.entries else 0.0

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
        loss = GaussianLoss(1.0) if like is None else formal_loss(like)
        gaussian = isinstance(loss, GaussianLoss)
        low, high = 0.0, 1.0
        while self._admits(loss.scaled(high)):
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS[gaussian]):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._admits(loss.scaled(middle)) else (low, middle)
        if gaussian:
            return loss.scaled(low).epsilon(delta) if low > 0.0 else 0.0
        return _CAUTION * loss.scaled(low).epsilon(delta) if low > _LEAST else 0.0

    def charged(self, entry: Entry) -> Book:
        """Return the book with one more release; one that exceeds the budget is refused.

        A release whose loss was reserved uses the reservation.
        """
        guarantee = entry.guarantee
        loss = formal_loss(guarantee)
        check_same_neighbours([*(old.guarantee for old in self.entries[:1]), guarantee])
        if self.waiting[loss]:
            return replace(self, entries=(*self.entries, replace(entry, status="used")))
        if not self._admits(loss):
            raise BudgetError(self._refusal(guarantee))
        return replace(self, entries=(*self.entries, entry))

    def reserved(self, entries: Sequence[Entry]) -> Book:
        """Return the book with releases that may be made later; it must be before the first one."""
        if self.released:
            raise ValueError(
                "fits are reserved before the first release: what is declared later may depend on "
                "it, and is charged when it is made"
            )
        new = tuple(replace(entry, status="reserved") for entry in entries)
        book = replace(self, entries=(*self.entries, *new))
        if not book.entries:
            return book
        check_same_neighbours([entry.guarantee for entry in book.entries])
        if not within_budget(self.epsilon, self.delta, book.declared):
            raise BudgetError(
                f"{len(book.entries)} fits together have ε = {rounded_up(book.spent(), _DIGITS)} "
                f"at δ = {rounded_up(self.delta)}, which is more than the budget of "
                f"ε = {rounded_up(self.epsilon)}; nothing was reserved"
            )
        return book

    def _admits(self, loss: Loss) -> bool:
        declared, chosen = self._losses
        (chosen if self.released else declared).append(loss)
        return within_budget(self.epsilon, self.delta, declared, chosen)

    def hashes(self) -> list[str]:
        """Return the hash of the budget and then one for each entry."""
        header = {name: getattr(self, name) for name in ("epsilon", "delta", "data", "identity")}
        chain = [_hash("", header)]
        for entry in self.entries:
            chain.append(_hash(chain[-1], entry.to_dict()))
        return chain

    def to_document(self) -> dict[str, object]:
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
            status = inner.text("status") if "status" in inner.names() else "charged"
            if status not in get_args(Status):
                raise DocumentError(f"an entry of the ledger has the unknown status {status!r:.60}")
            time, what = inner.text("time"), inner.text("what")
            entries.append(Entry(time, what, guarantee, cast(Status, status)))
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
        chain, count = book.hashes(), fields.whole("n_entries", 0, _MOST_ENTRIES)
        _check_chain(chain, marks, count)
        if fields.text("last_hash") != chain[-1]:
            raise DocumentError(_CHANGED)
        fields.end()
        return book

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
            f"ε = {rounded_up(self.spent(), _DIGITS)} is spent by {_fits(self)}, and {room}; "
            "nothing was drawn"
        )


def summary(book: Book) -> str:
    """Say what was spent and what is left.

    >>> summary(Book(2.0, 1e-6, "", "0"))
    'Spent: nothing. One further fit at δ = 1e-06 may have ε up to 2.'
    """
    spent = "Spent: nothing."
    if book.entries:
        spent = (
            f"Spent: ε = {rounded_up(book.spent(), _DIGITS)} at δ = {rounded_up(book.delta)}, by "
            f"{_fits(book)}."
        )
    left = book.left()
    if left == 0.0:
        return f"{spent} Nothing is left."
    return (
        f"{spent} One further fit at δ = {rounded_up(book.delta)} may have ε up to "
        f"{rounded_down(left, _DIGITS)}."
    )


def _fits(book: Book) -> str:
    """Say what the total is made of, and for which way of choosing settings it holds."""
    waiting, released = book.waiting.total(), book.released
    parts = [f"{released} release{'s' * (released > 1)}"] if released else []
    parts += [f"{waiting} reserved fit{'s' * (waiting > 1)}"] if waiting else []
    said = " and ".join(parts) or "no release"
    if book.chosen:
        return f"{said} together, whose settings may have been chosen as you went"
    return f"{said}, declared beforehand" if len(book.declared) > 1 else said


_CHANGED = "the ledger was changed by other means than charging it: its hashes do not fit"


def _check_chain(chain: Sequence[str], marks: Sequence[str], count: int) -> None:
    if count != len(marks):
        raise DocumentError(
            f"the ledger lists {len(marks)} entries but was written with {count}; entries are "
            "never removed or added by hand"
        )
    for k, (mark, true) in enumerate(zip(marks, chain[1:], strict=True), start=1):
        if mark != true:
            raise DocumentError(f"{_CHANGED} (first noticed at entry {k})")


def _hash(before: str, value: dict[str, object]) -> str:
    text = json.dumps([before, value], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
