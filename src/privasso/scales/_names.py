"""Scale laws from short texts."""

from __future__ import annotations

from privasso.scales._constant import Constant
from privasso.scales._law import ScaleLaw
from privasso.scales._lognormal import LogNormal
from privasso.scales._uniform import Uniform

_LAWS: dict[str, tuple[type[ScaleLaw], int]] = {
    "uniform": (Uniform, 2),
    "lognormal": (LogNormal, 2),
    "constant": (Constant, 1),
}
#: Words that `law_from_name` knows.
LAW_NAMES = tuple(_LAWS)


def law_from_name(name: str, text: str) -> ScaleLaw:
    """Return the law that a text such as ``uniform`` or ``lognormal:0,0.5`` stands for.

    `name`: what the caller calls the argument; it opens every error message. `text`:
    uniform[:LOW,HIGH], lognormal[:MU,SIGMA] or constant[:VALUE].
    """
    word, _, rest = text.partition(":")
    if word.lower() not in _LAWS:
        raise ValueError(f"{name} {text!r} is none of {', '.join(LAW_NAMES)}")
    law, count = _LAWS[word.lower()]
    return law(*_numbers(name, text, rest, count)) if rest else law()


def _numbers(name: str, text: str, rest: str, count: int) -> list[float]:
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise ValueError(
            f"{name} {text!r} needs {count} number{'s' if count > 1 else ''} after the colon"
        )
    return numbers
