"""The release artefact: a fitted model and its privacy statement as one JSON file."""

from privasso.artefact._file import load, save
from privasso.artefact._model import ReleasedModel
from privasso.artefact._schema import ArtefactError

__all__ = ["ArtefactError", "ReleasedModel", "load", "save"]
