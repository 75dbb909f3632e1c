"""A model as a function for R."""

from __future__ import annotations

from privasso.exports._terms import LevelTerm, NumberTerm, terms_of
from privasso.fit import ReleasedModel


def r_function(model: ReleasedModel) -> str:
    """Return an R function that predicts for the rows of a data frame.

    It needs no package. Read the table with ``check.names = FALSE``, so that names of columns stay
    as they are. A row in which a value is missing that the model does not fill in has the
    prediction NA.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> statement = pv.Guarantee("none", (), "", (), ("coefficients",), seeded=False)
    >>> names = ("age", "dose")
    >>> model = pv.ReleasedModel(np.array([0.5, 0.0]), 1.0, 1.0, statement, None, names)
    >>> print(r_function(model).splitlines()[-3])
      total <- total + number(data[["age"]], 0.5, NA_real_)
    """
    terms = terms_of(model)
    lines = [f"# {line}" for line in terms.statement.splitlines()]
    lines += [
        "predict_privasso <- function(data) {",
        "  number <- function(x, coef, missing) {",
        "    stopifnot(is.numeric(x) || is.logical(x))",
        "    ifelse(is.na(x), missing, coef * x)",
        "  }",
        "  level <- function(x, values, missing) {",
        "    found <- unname(values[as.character(x)])",
        "    ifelse(is.na(x), missing, ifelse(is.na(found), 0, found))",
        "  }",
        f"  total <- rep({terms.intercept!r}, nrow(data))",
    ]
    lines += [f"  total <- total + {_term(term)}" for term in terms.terms]
    lines += ["  1 / (1 + exp(-total))" if terms.classes is not None else "  total", "}", ""]
    return "\n".join(lines)


def _term(term: NumberTerm | LevelTerm) -> str:
    column = f"data[[{_text(term.name)}]]"
    missing = "NA_real_" if term.missing is None else repr(term.missing)
    if isinstance(term, NumberTerm):
        return f"number({column}, {term.coef!r}, {missing})"
    texts = ", ".join(_text(level) for level, _ in term.values)
    values = ", ".join(repr(value) for _, value in term.values)
    return f"level({column}, stats::setNames(c({values}), c({texts})), {missing})"


def _text(text: str) -> str:
    """A string of R; every character that is not plain ASCII is an escape."""
    plain = {"\\": "\\\\", '"': '\\"'}
    return (
        '"'
        + "".join(plain.get(c, c if " " <= c <= "~" else f"\\U{ord(c):08x}") for c in text)
        + '"'
    )
