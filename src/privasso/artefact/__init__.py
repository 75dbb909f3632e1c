"""Published models and kept releases as JSON files."""

from privasso._documents import DocumentError
from privasso.artefact._model_file import load, model_text, save
from privasso.artefact._release_file import load_release, release_text, save_release

__all__ = [
    "DocumentError",
    "load",
    "load_release",
    "model_text",
    "release_text",
    "save",
    "save_release",
]
