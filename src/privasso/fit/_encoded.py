"""What an encoding that was learnt from the covariates means for a privacy statement."""

from __future__ import annotations

from dataclasses import replace

from privasso.encoding import Encoding
from privasso.privacy import Guarantee, Privacy

#: Said of columns that a data dictionary describes.
DECLARED = (
    "the levels and the values for missing entries in the data dictionary were chosen without "
    "looking at the data"
)
_PUBLISHED = (
    "the levels of text columns, and the means that replace missing values, are not sensitive: the "
    "model shows them as they are in the data"
)


def encoded_guarantee(
    guarantee: Guarantee, privacy: Privacy, encoding: Encoding, *, declared: bool = False
) -> Guarantee:
    """Return the statement of a fit whose model shows the encoding.

    Public covariates may be shown, and so may what a data dictionary declares. Otherwise a
    statement without a worst-case claim says that levels and means are published as they are, and a
    formal guarantee, which would be false, is refused.

    Examples
    --------
    >>> import privasso as pv
    >>> from privasso.encoding import LevelCode
    >>> from privasso.privacy import Terms
    >>> privacy, region = pv.OnAverage(0.1), Encoding((LevelCode("region", ("a", "b"), "a"),))
    >>> statement = privacy.guarantee(Terms(fit_intercept=True, seeded=False, n_rows=100))
    >>> encoded_guarantee(statement, privacy, region).assumptions[-1]
    'the levels of text columns, and the means that replace missing values, are not sensitive: the \
model shows them as they are in the data'
    """
    if privacy.public_covariates or (encoding.plain and not declared):
        return guarantee
    if declared:
        return replace(guarantee, assumptions=(*guarantee.assumptions, DECLARED))
    if guarantee.formal:
        raise ValueError(
            "the guarantee covers the covariates, and the levels of text columns and the means "
            "that replace missing values would be published without noise; turn these columns into "
            "numbers by rules that do not depend on the data"
        )
    return replace(guarantee, assumptions=(*guarantee.assumptions, _PUBLISHED))
