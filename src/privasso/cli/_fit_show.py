"""What `privasso fit` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privasso._text import escaped, json_text
from privasso.cli._fit_write import FitResult
from privasso.cli._print import print_table
from privasso.encoding import Encoding, LevelCode
from privasso.planning import ScreeningOutlook
from privasso.privacy import Guarantee, meaning
from privasso.report import (
    OUTLOOK_TITLES,
    FitFacts,
    RecordMechanism,
    noise_words,
    outlook_lines,
    outlook_table,
)

if TYPE_CHECKING:
    from privasso.ledger import Ledger

#: Coefficients that are printed; the others are counted.
_MOST, _LONGEST_NAME = 12, 32
_WHAT = {
    "--out": "model",
    "--report": "report",
    "--path-out": "path",
    "--keep-release": "release (already covered by the guarantee)",
}


def show(result: FitResult, as_json: bool) -> None:
    """Print the summary of a fit."""
    facts = result.facts
    if as_json:
        files = {option.lstrip("-"): str(path) for option, path in result.files.items()}
        print(json_text({**facts.to_dict(), "ledger": result.ledger, "files": files}))
        return
    model = facts.model
    if model.guarantee.warning is not None:
        _loud(model.guarantee.warning)
    print(
        f"Fitted {facts.target!r} on {facts.n_rows} rows and {model.n_features} columns at "
        f"λ = {model.lam:.6g}; non-zero coefficients: {np.count_nonzero(model.coef)}."
    )
    _print_coefficients(facts)
    by_dictionary = facts.records
    encoded = None if model.encoding is None else encoding_words(model.encoding, by_dictionary)
    if encoded is not None:
        print(f"Columns of the table: {escaped(encoded)}.")
    if facts.screened_names is not None:
        print(f"Columns that were chosen: {escaped(', '.join(facts.screened_names))}.")
    if facts.mechanism is not None:
        print_settings(facts.mechanism)
    elif model.noise is not None or not model.guarantee.formal:
        print(f"Noise: {noise_words(model.noise)}.")
    if facts.columns is not None and model.classes is None:
        print(effect_words(facts.columns.in_label_units, facts.columns.scale > 0.0))
    print(f"\n{model.guarantee}\n")
    if model.guarantee.for_release:
        print(f"{meaning(model.guarantee)}\n")
    width = max(len(_WHAT[option]) for option in result.files)
    for option, path in result.files.items():
        print(f"{_WHAT[option]:<{width}}  {escaped(path)}")
    if result.ledger is not None:
        print(f"\nLedger. {result.ledger}")


def _print_coefficients(facts: FitFacts) -> None:
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
    names = [_short(facts.names[k]) for k in support[:_MOST]]
    width = max(len(name) for name in (*names, "(intercept)"))
    print(f"\n  {'':<{width}}  {header[0]:>12}" + "".join(f"  {h:>20}" for h in header[1:]))
    for name, k in zip(names, support[:_MOST], strict=True):
        effect = f"  {effects[k]:>+20.4g}" if len(effects) else ""
        print(f"  {name:<{width}}  {model.coef[k]:>+12.5g}{effect}")
    print(f"  {'(intercept)':<{width}}  {model.intercept:>+12.5g}")
    if support.size > _MOST:
        print(f"  … and {support.size - _MOST} smaller ones, which the model file holds")
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


def encoding_words(encoding: Encoding, by_dictionary: bool) -> str | None:
    """What became of columns; of those that a dictionary describes, the ones with levels."""
    if not by_dictionary:
        return encoding.in_words()
    levels = [code for code in encoding.codes if isinstance(code, LevelCode)]
    return Encoding(tuple(levels)).in_words() if levels else None


def print_size(n_rows: int, n_features: int, encoded: str | None) -> None:
    """Print how large the table is, and how its columns become numbers."""
    print(f"{n_rows} rows, {n_features} features.")
    if encoded is not None:
        print(f"Columns of the table: {escaped(encoded)}.")


def print_statement(guarantee: Guarantee, ledger: Ledger | None) -> None:
    """Print what a fit would state, and what would be left of a ledger."""
    from privasso.ledger import summary

    print(f"\nA fit would state:\n{guarantee}")
    if guarantee.for_release:
        print(f"\n{meaning(guarantee)}")
    if ledger is not None:
        print(f"\nThe ledger with this fit: {summary(ledger.after(guarantee))}")


def print_settings(mechanism: RecordMechanism) -> None:
    """Print the settings of a fit of whole records."""
    lines = mechanism.lines()
    width = max(len(what) for what, _ in lines)
    for what, value in lines:
        print(f"  {what:<{width}}  {value}")


def print_outlook(outlook: ScreeningOutlook) -> None:
    """Print what is predicted of a choice of columns, and of a fit of all."""
    for what, value in outlook_lines(outlook):
        print(f"{what}: {value}.")
    print_table(OUTLOOK_TITLES, outlook_table(outlook), "\nPredicted")
    print(outlook.in_words())


def effect_words(in_label_units: np.ndarray, live: np.ndarray) -> str:
    """The effect of the noise on predictions, in words."""
    low, middle, high = np.quantile(in_label_units[live], [0.0, 0.5, 1.0])
    return (
        f"Effect of the noise of one column on a prediction, in label units: median {middle:.3g}, "
        f"from {low:.3g} to {high:.3g} (for uncorrelated columns)."
    )


def _loud(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(text, style="bold red")
