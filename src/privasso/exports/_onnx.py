"""A model as a graph of the Open Neural Network Exchange."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from privasso._types import Passed
from privasso.encoding import MISSING
from privasso.exports._formulas import LevelTerm, NumberTerm, terms_of
from privasso.fit import ReleasedModel

if TYPE_CHECKING:
    import onnx

#: Versions of the operators that the graph uses: texts are compared since 19.
_OPSET, _IR = 19, 9


def onnx_model(model: ReleasedModel) -> bytes:
    """Return the bytes of an ONNX file, which needs the package ``onnx`` to be written.

    Each column that the model needs is an input of shape (rows, 1): doubles, in which NaN stands
    for a missing value, or texts without spaces around them, in which the empty text and words such
    as NA do. The output is ``prediction``, or ``probability`` of the positive class, with
    underscores behind it if a column has that name. A missing value that the model does not fill in
    gives NaN.

    Examples
    --------
    >>> import numpy as np, privasso as pv
    >>> statement = pv.Guarantee(None, released=("coefficients",))
    >>> model = pv.ReleasedModel(np.array([0.5]), 1.0, 1.0, statement, None, ("age",))
    >>> len(onnx_model(model)) > 100
    True
    """
    try:
        import onnx
    except ImportError:
        raise ValueError("ONNX files need the package onnx; install privasso[onnx]") from None
    from onnx import TensorProto, helper

    terms = terms_of(model)
    if not terms:
        raise ValueError(
            "every coefficient is zero, and a graph without inputs cannot tell the number of rows; "
            f"the prediction is {model.intercept!r} for every row"
        )
    names = {term.name for term in terms}
    if "" in names:
        raise ValueError("a column has an empty name, which ONNX cannot have; rename it and fit")
    graph = _Graph(helper, TensorProto, names)
    total = graph.constant(model.intercept)
    for term in terms:
        made = graph.number(term) if isinstance(term, NumberTerm) else graph.level(term)
        total = graph.node("Add", [total, made])
    name = "prediction" if model.classes is None else "probability"
    while name in names:
        name += "_"
    graph.node("Identity" if model.classes is None else "Sigmoid", [total], out=name)
    output = helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None, 1])
    made = helper.make_model(
        helper.make_graph(graph.nodes, "privasso", graph.inputs, [output], graph.initializers),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="privasso",
        producer_version=model.software,
        doc_string=str(model.guarantee),
    )
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


class _Graph:
    """Nodes, inputs and constants of a graph while it is built."""

    def __init__(self, helper: ModuleType, types: type[onnx.TensorProto], taken: set[str]) -> None:
        self._helper, self._types, self._taken, self._count = helper, types, taken, 0
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(
        self, kind: str, inputs: list[str], out: str | None = None, **attributes: Passed
    ) -> str:
        """Add an operation; return the name of its result."""
        out = self._name() if out is None else out
        self.nodes.append(self._helper.make_node(kind, inputs, [out], **attributes))
        return out

    def constant(self, value: float | str) -> str:
        """Add a number or a text; return its name."""
        name = self._name()
        if isinstance(value, str):
            made = self._helper.make_tensor(name, self._types.STRING, [1], [value.encode("utf-8")])
        else:
            made = self._helper.make_tensor(name, self._types.DOUBLE, [1], [value])
        self.initializers.append(made)
        return name

    def number(self, term: NumberTerm) -> str:
        """Add coef × value, or what stands for a missing value."""
        x = self._input(term.name, self._types.DOUBLE)
        product = self.node("Mul", [x, self.constant(term.coef)])
        if term.missing is None:
            return product
        return self.node("Where", [self.node("IsNaN", [x]), self.constant(term.missing), product])

    def level(self, term: LevelTerm) -> str:
        """Add the number of a level."""
        x = self._input(term.name, self._types.STRING)
        missing = np.nan if term.missing is None else term.missing
        values = [*((word, missing) for word in MISSING), *term.values]
        total = self._chosen(x, *values[0])
        for text, value in values[1:]:
            total = self.node("Add", [total, self._chosen(x, text, value)])
        return total

    def _chosen(self, x: str, text: str, value: float) -> str:
        same = self.node("Equal", [x, self.constant(text)])
        return self.node("Where", [same, self.constant(value), self.constant(0.0)])

    def _input(self, name: str, kind: int) -> str:
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, [None, 1]))
        return name

    def _name(self) -> str:
        self._count += 1
        name = f"/{self._count}"
        return self._name() if name in self._taken else name
