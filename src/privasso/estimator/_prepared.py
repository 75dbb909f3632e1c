"""What prepared the columns of private records, as far as that can be seen from a fit."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privasso._validation import attempt
from privasso.estimator._table_encoder import TableEncoder, is_learnt


def learnt_from(X: Any) -> list[str]:
    """Names of what learnt from the data before this fit, where that can be seen.

    These are the steps of the scikit-learn pipelines that are being fitted, unless they have
    nothing to learn, and an encoder that returned X itself. What else was done to X is not seen.
    """
    found = ["TableEncoder"] if is_learnt(X) else []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == Pipeline.__module__:
            pipeline = frame.f_locals.get("self")
            if isinstance(pipeline, Pipeline):
                found += [type(step).__name__ for _, step in pipeline.steps[:-1] if _learns(step)]
        frame = frame.f_back
    return list(dict.fromkeys(found))


def _learns(step: Any) -> bool:
    """Whether a step of a pipeline takes something from the data that it is fitted on."""
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return False
    if isinstance(step, TableEncoder):
        return step.dictionary is None
    tags = attempt(lambda: get_tags(step))
    return tags is None or tags.requires_fit
