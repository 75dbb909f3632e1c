"""`privasso` with a mistake, which the environment variable FAULT names."""

import os

import numpy as np

import privasso.artefact._model_file as model_file
import privasso.fit._plan as plan
import privasso.privacy._exact_release as exact_release
import privasso.queries._objective_noise as objective_noise
from privasso.cli import main
from privasso.privacy._record_map import RecordMap


def noise_halved():
    true = exact_release.rounded_gaussian
    exact_release.rounded_gaussian = lambda *given: true(*given) // 2


def rows_unclipped():
    """Rows are neither clipped to the bounds nor shrunk."""

    def rows(self, X, y, start, stop):
        X, y = X[start:stop], y[start:stop]
        full = ~np.isnan(y)
        whole = np.column_stack([(np.asarray(X) - self.origin) / self.half, np.ones(len(X))])
        labels = (np.nan_to_num(y) - self.middle) / self.width
        return whole * full[:, None], labels * full

    RecordMap.__call__ = rows


def seed_reused():
    true = objective_noise.rounded_gaussian

    def drawn(deviation, size, bits):
        rng = np.random.default_rng(7)
        return true(deviation, size, lambda n: np.frombuffer(rng.bytes(8 * n), dtype=np.uint64))

    objective_noise.rounded_gaussian = drawn


class _Unclipped:
    """numpy, but labels keep their values outside of the bounds."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def clip(values, low, high):
        del low, high
        return values


def wrong_bounds():
    """Labels are outside of the bounds that the noise is made for."""
    exact_release.np = _Unclipped()  # pyright: ignore


def intercept_without_noise():
    changed(lambda document, labels: {**document, "intercept": float(np.mean(labels))})


def label_in_an_attribute():
    """A label stands in a field that nobody looks at."""

    def change(document, labels):
        guarantee = document["guarantee"]
        told = [*guarantee["released"], f"something about {labels[3]!r}"]
        return {**document, "guarantee": {**guarantee, "released": told}}

    changed(change)


def changed(change):
    """Let the labels change the document of the model before it is written."""
    kept = []
    to_document, release_labels = model_file.to_document, plan.release_labels

    def releases(rows, y, *rest, **options):
        kept[:] = np.asarray(y, dtype=float).tolist()
        return release_labels(rows, y, *rest, **options)

    plan.release_labels = releases
    model_file.to_document = lambda model: (
        change(to_document(model), kept) if kept else to_document(model)
    )


if __name__ == "__main__":
    if os.environ.get("FAULT"):
        globals()[os.environ["FAULT"]]()
    raise SystemExit(main())
