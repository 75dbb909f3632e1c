"""The release artefact: a fitted model and its privacy statement as one JSON file."""

from privasso.artefact._file import design_record, load, model_text, save
from privasso.artefact._kept import KeptRelease, kept_text, load_kept
from privasso.artefact._model import ReleasedModel
from privasso.artefact._schema import ArtefactError

__all__ = [
    "ArtefactError",
    "KeptRelease",
    "ReleasedModel",
    "design_record",
    "kept_text",
    "load",
    "load_kept",
    "model_text",
    "save",
]
