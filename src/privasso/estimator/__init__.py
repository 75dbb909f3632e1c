"""A private fit, and the table before it, as scikit-learn estimators."""

from privasso.estimator._private_lasso import PrivateLasso
from privasso.estimator._private_logistic_lasso import PrivateLogisticLasso
from privasso.estimator._table_encoder import TableEncoder

__all__ = ["PrivateLasso", "PrivateLogisticLasso", "TableEncoder"]
