"""What may be published of a fitted object: a model, an estimator, or a pipeline with a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from privasso.encoding import Encoding
from privasso.fit import ReleasedModel, encoded_guarantee
from privasso.privacy import Privacy


class Publishable(Protocol):
    """A fitted object that returns what may be published of it, such as `PrivateLasso`."""

    def released_model(self) -> ReleasedModel:
        """Return what may be published."""
        ...


class Pipeline(Protocol):
    """A scikit-learn pipeline."""

    steps: list[Any]


def published(fitted: Publishable | Pipeline | ReleasedModel) -> ReleasedModel:
    """Return what may be published of a fitted object; anything else is refused."""
    if isinstance(fitted, ReleasedModel):
        return fitted
    if hasattr(fitted, "released_model"):
        return fitted.released_model()  # pyright: ignore[reportAttributeAccessIssue]
    if hasattr(fitted, "steps"):
        return _of_steps([step for _, step in fitted.steps])  # pyright: ignore
    raise ValueError(
        "only a fitted PrivateLasso, a pipeline of TableEncoder and PrivateLasso, or a "
        f"ReleasedModel can be saved, not an object of type {type(fitted).__name__}"
    )


def _of_steps(steps: list[Any]) -> ReleasedModel:
    match [step for step in steps if step is not None and step != "passthrough"]:
        case [last] if hasattr(last, "released_model"):
            return last.released_model()
        case [first, last] if hasattr(last, "released_model") and hasattr(first, "encoding_"):
            declared = getattr(first, "dictionary", None) is not None
            return with_encoding(last.released_model(), first.encoding_, last.privacy, declared)
    raise ValueError(
        "of pipelines, only a fitted TableEncoder followed by a PrivateLasso can be saved, because "
        "a file holds no code of other transformers; save the step of the PrivateLasso alone, and "
        "apply the transformers to a table before the model"
    )


def with_encoding(
    model: ReleasedModel, encoding: Encoding, privacy: Privacy, declared: bool = False
) -> ReleasedModel:
    """Return the model with the encoding of its columns, and a statement that covers it.

    `declared` tells that the encoding comes from a data dictionary.
    """
    if len(encoding.names) != model.n_features:
        raise ValueError(
            f"the encoding gives {len(encoding.names)} columns and the model has "
            f"{model.n_features}; fit the pipeline again"
        )
    return replace(
        model,
        feature_names=encoding.names,
        encoding=None if encoding.plain else encoding,
        guarantee=encoded_guarantee(model.guarantee, privacy, encoding, declared=declared),
    )
