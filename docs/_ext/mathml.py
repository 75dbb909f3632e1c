"""Formulas as MathML in the pages themselves: they show without a network and without scripts."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

_LOG = logging.getLogger(__name__)


def mathml(latex: str, *, block: bool) -> str:
    r"""Return a formula as MathML; a command that stays TeX is a warning, which ends the build.

    >>> mathml(r"\sqrt{x}", block=False)
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow>...</mrow></math>'
    """
    found = convert(_known(latex), display="block" if block else "inline")
    left = re.findall(r"\\[a-zA-Z]+", found)
    if left:
        _LOG.warning("a formula has the command %s, which MathML does not know: %s", left[0], latex)
    return _spaced(found)


#: Operators that the converter leaves with the spaces of others: what it writes, and what to write.
_SPACES = (
    ("<mi>&#x0007E;</mi>", "<mo>&#x223C;</mo>"),
    ("<mo>&#x0002F;</mo>", '<mo lspace="0.05em" rspace="0.05em">/</mo>'),
    ('<mo stretchy="false">&#x0007C;</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
)


def _spaced(formula: str) -> str:
    """The same formula with the spaces of TeX around slashes, bars and signs of numbers."""
    for written, meant in _SPACES:
        formula = formula.replace(written, meant)
    opening = r'(<mo stretchy="false">&#x000(?:28|5B|7B);</mo>)'
    return re.sub(
        rf"{opening}<mo>(&#x02212;|&#x0002B;)</mo>", r'\1<mo form="prefix">\2</mo>', formula
    )


def _known(latex: str) -> str:
    r"""Commands that the converter does not know, by ones that it does.

    It sets one letter in braces in italics, so that an expectation would look like the error E.

    >>> _known(r"\mathrm{E}[E] + \mathrm{Var}\,q")
    '\\mathrm E[E] + \\mathrm{Var}\\,q'
    """
    if r"\\" in latex and r"\begin" not in latex:  # several lines, aligned at &
        latex = rf"\begin{{aligned}}{latex.strip()}\end{{aligned}}"
    latex = latex.replace("{aligned}", "{align*}")  # without numbers
    latex = latex.replace(r"\arg", r"\mathrm{arg}\,")
    latex = re.sub(r"\\(tfrac|dfrac)(?![a-zA-Z])", r"\\frac", latex)
    latex = re.sub(r"\\operatorname\*?\{([^}]*)\}", r"\\mathrm{\1}", latex)
    latex = re.sub(r"\\mathrm\{([a-zA-Z])\}", r"\\mathrm \1", latex)
    return re.sub(r"\\(Bigl|Bigr|bigl|bigr|Bigg[lr]?|bigg[lr]?|Big|big)(?![a-zA-Z])", "", latex)


def visit_math(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a wide one scrolls."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_math, None),
        block_renderers=(visit_math_block, None),
    )
    app.add_css_file("formulas.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
