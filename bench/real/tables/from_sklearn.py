"""Tables that come with scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

from bench.real.tables.table import Bounds, Table

#: For each column of the diabetes table: bounds, and a round centre and unit for its powers.
_DIABETES: dict[str, tuple[Bounds, float, float]] = {
    "age": ((18.0, 90.0), 50.0, 15.0),
    "sex": ((1.0, 2.0), 1.5, 0.5),
    "bmi": ((15.0, 50.0), 26.0, 5.0),
    "bp": ((50.0, 150.0), 95.0, 15.0),
    "s1": ((80.0, 350.0), 190.0, 35.0),
    "s2": ((30.0, 260.0), 115.0, 30.0),
    "s3": ((15.0, 110.0), 50.0, 15.0),
    "s4": ((1.0, 10.0), 4.0, 1.5),
    "s5": ((3.0, 7.0), 4.5, 0.5),
    "s6": ((50.0, 150.0), 90.0, 15.0),
}
_PROGRESSION: Bounds = (0.0, 350.0)


def diabetes() -> Table:
    data = load_diabetes(scaled=False)
    return Table(
        X=np.asarray(data.data, dtype=np.float64),
        columns=tuple(data.feature_names),
        y=np.asarray(data.target, dtype=np.float64),
        y_bounds=_PROGRESSION,
        column_bounds=np.array([_DIABETES[name][0] for name in data.feature_names]),
        outcome="progression of diabetes after a year",
        source="Efron, Hastie, Johnstone, Tibshirani (2004), Least angle regression; scikit-learn",
    )


def diabetes_64() -> Table:
    """All squares and products of two of the ten columns, in round units, except sex squared."""
    first = diabetes()
    centre = np.array([_DIABETES[name][1] for name in first.columns])
    unit = np.array([_DIABETES[name][2] for name in first.columns])
    X = (first.X - centre) / unit
    bounds = (first.column_bounds - centre[:, None]) / unit[:, None]
    columns, names, found = [*X.T], [*first.columns], [*bounds]
    for i, j in itertools.combinations_with_replacement(range(X.shape[1]), 2):
        if i == j and first.columns[i] == "sex":
            continue
        corners = np.outer(bounds[i], bounds[j])
        low = 0.0 if i == j else float(corners.min())
        columns.append(X[:, i] * X[:, j])
        names.append(f"{first.columns[i]}·{first.columns[j]}")
        found.append(np.array([low, corners.max()]))
    return Table(
        X=np.column_stack(columns),
        columns=tuple(names),
        y=first.y,
        y_bounds=_PROGRESSION,
        column_bounds=np.array(found),
        outcome=first.outcome,
        source=first.source + "; squares and products as in that paper",
    )


#: Largest values of the ten measurements, for the mean, the standard error and the worst cell.
_CELLS = {
    "radius": (40.0, 5.0, 50.0),
    "texture": (50.0, 5.0, 60.0),
    "perimeter": (250.0, 30.0, 300.0),
    "area": (3000.0, 600.0, 5000.0),
    "smoothness": (0.3, 0.05, 0.4),
    "compactness": (0.5, 0.2, 1.5),
    "concavity": (0.5, 0.5, 1.5),
    "concave points": (0.3, 0.1, 0.4),
    "symmetry": (0.5, 0.1, 1.0),
    "fractal dimension": (0.2, 0.05, 0.3),
}


def tumours() -> Table:
    data = load_breast_cancer()
    bounds = []
    for name in data.feature_names:
        word = str(name)
        column = 1 if word.endswith("error") else 2 if word.startswith("worst") else 0
        key = word.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")
        bounds.append((0.0, _CELLS[key][column]))
    return Table(
        X=np.asarray(data.data, dtype=np.float64),
        columns=tuple(str(name) for name in data.feature_names),
        y=np.asarray(data.target, dtype=np.float64),
        y_bounds=(0.0, 1.0),
        column_bounds=np.array(bounds),
        outcome="a tumour is benign",
        source="Wolberg, Street, Mangasarian (1995), breast cancer in Wisconsin; scikit-learn",
    )
