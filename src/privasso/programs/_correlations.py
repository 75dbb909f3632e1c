"""What noisy sums of products of columns say about the exact ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

#: The least deviation that is supposed of correlations beforehand: sampling alone makes as much of
#: it in 400 rows.
_LEAST = 0.05
#: What the pairs show of it is raised by so many deviations of what noise makes of that: a few
#: columns that are nearly the same are not like the others.
_RAISED = 2.0


@dataclass(frozen=True, eq=False)
class NoisyProducts:
    """Sums of products of columns, and the deviations of the noise in them.

    Beforehand a correlation is normal around zero. Its deviation τ is the one that the noisy sums
    of all pairs of columns show, raised by deviations of what noise makes of it, so that pairs
    which noise hides borrow from the others. Of squares of columns nothing is believed beforehand.

    Examples
    --------
    >>> found = NoisyProducts(np.array([[100.0, 1.0], [1.0, 100.0]]), np.full((2, 2), 50.0))
    >>> found.mean().round(2).tolist()
    [[100.0, 0.65], [0.65, 100.0]]
    """

    sums: np.ndarray = field(repr=False)
    noise: np.ndarray = field(repr=False)

    @cached_property
    def _kept(self) -> np.ndarray:
        """What of a noisy sum is kept, τ²/(τ² + σ²)."""
        roots = np.sqrt(np.maximum(np.diag(self.sums), np.diag(self.noise)))
        noises = (self.noise / np.outer(roots, roots)) ** 2
        above = np.triu_indices(len(roots), 1)
        if not above[0].size:
            return np.ones(noises.shape)
        squares = (self.sums / np.outer(roots, roots))[above] ** 2
        doubt = _RAISED * np.sqrt(2.0 / squares.size) * np.mean(noises[above])
        usual = max(float(np.mean(squares - noises[above]) + doubt), _LEAST**2)
        found = usual / (usual + noises)
        np.fill_diagonal(found, 1.0)
        return found

    def mean(self) -> np.ndarray:
        """What is expected of the exact sums."""
        return self._kept * self.sums

    def variances(self) -> np.ndarray:
        """Those of what is left open of the exact sums."""
        return self._kept * self.noise**2
