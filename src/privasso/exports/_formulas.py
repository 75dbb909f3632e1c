"""A model as a sum with a term for each column: a query for a database, and a function for R."""

from __future__ import annotations

from dataclasses import dataclass

from privasso.encoding import MISSING, Encoding, LevelCode, NumberCode
from privasso.fit import ReleasedModel


@dataclass(frozen=True)
class NumberTerm:
    """coef × value of a column of numbers.

    `missing`: the whole term where the value is missing; None where it must not be.
    """

    name: str
    coef: float
    missing: float | None


@dataclass(frozen=True)
class LevelTerm:
    """A number for each level of a column of texts.

    `values`: the levels whose number is not zero. Every other text has zero. `missing`: the number
    where the text is missing; None where it must not be.
    """

    name: str
    values: tuple[tuple[str, float], ...]
    missing: float | None


def terms_of(model: ReleasedModel) -> list[NumberTerm | LevelTerm]:
    """Return a model, less its intercept, as a sum over the columns that it needs.

    Of a logistic regression it is the log odds of the positive class. A level that the model does
    not know counts as the reference, as with ``unknown="ignore"``.
    """
    needed = model.needed()
    encoding = needed.encoding
    if encoding is None:
        if needed.feature_names is None:
            raise ValueError(
                "the model has no names of columns, which other software needs; fit it from a "
                "table or a data frame"
            )
        encoding = Encoding(tuple(NumberCode(name) for name in needed.feature_names))
    found, at = [], 0
    for code in encoding.codes:
        own = [float(x) for x in needed.coef[at : at + len(code.outputs)]]
        at += len(own)
        found.append(_number(code, own) if isinstance(code, NumberCode) else _level(code, own))
    return found


def _number(code: NumberCode, coef: list[float]) -> NumberTerm:
    if code.fill is None:
        return NumberTerm(code.name, coef[0], None)
    return NumberTerm(code.name, coef[0], coef[0] * code.fill + sum(coef[1:]))


def _level(code: LevelCode, coef: list[float]) -> LevelTerm:
    shown = zip(code.shown, coef, strict=False)  # the coefficient of a missing text comes last
    values = tuple((level, x) for level, x in shown if x != 0.0)
    if code.missing:
        return LevelTerm(code.name, values, coef[-1])
    return LevelTerm(code.name, values, None if code.reference is not None else 0.0)


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
    comment = "\n".join(f"-- {line}" for line in str(model.guarantee).splitlines())
    total = "\n    + ".join([_sql_number(model.intercept), *map(_sql_term, terms_of(model))])
    name, expression = "prediction", total
    if model.classes is not None:
        name = "probability"
        expression = f"1.0 / (1.0 + EXP(-(\n    {total}\n  )))"
    return f"{comment}\nSELECT *,\n  (\n    {expression}\n  ) AS {name}\nFROM {_name(table)}\n"


def _sql_term(term: NumberTerm | LevelTerm) -> str:
    column = _name(term.name)
    if isinstance(term, NumberTerm):
        # Booleans are numbers in a fit; a database multiplies them only if it is told so.
        product = f"{_sql_number(term.coef)} * CAST({column} AS DOUBLE PRECISION)"
        if term.missing is None:
            return product
        return f"COALESCE({product}, {_sql_number(term.missing)})"
    text = f"TRIM(CAST({column} AS VARCHAR))"
    missing = "NULL" if term.missing is None else _sql_number(term.missing)
    levels = " ".join(
        f"WHEN {text} = {_sql_text(level)} THEN {_sql_number(value)}"
        for level, value in term.values
    )
    absent = f"{column} IS NULL OR {text} IN ({', '.join(map(_sql_text, MISSING))})"
    return f"CASE WHEN {absent} THEN {missing} {levels} ELSE 0.0e0 END"


def _sql_number(value: float) -> str:
    # An exponent makes it a double in every dialect; a decimal alone may have few digits.
    return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"


def _name(name: str) -> str:
    return _quoted(name, '"')


def _sql_text(text: str) -> str:
    return _quoted(text, "'")


def _quoted(text: str, quote: str) -> str:
    if "\\" in text:
        raise ValueError(
            f"{text!r} holds a backslash, which begins an escape in some databases, so that no "
            "query means the same in all of them; rename the column or the level"
        )
    return quote + text.replace(quote, 2 * quote) + quote


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
    lines = [f"# {_plain(line)}" for line in str(model.guarantee).splitlines()]
    lines += [
        "predict_privasso <- function(data) {",
        f"  absent <- c({', '.join(map(_r_text, MISSING))})",
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
        f"  total <- rep({model.intercept!r}, nrow(data))",
    ]
    lines += [f"  total <- total + {_r_term(term)}" for term in terms_of(model)]
    lines += ["  1 / (1 + exp(-total))" if model.classes is not None else "  total", "}", ""]
    return "\n".join(lines)


def _r_term(term: NumberTerm | LevelTerm) -> str:
    column = f"data[[{_r_text(term.name)}]]"
    missing = "NA_real_" if term.missing is None else repr(term.missing)
    if isinstance(term, NumberTerm):
        return f"number({column}, {term.coef!r}, {missing})"
    texts = ", ".join(_r_text(level) for level, _ in term.values)
    values = ", ".join(repr(value) for _, value in term.values)
    given = f"c({texts}), c({values})" if term.values else "character(), numeric()"
    return f"level({column}, {given}, {missing})"


def _plain(text: str) -> str:
    """A comment in ASCII: R cannot read any other in a session without UTF-8."""
    words = {"ε": "epsilon", "δ": "delta", "λ": "lambda", "μ": "mu", "−": "-", "·": "*"}
    return "".join(words.get(c, c if c <= "~" else "?") for c in text)


def _r_text(text: str) -> str:
    """A string of R; every character that is not plain ASCII is an escape."""
    plain = {"\\": "\\\\", '"': '\\"'}
    return (
        '"'
        + "".join(plain.get(c, c if " " <= c <= "~" else f"\\U{ord(c):08x}") for c in text)
        + '"'
    )
