"""Published models in the languages of other software: SQL, R, ONNX."""

from privasso.exports._onnx import onnx_model
from privasso.exports._r import r_function
from privasso.exports._sql import sql_query
from privasso.exports._terms import terms_of

__all__ = [
    "onnx_model",
    "r_function",
    "sql_query",
    "terms_of",
]
