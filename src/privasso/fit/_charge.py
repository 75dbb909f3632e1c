"""What a fit costs: charged to a ledger, or remembered; whatever ends it in between says so."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import TypeVar

import numpy as np

from privasso._version import __version__
from privasso.accounting import Loss, spent_epsilon
from privasso.blocks import DataChangedError, WorkersLostError
from privasso.fit._outcome import AfterReleaseError, Outcome
from privasso.ledger import Ledger
from privasso.privacy import Guarantee, Privacy, rounded_up
from privasso.queries import BitSource, Neighbours

#: Packages of scikit-learn that fit an estimator many times on parts of the same labels.
_REPEATERS = {
    "sklearn.model_selection": "cross-validation or a search",
    "sklearn.feature_selection": "feature selection",
    "sklearn.ensemble": "an ensemble",
}
#: With 5 folds, 4 candidates and a refit there are 21 fits, and a label enters 4·4 + 1 of them.
_FITS, _ENTERS = 21, 17

#: Modules whose lines a warning does not point to.
_INNER = ("privasso.", "sklearn.", "joblib.")

_ADVICE = (
    "A Ledger keeps count of several fits. Where a fit has a release_ or statistics_, lam='auto', "
    "refit and path give models at any λ from it at no further cost"
)

#: Labels are recognised by a hash under a key that only this process knows, so that nothing that
#: outlives it tells whether a guess at the labels is right.
_KEY = os.urandom(32)
_USES: dict[bytes, list[tuple[Neighbours | None, Loss]]] = {}


class PrivacyWarning(UserWarning):
    """What is being done is allowed, but costs or protects other than it may seem.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np, privasso as pv
    >>> est = pv.PrivateLasso(privacy=pv.LabelDP(1.0, 1e-6, y_bounds=(0.0, 1.0)))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = est.fit(np.eye(9), np.ones(9)), est.fit(np.eye(9), np.ones(9))
    >>> any(issubclass(each.category, pv.PrivacyWarning) for each in caught)  # fitted twice
    True
    """


def note_use(labels: np.ndarray | bytes, guarantee: Guarantee) -> None:
    """Count a release of these labels in this process, and warn if it is not the first.

    Inside scikit-learn's model selection, feature selection and ensembles, which fit parts of the
    labels many times, every release warns.
    """
    loss = guarantee.loss
    if loss is None:
        return
    if not isinstance(labels, bytes):
        labels = np.ascontiguousarray(labels, dtype=np.float64).tobytes()
    digest = hashlib.blake2b(labels, key=_KEY, digest_size=16).digest()
    uses = _USES.setdefault(digest, [])
    uses.append((guarantee.neighbours, loss))
    if not _shown():
        return
    delta = guarantee["delta"]
    at = f"at δ = {rounded_up(delta)}, not ε = {rounded_up(guarantee['epsilon'])}"
    repeater = _repeater()
    if repeater is not None:
        cost = rounded_up(spent_epsilon(delta, [loss], [loss] * (_ENTERS - 1)), 4)
        warn_user(
            f"this fit is one of several in {repeater}, and each of them costs: {_FITS} fits for 4 "
            f"candidates in 5 folds and a refit, of which each label enters {_ENTERS}, are "
            f"together ε = {cost} {at}; and scores come from the labels without noise. {_ADVICE}"
        )
    elif len(uses) > 1:
        times = f"the same labels have been released {len(uses)} times in this process"
        if any(neighbours != guarantee.neighbours for neighbours, _ in uses):
            warn_user(
                f"{times}, under guarantees for different neighbours. Together they cost more than "
                f"each says; only for the same neighbours can a total be stated. {_ADVICE}"
            )
            return
        first, *others = (loss for _, loss in uses)
        cost = rounded_up(spent_epsilon(delta, [first], others), 4)
        warn_user(f"{times}, which together is ε = {cost} {at}. {_ADVICE}")


def _shown() -> bool:
    """Whether warnings of privacy are shown or raised; what they say takes time to compute."""
    for action, message, category, module, _ in warnings.filters:
        if message is None and module is None and issubclass(PrivacyWarning, category):
            return action != "ignore"
    return True


def warn_user(message: str, category: type[UserWarning] = PrivacyWarning) -> None:
    """Warn at the line of the caller outside of privasso and scikit-learn.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("these labels were used before")
    >>> caught[0].category.__name__, str(caught[0].message)
    ('PrivacyWarning', 'these labels were used before')
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _module(frame).startswith(_INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _repeater() -> str | None:
    """What in scikit-learn is fitting again and again, if anything is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for package, name in _REPEATERS.items():
            if _module(frame).startswith(package):
                return name
        frame = frame.f_back
    return None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


T = TypeVar("T")

_WAITS = (
    "\nprivasso: the budget of this fit is spent, so it ends when its result is kept; once more "
    "ends it now, and the result is lost\n"
)
_LOST = (
    "Nothing of this fit is published, but its noise may have been drawn, so count its budget as "
    "spent."
)


class Charge:
    """The charge of one fit, as a ``with`` block around the mechanism.

    An error after the charge gets a note that says what was spent. With `keep` an interruption
    (Ctrl-C) after the charge waits until the result is kept; a second one does not.

    Parameters
    ----------
    privacy, guarantee, ledger
        Of the fit.
    what : str
        What is fitted, in words.
    charged : bool
        Whether the budget was charged already for a fit that this one is a part of.
    keep : callable, optional
        Called with the result, and with what was spent in words, before anything else can happen.
    """

    def __init__(
        self,
        privacy: Privacy,
        guarantee: Guarantee,
        ledger: Ledger | None,
        what: str,
        *,
        charged: bool = False,
        keep: Callable[[Outcome, str], None] | None = None,
    ) -> None:
        self._privacy, self._guarantee, self._ledger, self._what = privacy, guarantee, ledger, what
        self._elsewhere, self._keep = charged, keep
        self._began: str | None = None
        self._made = False
        self._waiting = _Waiting()

    def __enter__(self) -> Charge:
        return self

    def make(self, labels: np.ndarray | bytes) -> None:
        """Charge the ledger, or else remember these labels, once; nothing is drawn before."""
        if self._elsewhere or self._began is not None:
            return
        if self._keep is not None:
            self._waiting.begin()
        self._began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self._ledger is None:
            note_use(labels, self._guarantee)
        else:
            self._ledger.charge(self._guarantee, self._what)
        self._made = True

    def before(self, bits: BitSource, labels: Callable[[], np.ndarray | bytes]) -> BitSource:
        """The same bits, before the first of which the charge is made."""

        def source(n: int) -> np.ndarray:
            if self._began is None and not self._elsewhere:
                self.make(labels())
            return bits(n)

        return source

    def kept(self, result: Outcome) -> Outcome:
        """Keep the result, and return it."""
        if self._keep is not None:
            self._keep(result, self.in_words())
        return result

    def in_words(self) -> str:
        """What is spent, and on what."""
        numbers = dict(self._guarantee.parameters)
        shown = [
            f"{sign} = {rounded_up(numbers[name])}"
            for name, sign in (("epsilon", "ε"), ("delta", "δ"))
            if name in numbers
        ]
        spent = f"Spent: {' and '.join(shown)}, for a " if shown else "It was a "
        path = None if self._ledger is None else self._ledger.path
        return f"{spent}{self._what}{'' if path is None else f', charged to {path}'}."

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        interrupted = self._waiting.end()
        if error is None:
            if interrupted:
                raise KeyboardInterrupt
            return
        if not self._spent():
            return
        lost = _LOST if self._guarantee.formal else self._privacy.after_failure("")
        said = f"{lost} {self.in_words()}"
        if isinstance(error, (DataChangedError, WorkersLostError)):
            raise AfterReleaseError(f"{said} What happened: {str(error).rstrip('.')}.") from None
        error.add_note(said)

    def _spent(self) -> bool:
        """Whether the budget was charged; a ledger knows it if the charge itself was ended."""
        if self._made or self._began is None or self._ledger is None:
            return self._made
        with contextlib.suppress(Exception):
            return any(
                entry.time >= self._began
                and (entry.what, entry.guarantee) == (self._what, self._guarantee)
                for entry in self._ledger.entries
            )
        return True


class _Waiting:
    """Signals that would end the process, which are noted instead; a second one is not."""

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._noted = False

    def begin(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and callable(signal.getsignal(number)):
                self._before[number] = signal.signal(number, self._note)

    def end(self) -> bool:
        """Whether there was a signal."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        return self._noted

    def _note(self, number: int, frame: object) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True
        with contextlib.suppress(OSError):
            os.write(2, _WAITS.encode())


def fit_in_words(shape: tuple[int, int], target: str | None, seeded: bool) -> str:
    """Say what is fitted, for a ledger.

    >>> fit_in_words((10, 2), "price", seeded=True)[:56]
    "fit of 'price' on 10 rows and 2 columns, fixed seed, pri"
    """
    of = "" if target is None else f" of {target!r}"
    seed = ", fixed seed" if seeded else ""
    return f"fit{of} on {shape[0]} rows and {shape[1]} columns{seed}, privasso {__version__}"
