"""Scale laws on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privasso.scales import ScaleLaw

SCALES_HELP = (
    "Law of the column scales: uniform[:LOW,HIGH], lognormal[:MU,SIGMA], constant[:VALUE], "
    "or a text file with one scale per column."
)


def scale_law(text: str) -> ScaleLaw:
    """Return the law that a word such as ``lognormal:0,0.5`` or a file of scales stands for.

    Examples
    --------
    >>> scale_law("uniform"), scale_law("lognormal:0,1")
    (Uniform(low=0.0, high=1.0), LogNormal(mu=0.0, sigma=1.0))
    """
    from privasso.scales import LAW_NAMES, Empirical, law_from_name

    if text.partition(":")[0].lower() in LAW_NAMES:
        return law_from_name("--scales", text)
    if Path(text).exists():
        from privasso.cli._scales_file import scales_in_order

        return Empirical(scales_in_order(Path(text)))
    raise ValueError(f"--scales {text!r} is neither a file nor one of {', '.join(LAW_NAMES)}")
