"""Everything that a fit will write, written once in vain before any noise is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from privasso.encoding import Encoding
    from privasso.fit import Plan
    from privasso.noise import Noise
    from privasso.privacy import Guarantee

#: A number that takes as many characters as a number can.
_LONGEST = -1.2345678901234567e-300


def rehearse(plan: Plan, encoding: Encoding, target: str) -> None:
    """Refuse a fit whose model or release could not be written or read back.

    Nothing of this depends on the labels, so that it costs nothing to know.
    """
    from privasso.artefact import release_text

    released = plan.rehearsal(_LONGEST, feature_names=encoding.names, target=target)
    kept_encoding = None if encoding.plain else encoding
    released = replace(released, encoding=kept_encoding)
    if released.kept is not None:
        release_text(released.kept)
    rehearse_model(plan.guarantee, plan.noise, encoding)


def rehearse_model(guarantee: Guarantee, noise: Noise | None, encoding: Encoding) -> None:
    """Refuse a model that could not be written or read back."""
    from privasso.artefact import model_text
    from privasso.fit import ReleasedModel

    model_text(
        ReleasedModel(
            coef=np.full(len(encoding.names), _LONGEST),
            intercept=_LONGEST,
            lam=-_LONGEST,
            guarantee=guarantee,
            noise=noise,
            feature_names=encoding.names,
            encoding=None if encoding.plain else encoding,
        )
    )
