"""Everything that a fit will write, written once in vain before any noise is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privasso.cli._fit_rescue import RELEASE, RESULT
from privasso.cli._outputs import check_room

if TYPE_CHECKING:
    from privasso.cli._fit_settings import FitSettings
    from privasso.encoding import Encoding
    from privasso.fit import LabelPlan
    from privasso.noise import Noise
    from privasso.privacy import Guarantee

#: A number that takes as many characters as a number can.
_LONGEST = -1.2345678901234567e-300
#: Bytes of a report, of which most are pictures, and of a number in a path with as many points.
_REPORT, _NUMBER, _POINTS = 1_000_000, 20, 25


def rehearse(settings: FitSettings, plan: LabelPlan, encoding: Encoding, target: str) -> None:
    """Refuse a fit whose model or release could not be written or read back.

    Nothing of this depends on the labels, so that it costs nothing to know.
    """
    from privasso.artefact import release_text

    released = plan.rehearsal(_LONGEST, feature_names=encoding.names, target=target)
    kept_encoding = None if encoding.plain else encoding
    released = replace(released, encoding=kept_encoding)
    kept = "" if released.kept is None else release_text(released.kept)
    rehearse_model(settings, plan.guarantee, plan.noise, encoding, kept)


def rehearse_model(
    settings: FitSettings,
    guarantee: Guarantee,
    noise: Noise | None,
    encoding: Encoding,
    kept: str | None = None,
) -> None:
    """Refuse a model that could not be written or read back, or has no room on the disk.

    `kept` is what the model is solved from; None if the model itself is all that is released.
    """
    from privasso.artefact import model_text
    from privasso.fit import ReleasedModel

    n_features = len(encoding.names)
    text = model_text(
        ReleasedModel(
            coef=np.full(n_features, _LONGEST),
            intercept=_LONGEST,
            lam=-_LONGEST,
            guarantee=guarantee,
            noise=noise,
            feature_names=encoding.names,
            encoding=None if encoding.plain else encoding,
        )
    )
    assert settings.out is not None
    model = len(text.encode())
    ending, rescued = (RESULT, model) if kept is None else (RELEASE, len(kept.encode()))
    sizes = {settings.out: model, settings.out.with_suffix(ending): rescued}
    if settings.keep_release is not None:
        sizes[settings.keep_release] = rescued
    if settings.report is not None:
        sizes[settings.report] = _REPORT
    if settings.path_out is not None:
        points = len(settings.lams() or range(_POINTS))
        sizes[settings.path_out] = _NUMBER * points * (n_features + 3)
    check_room(sizes)
