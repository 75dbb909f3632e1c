"""On-average KL divergence: how far one replaced record moves the law of the released estimate."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])

KINDS = ("joint", "paper")


def joint(component_wise: Number, V: Number) -> Number:
    """OnAveKL = P (1 + (1+V)²)/2 + V²/(1+V), from the component-wise P and V.

    The two records of a replacement each contribute. For a record a outside the data D,

        KL(D ‖ D∪a) = V − log(1+V) + P (1+V)²/2,
        KL(D∪a ‖ D) = log(1+V) − V/(1+V) + P/2,

    and replacing a by a' costs the second for a plus the first for a'. The component-wise P
    counts the direct shift of each coefficient; (1+V)² is the response of all others, and V alone
    the change of volume, through det(F_SᵀF_S).

    Examples
    --------
    >>> joint(1.0, 0.0)  # without response the two measures agree
    1.0
    >>> joint(1.0, 2.0)
    6.333333333333333
    """
    return component_wise * (1.0 + (1.0 + V) ** 2) / 2.0 + V * (V / (1.0 + V))
