"""The best choice of columns for a table that a model describes."""

from __future__ import annotations

from dataclasses import replace

from privasso.design import ScreenedDesign, Sparse
from privasso.privacy._screen import Screen, check_screen
from privasso.privacy._screening_forecast import ScreeningPrior
from privasso.privacy._screening_settings import direct_r2, usual_screening
from privasso.queries import Neighbours

#: Most of the variance of labels that may be explained in a prediction.
_MOST = 0.999


def best_screening(
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    table: Sparse,
    screen: Screen,
    label_width: float | None,
) -> ScreenedDesign:
    """Return the numbers with the largest predicted R² for this table.

    Where the labels have bounds, their deviation relative to these follows from the model.
    """
    check_screen(screen)
    prior = ScreeningPrior(n_true=table.n_true, explained=min(table.explained, _MOST))
    if label_width is not None:
        prior = replace(prior, label_deviation=table.label_sd / label_width)
    size = table.n_rows, table.n_columns
    count = None if screen == "auto" else int(screen)
    # A number that is given, or the best one, even where a fit of all columns is better.
    settings = usual_screening(
        epsilon, delta, *size, count=count, prior=prior, neighbours=neighbours, always=True
    )
    assert settings is not None
    return ScreenedDesign(
        "labels" if neighbours.unit == "label" else "records",
        epsilon,
        delta,
        settings.columns,
        settings.further + 1,
        settings.share,
        settings.found(prior, *size),
        max(settings.r2(prior, *size), 0.0),
        max(direct_r2(prior, epsilon, delta, *size, neighbours), 0.0),
        table,
    )
