"""The coefficients of a fit in the terminal, and advice where there are none."""

from __future__ import annotations

from privasso._text import escaped
from privasso.report import FitFacts

#: Coefficients that are printed; the others are counted.
MOST = 12
_LONGEST_NAME = 32


def print_coefficients(facts: FitFacts) -> None:
    """Print the largest coefficients with their effects, or what to do if all are zero."""
    support, model = facts.support, facts.model
    if not support.size:
        print(_advice(facts))
        return
    if facts.units is None:
        header, effects = ("coefficient",), ()
    else:
        rise = "range" if facts.columns is None else "scale"
        header = ("coefficient", f"effect of its {rise}")
        effects = model.coef * facts.units
    names = [_short(facts.names[k]) for k in support[:MOST]]
    width = max(len(name) for name in (*names, "(intercept)"))
    print(f"\n  {'':<{width}}  {header[0]:>12}" + "".join(f"  {h:>20}" for h in header[1:]))
    for name, k in zip(names, support[:MOST], strict=True):
        effect = f"  {effects[k]:>+20.4g}" if len(effects) else ""
        print(f"  {name:<{width}}  {model.coef[k]:>+12.5g}{effect}")
    print(f"  {'(intercept)':<{width}}  {model.intercept:>+12.5g}")
    if support.size > MOST:
        print(f"  … and {support.size - MOST} smaller ones, which the model file holds")
    print()


def _advice(facts: FitFacts) -> str:
    """What to try when every coefficient is zero."""
    said = (
        "Every coefficient is zero: the model predicts the intercept for everybody, because no "
        "column stands out from the noise at this λ. "
    )
    if facts.model.guarantee.formal:
        tries = (
            "A fit with fewer columns (--features), more rows or a larger ε can find more, at a "
            "new cost; --dry-run predicts what to expect before it is spent."
        )
    else:
        tries = "Try less noise (--sigma) or a smaller λ (--lam)."
    if facts.resolve is not None:
        tries += f" A smaller λ costs nothing: {facts.resolve}"
    return said + tries


def _short(name: str) -> str:
    name = escaped(name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
