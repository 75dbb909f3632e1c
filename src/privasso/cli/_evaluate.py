"""`privasso evaluate`: how well a published model predicts private rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privasso._text import escaped, json_text
from privasso._types import Matrix
from privasso.cli._fit import FitSettings
from privasso.cli._options import (
    DATA,
    AsJson,
    Force,
    argument,
    check_ending,
    named,
    option,
    tell,
)

if TYPE_CHECKING:
    from privasso.evaluation import Evaluation
    from privasso.fit import ReleasedModel


@dataclass(frozen=True)
class EvaluateSettings:
    """The options of `privasso evaluate` beside those of a fit."""

    model: Path = argument("Model that `privasso fit` wrote.")
    data: Path = argument(DATA)
    classes: str | None = option(
        "The two labels, the negative one first.  [default: those of the model]",
        metavar="NEGATIVE,POSITIVE",
    )
    metrics: str | None = option(
        "r2, mae, mse, rmse, calibration, prediction-interval; of two classes auc, log-loss, "
        "accuracy, calibration.  [default: r2,mae; auc,log-loss]",
        metavar="NAMES",
    )
    level: float = option("How often an interval holds the metric.", 0.95)
    coverage: float = option("Part of new labels within the prediction interval.", 0.9)
    out: Path | None = option("Where the numbers go, a JSON file.")
    force: Force = False

    def completed(self, given: FitSettings, model: ReleasedModel) -> FitSettings:
        """The options of a fit that reads the same columns."""
        classes, y_bounds = self.classes, given.y_bounds
        if model.classes is None and classes is not None:
            raise ValueError(
                f"--classes is for a model of two classes, and {escaped(self.model)} is linear"
            )
        if model.classes is not None and model.classes != (0, 1) and classes is None:
            names = (str(name).replace('"', '""') for name in model.classes)
            classes = '"{}","{}"'.format(*names)
        if y_bounds is None:  # as they were at the fit
            y_bounds = None if model.classes else model.guarantee.label_bounds
        inputs = model.feature_names if model.encoding is None else model.encoding.inputs
        return replace(
            given,
            data=self.data,
            classes=classes,
            y_bounds=y_bounds,
            features=None if inputs is None else list(inputs),
            binary=model.classes is not None,
            dry_run=True,
        )


def evaluate(
    given: Annotated[
        FitSettings,
        "target label_dp record_dp epsilon delta y_bounds bounds neighbours ledger seed labels "
        "row_names",
    ],
    settings: EvaluateSettings,
    as_json: AsJson = False,
) -> None:
    """Tell how well a published model predicts rows that are private, at a budget of its own.

    The rows should not be those of the fit, on which a model looks better than it is. What is
    printed may be published with the statement below it. Bounds of the labels are those of the fit
    unless they are given.

    `privasso evaluate model.json later.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --metrics r2,mae,prediction-interval`

    Records are private under the data dictionary of the fit:

    `privasso evaluate model.json later.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --bounds bounds.csv --ledger budget.json`
    """
    from privasso.artefact import load
    from privasso.cli._fit_check import check
    from privasso.cli._fit_read import classes_words
    from privasso.cli._outputs import EVALUATION, Outputs, files_read

    check_ending("--out", settings.out, ".json")
    reads = files_read(settings.model, settings.data, given.ledger, given.labels, given.bounds)
    with Outputs(reads=reads, force=settings.force) as outputs:
        outputs.claim("--out", settings.out, EVALUATION)
        with named(settings.model):
            released = load(settings.model).needed()
        options = settings.completed(given, released)
        check(options)
        found = _found(settings, options, released, quiet=as_json)
        record = {"format": "privasso-evaluation", **found.to_dict()}
        outputs.write({"--out": json_text(record)} if settings.out is not None else {})
    tell(record if as_json else f"{classes_words(options)}{found}")


def _found(
    settings: EvaluateSettings, options: FitSettings, released: ReleasedModel, *, quiet: bool
) -> Evaluation:
    """Read the rows, and ask."""
    from privasso.blocks import RowBlocks
    from privasso.cli._fit_check import privacy_from
    from privasso.cli._fit_plan import about_file
    from privasso.cli._fit_read import opened
    from privasso.cli._ledger import opened as ledger_at
    from privasso.cli._progress import working
    from privasso.evaluation import Request, evaluated

    names = None if settings.metrics is None else settings.metrics.split(",")
    metrics = names and [one.strip() for one in names]
    ledger = None if options.ledger is None else ledger_at(options.ledger)
    asked = Request(
        privacy_from(options), metrics, ledger, options.seed, settings.level, settings.coverage
    )
    if options.label_dp:
        with working("Reading", quiet=quiet):
            X, y = _public(options, released)
        plain = replace(
            released,
            feature_names=None,
            encoding=None,
            classes=None if released.classes is None else (0, 1),
        )
        return evaluated(plain, X, y, asked)
    with opened(options, quiet=quiet) as table:
        rows = table.X
        if not isinstance(rows, RowBlocks):
            assert table.labels is not None
            rows = RowBlocks.of_arrays(rows, table.labels, names=table.names)
        return evaluated(released, rows, None, replace(asked, prepared=about_file(options)))


def _public(options: FitSettings, released: ReleasedModel) -> tuple[Matrix, np.ndarray]:
    """Covariates by the encoding of the model, and labels."""
    from privasso.cli._fit_read import labels_in, table_of, target_of
    from privasso.cli._predict import matrix_of

    table, target = table_of(options), target_of(options)
    table.require([target])
    y = labels_in(options, table, target)
    if released.n_features == 0:
        return np.zeros((table.n_rows, 0)), y
    return matrix_of(released, table, "error"), y
