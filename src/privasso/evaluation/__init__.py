"""How well a public model predicts private rows."""

from privasso.evaluation._evaluate import Request, evaluate, evaluated
from privasso.evaluation._result import Evaluation

__all__ = ["Evaluation", "Request", "evaluate", "evaluated"]
