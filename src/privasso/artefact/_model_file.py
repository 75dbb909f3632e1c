"""The published model as a file, field by field."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Protocol

import numpy as np

from privasso._documents import DocumentError, Fields, read_json
from privasso._files import write_whole
from privasso._types import Foreign
from privasso.artefact._header import (
    MAX_BYTES,
    bounded_text,
    header,
    opened,
    written_intervals,
)
from privasso.encoding import Encoding
from privasso.fit import Classes, Name, ReleasedModel, encoded_guarantee
from privasso.noise import noise_from_dict, noise_to_dict
from privasso.privacy import Guarantee, Privacy


class Publishable(Protocol):
    """A fitted object that returns what may be published of it, such as `PrivateLasso`."""

    def released_model(self) -> ReleasedModel:
        """Return what may be published."""
        ...


class Pipeline(Protocol):
    """A scikit-learn pipeline."""

    steps: list[tuple[str, Foreign]]


def published(fitted: Publishable | Pipeline | ReleasedModel) -> ReleasedModel:
    """Return what may be published of a fitted object; anything else is refused."""
    if isinstance(fitted, ReleasedModel):
        return fitted
    released, steps = (getattr(fitted, name, None) for name in ("released_model", "steps"))
    if released is not None:
        return released()
    if steps is not None:
        return _of_steps([step for _, step in steps])
    raise ValueError(
        "only a fitted PrivateLasso, a pipeline of TableEncoder and PrivateLasso, or a "
        f"ReleasedModel can be saved, not an object of type {type(fitted).__name__}"
    )


def _of_steps(steps: list[Foreign]) -> ReleasedModel:
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


FORMAT = "privasso-model"


def save(model: Publishable | Pipeline | ReleasedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model as one JSON file.

    The file appears whole or not at all. What it holds is checked by the rules of `load` first. A
    scikit-learn pipeline of `TableEncoder` and `PrivateLasso` is saved with its encoding, so that
    the model predicts from tables; other pipelines are refused.

    Examples
    --------
    >>> import tempfile, numpy as np, privasso as pv
    >>> privacy = pv.LabelDP(epsilon=1.0, delta=1e-6, y_bounds=(0, 1))
    >>> est = pv.PrivateLasso(lam=100.0, privacy=privacy).fit(np.eye(9), np.ones(9))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pv.save(est, f"{folder}/model.json")
    ...     model = pv.load(f"{folder}/model.json")
    >>> bool(np.all(model.predict(np.eye(9)) == est.predict(np.eye(9))))
    True
    """
    write_whole(path, model_text(published(model)))


def model_text(model: ReleasedModel) -> str:
    """Return the artefact as the text of its file, checked by the rules of `load`."""
    document = to_document(model)
    from_document(document)
    return bounded_text(document)


def load(path: str | os.PathLike[str]) -> ReleasedModel:
    """Read a model that `save` or `privasso fit` wrote; any other file raises `DocumentError`.

    Examples
    --------
    >>> import os, tempfile
    >>> import privasso as pv
    >>> est = pv.PrivateLasso(1.0, pv.OnAverage(0.1)).fit(np.eye(9), np.arange(9.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.json")
    ...     pv.save(est, file)
    ...     model = pv.load(file)
    >>> bool((model.coef == est.coef_).all())
    True
    """
    return from_document(read_json(path, most_bytes=MAX_BYTES))


def to_document(model: ReleasedModel) -> dict[str, object]:
    """Plain values for JSON; only non-zero coefficients are listed."""
    support = np.flatnonzero(model.coef)
    classes = {} if model.classes is None else {"classes": list(model.classes)}
    return {
        **header(FORMAT, model, model.n_features),
        "coef": {"index": support.tolist(), "value": model.coef[support].tolist()},
        **classes,
        **written_intervals(model.intervals),
        **({} if model.target is None else {"target": model.target}),
        "intercept": model.intercept,
        "lam": model.lam,
        "denoised": model.denoised,
        "noise": noise_to_dict(model.noise),
        "guarantee": model.guarantee.to_dict(),
    }


def from_document(document: object) -> ReleasedModel:
    """Check every field and build the model."""
    fields, n, known = opened(document, "a model", FORMAT)
    model = ReleasedModel(
        coef=_coefficients(fields.inner("coef"), n),
        intercept=fields.number("intercept"),
        lam=fields.number("lam", above=0.0),
        guarantee=Guarantee.from_dict(fields.take("guarantee")),
        denoised=fields.flag("denoised"),
        noise=noise_from_dict(fields.take("noise")),
        classes=_classes(fields),
        target=fields.text("target") if "target" in fields.names() else None,
        **known,
    )
    fields.end()
    return model


def _classes(fields: Fields) -> tuple[Name, Name] | None:
    """The two classes of a logistic regression; a file of a linear model has no such field."""
    if "classes" not in fields.names():
        return None
    given = fields.take("classes")
    try:
        return Classes.given(given if isinstance(given, list) else ()).names
    except ValueError:
        raise DocumentError("classes must be two different texts or numbers") from None


def _coefficients(fields: Fields, n: int) -> np.ndarray:
    index = fields.take("index")
    if not isinstance(index, list):
        raise DocumentError("the index of coef must be a list of columns")
    values = fields.numbers("value", len(index))
    fields.end()
    coef, previous = np.zeros(n), -1
    for at, x in zip(index, values.tolist(), strict=True):
        if isinstance(at, bool) or not isinstance(at, int) or not previous < at < n:
            raise DocumentError(
                f"the index of coef must hold increasing integers from 0 to {n - 1}"
            )
        coef[at], previous = x, at
    return coef
