"""Columns of a table as columns of a matrix: levels, missing values, and what is no covariate."""

from privasso.encoding._columns import (
    MISSING,
    Columns,
    LevelCode,
    Levels,
    NumberCode,
    Numbers,
    read_series,
)
from privasso.encoding._dictionary import (
    Dictionary,
    LevelEntry,
    NumberEntry,
    read_dictionary,
    template,
)
from privasso.encoding._encoding import Encoding
from privasso.encoding._files import file_columns, file_rows, file_schema
from privasso.encoding._frames import (
    class_names,
    columns_of_frame,
    declared_columns,
    frame_labels,
    read_declared,
    read_labels,
)
from privasso.encoding._learn import MISSING_RULES, learn_encoding, looks_like_identifier
from privasso.encoding._troubles import Trouble, option_words, parameter_words, refusal

__all__ = [
    "MISSING",
    "MISSING_RULES",
    "Columns",
    "Dictionary",
    "Encoding",
    "LevelCode",
    "LevelEntry",
    "Levels",
    "NumberCode",
    "NumberEntry",
    "Numbers",
    "Trouble",
    "class_names",
    "columns_of_frame",
    "declared_columns",
    "file_columns",
    "file_rows",
    "file_schema",
    "frame_labels",
    "learn_encoding",
    "looks_like_identifier",
    "option_words",
    "parameter_words",
    "read_declared",
    "read_dictionary",
    "read_labels",
    "read_series",
    "refusal",
    "template",
]
