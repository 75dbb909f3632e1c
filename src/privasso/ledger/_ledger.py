"""The ledger: a handle on a budget that is charged before noise is drawn."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from privasso._text import escaped
from privasso.accounting import GaussianLoss
from privasso.ledger._book import Book, Entry, summary
from privasso.ledger._store import File, Memory, Store
from privasso.privacy import Guarantee, rounded_up


class Planned(Protocol):
    """A fit that was planned and states what it would guarantee."""

    @property
    def guarantee(self) -> Guarantee:
        """The statement."""
        ...


#: What is said of an entry that is not a release of its own.
_STATUS = {"charged": "", "reserved": " (reserved)", "used": " (as reserved)"}


class Ledger:
    """A privacy budget (ε, δ) that all fits of the same data share.

    A fit with a ledger is entered before its noise is drawn, and one that would exceed the budget
    is refused. All fits together keep the budget however their settings are chosen, also after
    looking at the results of earlier ones; see `accounting.within_budget`. Fits that are declared
    beforehand with `reserve` are composed exactly and cost less. Entries are never removed.

    ``Ledger(epsilon, delta)`` lives in memory, for one process. `create` and `open` keep it in a
    file that any number of processes may charge at the same time. Copies, and so scikit-learn's
    ``clone``, are the same ledger.

    Parameters
    ----------
    epsilon, delta : float
        The budget for all releases together.
    data : str
        What the budget is for, in words.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> X, y = np.random.default_rng(0).random((500, 3)), np.linspace(0, 1, 500)
    >>> ledger = pv.Ledger(epsilon=2.0, delta=1e-6)
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> for lam in (10.0, 20.0):
    ...     _ = pv.PrivateLasso(lam, privacy, ledger=ledger).fit(X, y)
    >>> round(ledger.spent(), 3), round(ledger.remaining, 3)
    (1.612, 0.899)
    >>> pv.PrivateLasso(30.0, pv.LabelDP(1.5, 1e-6, y_bounds=(0, 1)), ledger=ledger).fit(X, y)
    Traceback (most recent call last):
    ...
    privasso.ledger._book.BudgetError: a release with ε = 1.5 does not fit into the budget of \
ε = 2, δ = 1e-06: ε = 1.612 is spent by 2 releases together, whose settings may have been chosen \
as you went, and at δ = 1e-06 a further one may have ε up to 0.915; nothing was drawn
    """

    _store: Store

    def __init__(self, epsilon: float, delta: float, data: str = "") -> None:
        self._store = Memory(_new(epsilon, delta, data))

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], epsilon: float, delta: float, data: str = ""
    ) -> Ledger:
        """Make a new ledger in a file; one that exists is not overwritten."""
        store = File(Path(path))
        store.create(_new(epsilon, delta, data))
        return cls._on(store)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open the ledger in a file; one that was changed by hand raises `DocumentError`."""
        store = File(Path(path))
        store.read()
        return cls._on(store)

    @classmethod
    def _on(cls, store: Store) -> Ledger:
        ledger = cls.__new__(cls)
        ledger._store = store
        return ledger

    @property
    def path(self) -> Path | None:
        """The file, or None for a ledger in memory."""
        return self._store.path

    @property
    def book(self) -> Book:
        """Budget and entries as they are now."""
        return self._store.read()

    @property
    def epsilon(self) -> float:
        """ε of the budget."""
        return self.book.epsilon

    @property
    def delta(self) -> float:
        """δ of the budget."""
        return self.book.delta

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was charged, in order."""
        return self.book.entries

    def spent(self, delta: float | None = None) -> float:
        """Return the ε of the smallest budget that would have had room for everything so far.

        It is for the δ of the budget, or another.
        """
        return self.book.spent(delta)

    @property
    def remaining(self) -> float:
        """The largest ε that one further fit may have at the δ of the budget.

        It is more than the difference to what was spent, because losses of several releases add
        up to less than their sum.
        """
        return self.book.left()

    def charge(self, guarantee: Guarantee, what: str = "a release") -> Entry:
        """Enter a release that is about to be made, or refuse it with `BudgetError`.

        When this returns, a ledger in a file is on the disk. Call it before noise is drawn.

        Parameters
        ----------
        guarantee : Guarantee
            What will be stated for the release, of a formal kind.
        what : str
            What it is, in words that do not depend on the labels.
        """
        entry = _entry(guarantee, what)
        self._store.update(lambda book: book.charged(entry))
        return entry

    def reserve(self, fits: Iterable[Guarantee | Planned], what: str = "a fit") -> None:
        """Declare fits beforehand: they are entered together, and composed exactly.

        A later fit with exactly the same loss uses the reservation, in any order, and costs nothing
        more. What is not used stays spent. This must be done before the first release.

        Parameters
        ----------
        fits : iterable
            Guarantees, or plans of fits, which have a guarantee.
        what : str
            What they are, in words that do not depend on the labels.

        Examples
        --------
        >>> import numpy as np, privasso as pv
        >>> from privasso.fit import FitOptions, plan_for
        >>> X, y = np.random.default_rng(0).random((500, 3)), np.linspace(0, 1, 500)
        >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
        >>> ledger = pv.Ledger(epsilon=2.0, delta=1e-6)
        >>> ledger.reserve([plan_for(X, FitOptions(privacy))] * 2)
        >>> for lam in (10.0, 20.0):
        ...     _ = pv.PrivateLasso(lam, privacy, ledger=ledger).fit(X, y)
        >>> round(ledger.spent(), 3)
        1.495
        """
        entries = [
            _entry(one if isinstance(one, Guarantee) else one.guarantee, what) for one in fits
        ]
        self._store.update(lambda book: book.reserved(entries))

    def after(self, guarantee: Guarantee) -> Book:
        """Return the book as it would be with this release; charges nothing."""
        return self.book.charged(_entry(guarantee, "a release"))

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self.path is None:
            raise TypeError(
                "a ledger in memory cannot be pickled or sent to another process, where it would "
                "count on its own; use Ledger.create(path, epsilon, delta)"
            )
        return Ledger.open, (self.path,)

    def __repr__(self) -> str:
        book = self.book
        where = "" if self.path is None else f", path={str(self.path)!r}"
        return f"Ledger(epsilon={book.epsilon!r}, delta={book.delta!r}{where})"

    def __str__(self) -> str:
        book = self.book
        about = f" for {escaped(book.data)}" if book.data else ""
        lines = [f"Budget{about}: ε = {rounded_up(book.epsilon)}, δ = {rounded_up(book.delta)}"]
        for k, entry in enumerate(book.entries, start=1):
            stated, loss = entry.guarantee, entry.guarantee.loss
            shown = f"ε = {rounded_up(stated['epsilon'])}, δ = {rounded_up(stated['delta'])}"
            if isinstance(loss, GaussianLoss):
                shown += f", μ = {rounded_up(loss.mu, 4)}"
            when, what = escaped(entry.time), f"{escaped(entry.what)}{_STATUS[entry.status]}"
            lines.append(f"{k:>3}  {when}  {stated.kind} {shown}: {what}")
        lines.append(summary(book))
        return "\n".join(lines)


def _new(epsilon: float, delta: float, data: str) -> Book:
    return Book(epsilon, delta, data, secrets.token_hex(16))


def _entry(guarantee: Guarantee, what: str) -> Entry:
    return Entry(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), str(what), guarantee)
