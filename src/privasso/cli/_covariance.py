"""The option --covariance, which several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.model import Model

COVARIANCE_HELP = (
    "Correlated columns: ar:R, blocks:SIZE,R, factors:NUMBER,SHARE, power:P or levels:RATIO,PART "
    "(random eigenvectors), or a data file of public covariates."
)


def with_covariance(model: Model, text: str, scales_given: bool) -> Model:
    """The model with the covariance that the option describes."""
    from dataclasses import replace

    from privasso.model import COVARIANCE_NAMES, GivenCovariance, covariance_from_name

    if text.partition(":")[0].lower() in COVARIANCE_NAMES:
        return replace(model, covariance=covariance_from_name("--covariance", text))
    if not Path(text).exists():
        raise ValueError(
            f"--covariance {text!r} is neither a file nor one of {', '.join(COVARIANCE_NAMES)}"
        )
    if scales_given:
        raise ValueError("a file of covariates brings its own scales; leave --scales out")
    from privasso.tables import open_table

    table = open_table(text)
    C = GivenCovariance.of(table.matrix(table.names))
    return replace(model, scales=None, covariance=C)
