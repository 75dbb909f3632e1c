"""Questions about private rows, and the random bits that their answers are made noisy with.

Nothing outside this room draws noise for a formal guarantee.
"""

from privasso.queries._integer_noise import ROUNDING, noise_deviation, noisy_integers
from privasso.queries._largest import noisy_largest
from privasso.queries._rounded_gaussian import BitSource, bit_source, rounded_gaussian

__all__ = [
    "ROUNDING",
    "BitSource",
    "bit_source",
    "noise_deviation",
    "noisy_integers",
    "noisy_largest",
    "rounded_gaussian",
]
