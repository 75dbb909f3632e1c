"""Warnings about labels that are released more than once without a ledger."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from types import FrameType

import numpy as np

from privasso.accounting import Loss, spent_epsilon
from privasso.privacy import Guarantee, rounded_up

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
_USES: dict[bytes, list[Loss]] = {}


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
    losses = _USES.setdefault(digest, [])
    losses.append(loss)
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
    elif len(losses) > 1:
        cost = rounded_up(spent_epsilon(delta, losses[:1], losses[1:]), 4)
        warn_user(
            f"the same labels have been released {len(losses)} times in this process, which "
            f"together is ε = {cost} {at}. {_ADVICE}"
        )


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
