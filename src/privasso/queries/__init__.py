"""Questions about private rows, and the random bits that their answers are made noisy with.

Nothing outside this room draws noise for a formal guarantee.
"""

from privasso.queries._ask import (
    Answering,
    Ask,
    Beside,
    Replaying,
    UndeclaredError,
    declared,
    made_up,
    next_question,
)
from privasso.queries._choice import NoisyChoice, Scores, noisy_largest
from privasso.queries._minimiser import PerturbedMinimiser, exact_minimiser, perturbed_minimiser
from privasso.queries._objective_noise import (
    EPSILON_SHARE,
    ObjectiveNoise,
    UncertifiedError,
    check_budget,
)
from privasso.queries._query import (
    EMPTIED,
    LABEL_REPLACED,
    REPLACED,
    Neighbours,
    Query,
    Relation,
    question_key,
    same_question,
)
from privasso.queries._rounded_gaussian import (
    ROUNDING,
    BitSource,
    bit_source,
    noise_deviation,
    noisy_integers,
    rounded_gaussian,
)
from privasso.queries._shaped_minimiser import shape_factor
from privasso.queries._sum import HALF, Contribution, NoisySum, Summand, summed

__all__ = [
    "EMPTIED",
    "EPSILON_SHARE",
    "HALF",
    "LABEL_REPLACED",
    "REPLACED",
    "ROUNDING",
    "Answering",
    "Ask",
    "Beside",
    "BitSource",
    "Contribution",
    "Neighbours",
    "NoisyChoice",
    "NoisySum",
    "ObjectiveNoise",
    "PerturbedMinimiser",
    "Query",
    "Relation",
    "Replaying",
    "Scores",
    "Summand",
    "UncertifiedError",
    "UndeclaredError",
    "bit_source",
    "check_budget",
    "declared",
    "exact_minimiser",
    "made_up",
    "next_question",
    "noise_deviation",
    "noisy_integers",
    "noisy_largest",
    "perturbed_minimiser",
    "question_key",
    "rounded_gaussian",
    "same_question",
    "shape_factor",
    "summed",
]
