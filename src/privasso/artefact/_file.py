"""Writing an artefact whole or not at all, and reading it with suspicion."""

from __future__ import annotations

import json
import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from privasso._documents import read_json
from privasso._files import write_whole
from privasso.artefact._model import ReleasedModel
from privasso.artefact._schema import ArtefactError, from_document, to_document
from privasso.estimator import PrivateLasso
from privasso.noise import NoiseDesign, PowerLaw

#: Bytes beyond which a file is refused unread.
MAX_BYTES = 256 * 1024 * 1024


def save(model: PrivateLasso | ReleasedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model as a release artefact.

    The file appears whole or not at all. What it holds is checked by the rules of `load` first.

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
    write_whole(path, model_text(_released(model)))


def model_text(model: ReleasedModel) -> str:
    """Return the artefact as the text of its file, checked by the rules of `load`."""
    document = to_document(model)
    from_document(document)
    return json_text(document)


def load(path: str | os.PathLike[str]) -> ReleasedModel:
    """Read a release artefact; a file that is not exactly one raises `ArtefactError`."""
    return from_document(read_document(path))


def json_text(document: dict[str, Any]) -> str:
    """One JSON object as text, finite numbers only."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_document(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; one that cannot be trusted raises `ArtefactError`."""
    return read_json(path, most_bytes=MAX_BYTES, error=ArtefactError)


def _released(model: Any) -> ReleasedModel:
    if isinstance(model, ReleasedModel):
        return model
    if not isinstance(model, PrivateLasso):
        raise ValueError(
            "only a fitted PrivateLasso or a ReleasedModel can be saved, "
            f"not an object of type {type(model).__name__}"
        )
    check_is_fitted(model, "coef_")
    from privasso import __version__

    names = getattr(model, "feature_names_in_", None)
    return ReleasedModel(
        coef=model.coef_,
        intercept=float(model.intercept_),
        lam=float(model.lam_),
        guarantee=model.guarantee_,
        design=design_record(model.noise_),
        feature_names=None if names is None else tuple(str(name) for name in names),
        software=__version__,
    )


def design_record(design: NoiseDesign) -> dict[str, Any]:
    """What an artefact says about the noise design."""
    return {
        "name": type(design).__name__,
        "sigma": design.sigma,
        "gamma": design.gamma if isinstance(design, PowerLaw) else None,
    }
