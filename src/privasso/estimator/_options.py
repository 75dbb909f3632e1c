"""Checks and translations of the estimator's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from privasso._validation import generator, positive_float
from privasso.mechanism import LabelDP, OnAverage
from privasso.noise import NoiseDesign, PowerLaw, design_from_name

SOLVERS = ("auto", "amp", "cd")


def design_from(noise: NoiseDesign | str, privacy: LabelDP | OnAverage) -> NoiseDesign:
    """Return the noise design of that name; ``"auto"`` is what the guarantee favours.

    Examples
    --------
    >>> design_from("auto", OnAverage(0.1)).gamma, design_from("power:1.5", OnAverage(0.1)).gamma
    (1.0, 1.5)
    """
    if isinstance(noise, NoiseDesign):
        return noise
    if noise == "auto":
        return PowerLaw(1.0, 0.5 if isinstance(privacy, LabelDP) else 1.0)
    if isinstance(noise, str) and noise.partition(":")[0] in ("isotropic", "gram", "power"):
        return design_from_name("noise", noise, 1.0)
    raise ValueError(
        "noise must be a noise design or one of 'auto', 'optimal', 'isotropic', 'gram', "
        f"'power:GAMMA', not {noise!r}"
    )


def regularisation(lam: float | str, privacy: LabelDP | OnAverage) -> float | None:
    """λ as a number, or None where it is to be chosen from the release."""
    if not isinstance(lam, str):
        return positive_float("lam", lam)
    if lam != "auto":
        raise ValueError(f"lam must be a positive number or 'auto', not {lam!r}")
    if not isinstance(privacy, LabelDP):
        raise ValueError(
            "lam='auto' reads the release, which only LabelDP protects; with OnAverage choose lam "
            "beforehand, for instance with state_evolution"
        )
    return None


def solver_name(solver: str) -> str:
    """Refuse a solver that does not work from a release alone."""
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, not {solver!r}")
    return solver


def generator_from(random_state: Any) -> np.random.Generator:
    """Return a generator from what scikit-learn calls a random state; None is OS entropy.

    Examples
    --------
    >>> generator_from(0).random() == np.random.default_rng(0).random()
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return generator(int(random_state.randint(0, 2**31 - 1)))
    return generator(random_state)


def needs_label_dp(estimator: Any, method: str) -> LabelDP:
    """Return the privacy of an estimator that keeps its release; refuse any other."""
    if not isinstance(estimator.privacy, LabelDP):
        raise ValueError(
            f"{method} needs privacy=LabelDP(...): only there is the release covered by the "
            "guarantee, and kept"
        )
    if not hasattr(estimator, "release_"):
        raise NotFittedError(f"call fit before {method}: there is no release yet")
    return estimator.privacy
