"""Published models in the languages of other software: SQL, R, ONNX."""

from privasso.exports._formulas import r_function, sql_query
from privasso.exports._onnx import onnx_model

__all__ = ["onnx_model", "r_function", "sql_query"]
