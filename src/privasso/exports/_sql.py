"""A model as a query for a database."""

from __future__ import annotations

from privasso.encoding import MISSING
from privasso.exports._terms import LevelTerm, NumberTerm, terms_of
from privasso.fit import ReleasedModel


def sql_query(model: ReleasedModel, table: str = "data") -> str:
    r"""Return a SELECT that adds the prediction to every row of a table.

    It is standard SQL with names in double quotes. Texts are compared as in a fit: spaces around
    them do not count, and words such as NA are missing values. A row in which a value is missing
    that the model does not fill in has the prediction NULL. Names and levels with a backslash are
    refused: in some databases it would end the text that it is in.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> statement = pv.Guarantee(None, released=("coefficients",))
    >>> names = ("age", "dose")
    >>> model = pv.ReleasedModel(np.array([0.5, 0.0]), 1.0, 1.0, statement, None, names)
    >>> print("\n".join(sql_query(model, "patients").splitlines()[3:]))
    SELECT *,
      (
        1.0e0
        + 0.5e0 * CAST("age" AS DOUBLE PRECISION)
      ) AS prediction
    FROM "patients"
    """
    terms = terms_of(model)
    comment = "\n".join(f"-- {line}" for line in terms.statement.splitlines())
    total = "\n    + ".join([_number(terms.intercept), *map(_term, terms.terms)])
    name, expression = "prediction", total
    if terms.classes is not None:
        name = "probability"
        expression = f"1.0 / (1.0 + EXP(-(\n    {total}\n  )))"
    return f"{comment}\nSELECT *,\n  (\n    {expression}\n  ) AS {name}\nFROM {_name(table)}\n"


def _term(term: NumberTerm | LevelTerm) -> str:
    column = _name(term.name)
    if isinstance(term, NumberTerm):
        # Booleans are numbers in a fit; a database multiplies them only if it is told so.
        product = f"{_number(term.coef)} * CAST({column} AS DOUBLE PRECISION)"
        if term.missing is None:
            return product
        return f"COALESCE({product}, {_number(term.missing)})"
    text = f"TRIM(CAST({column} AS VARCHAR))"
    missing = "NULL" if term.missing is None else _number(term.missing)
    levels = " ".join(
        f"WHEN {text} = {_text(level)} THEN {_number(value)}" for level, value in term.values
    )
    absent = f"{column} IS NULL OR {text} IN ({', '.join(map(_text, MISSING))})"
    return f"CASE WHEN {absent} THEN {missing} {levels} ELSE 0.0e0 END"


def _number(value: float) -> str:
    # An exponent makes it a double in every dialect; a decimal alone may have few digits.
    return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"


def _name(name: str) -> str:
    return _quoted(name, '"')


def _text(text: str) -> str:
    return _quoted(text, "'")


def _quoted(text: str, quote: str) -> str:
    if "\\" in text:
        raise ValueError(
            f"{text!r} holds a backslash, which begins an escape in some databases, so that no "
            "query means the same in all of them; rename the column or the level"
        )
    return quote + text.replace(quote, 2 * quote) + quote
