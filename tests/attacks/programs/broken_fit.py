"""`privasso` with a mistake, which the environment variable FAULT names."""

import os

import numpy as np

import privasso.artefact._model_file as model_file
import privasso.fit._plan as plan
import privasso.programs._label_programs as product_sum
import privasso.queries._objective_noise as objective_noise
import privasso.queries._rounded_gaussian as integer_noise
from privasso.cli import main
from privasso.programs._records import RecordMap


def noise_halved():
    true = integer_noise.rounded_gaussian
    integer_noise.rounded_gaussian = lambda *given: true(*given) // 2


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


def wrong_bounds():
    """Labels are outside of the bounds that the noise is made for."""
    product_sum.scaled_labels = lambda y, bounds: (y - np.mean(bounds)) / np.ptp(bounds)


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
    to_document, answering = model_file.to_document, plan.Answering

    def answers(rows, *rest):
        kept[:] = rows.labels.tolist()
        return answering(rows, *rest)

    plan.Answering = answers  # pyright: ignore[reportAttributeAccessIssue]
    model_file.to_document = lambda model: (
        change(to_document(model), kept) if kept else to_document(model)
    )


if __name__ == "__main__":
    if os.environ.get("FAULT"):
        globals()[os.environ["FAULT"]]()
    raise SystemExit(main())
