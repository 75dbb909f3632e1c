"""A perturbed fit of the columns that a screening has chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso.privacy._perturbed_objective import ObjectiveNoise
from privasso.privacy._record_rows import PerturbedObjective
from privasso.privacy._rounded_gaussian import BitSource
from privasso.privacy._screening import Screening


@dataclass(frozen=True, eq=False)
class ScreenedObjective:
    """Columns are chosen with noise, and those that were chosen are fitted with noise.

    Attributes
    ----------
    screening : Screening
        How columns are chosen.
    table : PerturbedObjective
        Noise and scaling of the fit, for as many columns as are chosen.
    """

    screening: Screening
    table: PerturbedObjective

    @property
    def lam(self) -> float:
        """The λ that is used unless another one is given, in units of the labels."""
        return self.table.lam

    @property
    def noise(self) -> ObjectiveNoise:
        """Of the fit."""
        return self.table.noise

    def release(
        self, X: Any, y: np.ndarray, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Run both mechanisms; return coefficients, intercept and which columns were chosen.

        All other coefficients are zero. Of a sparse matrix only the chosen columns are filled.
        """
        chosen = self.screening.choose(X, y, bits)
        few = X[:, chosen]
        few = few.toarray() if sp.issparse(few) else np.asarray(few)
        table = replace(self.table, bounds=self.screening.bounds[chosen])
        some, intercept = table.release(few, y, lam, bits)
        coef = np.zeros(X.shape[1])
        coef[chosen] = some
        return coef, intercept, chosen
