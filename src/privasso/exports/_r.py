"""A model as a function for R."""

from __future__ import annotations

from privasso.encoding import MISSING
from privasso.exports._terms import LevelTerm, NumberTerm, terms_of
from privasso.fit import ReleasedModel


def r_function(model: ReleasedModel) -> str:
    """Return an R function that predicts for the rows of a data frame.

    It needs no package, and its text is plain ASCII. Read the table with ``check.names = FALSE``,
    so that names of columns stay as they are. Texts are compared as in a fit: spaces around them do
    not count, and words such as NA are missing values. A row in which a value is missing that the
    model does not fill in has the prediction NA.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> statement = pv.Guarantee(None, released=("coefficients",))
    >>> names = ("age", "dose")
    >>> model = pv.ReleasedModel(np.array([0.5, 0.0]), 1.0, 1.0, statement, None, names)
    >>> print(r_function(model).splitlines()[-3])
      total <- total + number(data[["age"]], 0.5, NA_real_)
    """
    terms = terms_of(model)
    lines = [f"# {_plain(line)}" for line in terms.statement.splitlines()]
    lines += [
        "predict_privasso <- function(data) {",
        f"  absent <- c({', '.join(map(_text, MISSING))})",
        "  number <- function(x, coef, missing) {",
        "    if (is.character(x) || is.factor(x)) {",
        "      x <- tolower(trimws(as.character(x)))",
        "      x[x %in% tolower(absent)] <- NA",
        '      stopifnot(all(is.na(x) | x %in% c("true", "false")))',
        '      x <- x == "true"',
        "    }",
        "    stopifnot(is.numeric(x) || is.logical(x))",
        "    ifelse(is.na(x), missing, coef * x)",
        "  }",
        "  level <- function(x, texts, values, missing) {",
        "    x <- if (is.logical(x)) tolower(x) else trimws(as.character(x))",
        "    found <- values[match(x, texts)]",
        "    ifelse(is.na(x) | x %in% absent, missing, ifelse(is.na(found), 0, found))",
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
    given = f"c({texts}), c({values})" if term.values else "character(), numeric()"
    return f"level({column}, {given}, {missing})"


def _plain(text: str) -> str:
    """A comment in ASCII: R cannot read any other in a session without UTF-8."""
    words = {"ε": "epsilon", "δ": "delta", "λ": "lambda", "μ": "mu", "−": "-", "·": "*"}
    return "".join(words.get(c, c if c <= "~" else "?") for c in text)


def _text(text: str) -> str:
    """A string of R; every character that is not plain ASCII is an escape."""
    plain = {"\\": "\\\\", '"': '\\"'}
    return (
        '"'
        + "".join(plain.get(c, c if " " <= c <= "~" else f"\\U{ord(c):08x}") for c in text)
        + '"'
    )
