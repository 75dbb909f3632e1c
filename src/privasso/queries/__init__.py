"""Questions about private rows, and the random bits that their answers are made noisy with.

Nothing outside this room draws noise for a formal guarantee.
"""

from privasso.queries._integer_noise import ROUNDING, noise_deviation, noisy_integers
from privasso.queries._largest import noisy_largest
from privasso.queries._query import EMPTIED, REPLACED, Neighbours, Query
from privasso.queries._rounded_gaussian import BitSource, bit_source, rounded_gaussian
from privasso.queries._sum import NoisySum, Summand

__all__ = [
    "EMPTIED",
    "REPLACED",
    "ROUNDING",
    "BitSource",
    "Neighbours",
    "NoisySum",
    "Query",
    "Summand",
    "bit_source",
    "noise_deviation",
    "noisy_integers",
    "noisy_largest",
    "rounded_gaussian",
]
