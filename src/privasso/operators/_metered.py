"""An operator that counts how much of F is read."""

from __future__ import annotations

import numpy as np

from privasso.operators._columns import Columns
from privasso.operators._enclosed import Enclosed
from privasso.operators._operator import Block, Link, Operator


class Metered(Operator):
    """Another operator, with a count of what is read through it.

    `passes`: how often F was read; a part of its columns counts as that part of a pass. On a
    machine with fast arithmetic and slow memory this number, not the number of operations, tells
    how long a solve takes.
    """

    def __init__(self, op: Operator) -> None:
        super().__init__(op.shape)
        self._op = op
        self.dense, self.exact_columns = op.dense, op.exact_columns
        self.packed, self.entry_bytes = op.packed, op.entry_bytes
        self.passes = 0.0

    def count(self, cost: float) -> None:
        self.passes += cost

    def matvec(self, x: np.ndarray) -> np.ndarray:
        self.count(self._op.matvec_cost(x))
        return self._op.matvec(x)

    def rmatvec(self, g: np.ndarray) -> np.ndarray:
        self.count(1.0)
        return self._op.rmatvec(g)

    def pair_rmatvec(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.count(1.0)
        return self._op.pair_rmatvec(g, h)

    def squares_and_rmatvec(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.count(1.0)
        return self._op.squares_and_rmatvec(y)

    def update(
        self,
        x: np.ndarray,
        g: np.ndarray,
        beta: float,
        gamma: float,
        take: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Block | None]:
        self.count(self._op.update_cost(x, take))
        return self._op.update(x, g, beta, gamma, take)

    def through(self, x: np.ndarray, link: Link) -> np.ndarray:
        self.count(self._op.update_cost(x, None))
        return self._op.through(x, link)

    def matvec_enclosed(self, x: np.ndarray) -> Enclosed:
        self.count(self._op.matvec_cost(x))
        return self._op.matvec_enclosed(x)

    def rmatvec_enclosed(self, g: Enclosed) -> Enclosed:
        self.count(1.0)
        return self._op.rmatvec_enclosed(g)

    def rows(self, take: np.ndarray | slice) -> Block:
        rows = self._op.rows(take)
        self.count(rows.shape[0] / self.shape[0])
        return rows

    def columns(self, take: np.ndarray) -> Block:
        self.count(self._op.columns_cost(take.size))
        return self._op.columns(take)

    def working_columns(self, take: np.ndarray) -> Block:
        self.count(self._op.columns_cost(take.size))
        return self._op.working_columns(take)

    def sparse_columns(self, take: np.ndarray) -> Columns | None:
        self.count(self._op.columns_cost(take.size))
        return self._op.sparse_columns(take)

    def matmat(self, X: np.ndarray) -> np.ndarray:
        self.count(1.0)
        return self._op.matmat(X)

    def rmatmat(self, G: np.ndarray) -> np.ndarray:
        self.count(1.0)
        return self._op.rmatmat(G)

    def single(self) -> Block:
        self.count(1.0)
        return self._op.single()

    def gram(self) -> np.ndarray:
        self.count(1.0)
        return self._op.gram()

    def toarray(self) -> np.ndarray:
        self.count(1.0)
        return self._op.toarray()
