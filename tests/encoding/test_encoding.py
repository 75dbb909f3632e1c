"""Matrices of tables are those of scikit-learn's encoders, sparse or dense."""

import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from privasso._documents import DocumentError
from privasso.encoding import (
    Columns,
    Encoding,
    LevelCode,
    Levels,
    NumberCode,
    Numbers,
    columns_of_frame,
    learn_encoding,
    option_words,
)
from privasso.encoding import _encoding as matrix


def frame(m=200, levels=5, seed=0):
    rng = np.random.default_rng(seed)
    towns = [f"town {k}" for k in rng.integers(0, levels, m)]
    holes = [None if hole else float(x) for x, hole in zip(rng.normal(size=m), rng.random(m) < 0.2,
                                                           strict=True)]  # fmt: skip
    return pl.DataFrame({"age": rng.normal(50, 9, m), "town": towns, "dose": holes,
                         "yes": rng.random(m) < 0.5})  # fmt: skip


def by_scikit_learn(table, indicator):
    """The same matrix from scikit-learn: mean, indicator, and levels but the most frequent."""
    town = table["town"].to_numpy().astype(object)[:, None]
    names, counts = np.unique(town, return_counts=True)
    onehot = OneHotEncoder(sparse_output=False, drop=[names[np.argmax(counts)]])
    filled = SimpleImputer(add_indicator=indicator).fit_transform(
        table["dose"].cast(pl.Float64).fill_null(np.nan).to_numpy()[:, None]
    )
    return np.column_stack(
        [table["age"].to_numpy(), onehot.fit_transform(town), filled, table["yes"].to_numpy()]
    )


@pytest.mark.parametrize("levels", [2, 5, 60])
@pytest.mark.parametrize("rule", ["mean", "indicator"])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_what_scikit_learn_does(monkeypatch, levels, rule, sparse):
    monkeypatch.setattr(matrix, "_TINY", 0)
    monkeypatch.setattr(matrix, "_SPARSE_SHARE", 1.0 if sparse else -1.0)
    table = frame(levels=levels)
    columns = columns_of_frame(table)
    encoding = learn_encoding(columns, missing=rule)
    X = encoding.matrix(columns)
    assert sp.issparse(X) == sparse
    dense = X.toarray() if isinstance(X, sp.csr_array) else X
    np.testing.assert_allclose(dense, by_scikit_learn(table, rule == "indicator"), rtol=1e-13)
    assert len(encoding.names) == dense.shape[1]
    # Rows and columns in another order give the same numbers.
    other = table.reverse().select(reversed(table.columns))
    again = encoding.matrix(columns_of_frame(other, encoding.inputs, categorical=["town"]))
    again = again.toarray() if isinstance(again, sp.csr_array) else again
    np.testing.assert_array_equal(again, dense[::-1])


def test_many_levels_are_stored_sparse():
    m, k = 20_000, 1000
    codes = np.random.default_rng(0).integers(0, k, m).astype(np.int32)
    names = tuple(sorted(str(j) for j in range(k)))
    table = Columns((Levels("town", codes, names), Numbers("x", np.arange(m) + 0.5)), m)
    X = learn_encoding(table).matrix(table)
    assert isinstance(X, sp.csr_array)
    assert X.shape == (m, k)
    assert X.nnz < 2 * m
    few = Columns((Levels("town", codes % 3, names[:3]),), m)
    assert isinstance(learn_encoding(few).matrix(few), np.ndarray)


def test_plain_numbers_are_not_copied():
    block = np.asfortranarray(np.random.default_rng(0).random((20, 3)))
    table = Columns(tuple(Numbers(n, block[:, k]) for k, n in enumerate("abc")), 20, block=block)
    encoding = learn_encoding(table)
    assert encoding.plain
    assert encoding.matrix(table) is block
    backwards = Encoding(tuple(NumberCode(name) for name in "cab"))
    np.testing.assert_array_equal(backwards.matrix(table), block[:, [2, 0, 1]])


def test_levels_that_a_model_does_not_know():
    code = LevelCode("town", ("a", "b", "c"), "b")
    table = Columns((Levels("town", np.array([1, 0, 2, 0]), ("b", "c", "x")),), 4)
    with pytest.raises(ValueError, match="does not know in row 3; remove such rows, or let --unk"):
        Encoding((code,)).matrix(table)
    X = Encoding((code,)).matrix(table, unknown="ignore")
    assert isinstance(X, np.ndarray)
    assert X.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    absent = Columns((Levels("town", np.array([-1, 0]), ("b",)),), 2)
    with pytest.raises(ValueError, match="'town' has a missing text in row 1"):
        Encoding((code,)).matrix(absent, unknown="ignore")
    more = Encoding((LevelCode("town", ("a", "b", "c"), "b", missing=True),)).matrix(absent)
    assert isinstance(more, np.ndarray)
    assert more.tolist() == [[0, 0, 1], [0, 0, 0]]


def test_all_troubles_at_prediction_are_named_at_once():
    codes = (NumberCode("a"), NumberCode("b"), NumberCode("c"), LevelCode("d", ("x",), "x"))
    table = columns_of_frame(
        pl.DataFrame({"a": [1.0, None], "b": [np.inf, 1.0], "c": ["u", "v"], "d": ["x", "y"]}),
        categorical=["d"],
    )
    with pytest.raises(ValueError, match=r"'a' has.*'b' is inf.*'c' holds text.*'d' has levels"):
        Encoding(codes).matrix(table)


def test_names_that_meet():
    for codes in (
        (NumberCode("a=b"), LevelCode("a", ("b", "c"), "c")),
        (NumberCode("a", 1.0, True), NumberCode("a is missing")),
        (NumberCode("a"), NumberCode("a")),
    ):
        with pytest.raises(ValueError, match=r"two columns of the .* would have the name"):
            Encoding(codes)


ENCODING = Encoding(
    (NumberCode("age", 50.5, True), NumberCode("x"), LevelCode("r", ("", "n=1", "ü"), "ü", True))
)


def test_it_comes_back_from_json():
    assert Encoding.from_dict(json.loads(json.dumps(ENCODING.to_dict()))) == ENCODING


CORRUPT = [
    (lambda d: [], "must be an object"),
    (lambda d: {}, "lacks the field 'columns'"),
    (lambda d: {"columns": []}, "must be a list of objects"),
    (lambda d: {"columns": [3]}, "must be an object"),
    (lambda d: d | {"more": 1}, "unknown field 'more'"),
    (lambda d: {"columns": [*d["columns"], d["columns"][0]]}, "would have the name 'age'"),
    (lambda d: change(d, 0, fill=None), "needs a fill"),
    (lambda d: change(d, 0, fill="1"), "fill must be a real number"),
    (lambda d: change(d, 0, indicator=1), "indicator must be true or false"),
    (lambda d: change(d, 0, name=1), "name must be text"),
    (lambda d: change(d, 2, levels=[]), "at least one"),
    (lambda d: change(d, 2, levels=["b", "a"]), "must be sorted"),
    (lambda d: change(d, 2, levels=["a", "a"]), "a name twice"),
    (lambda d: change(d, 2, levels=["a", 1]), "must be text"),
    (lambda d: change(d, 2, levels="ab"), "must be a list"),
    (lambda d: change(d, 2, reference="z"), "must be one of its levels"),
    (lambda d: change(d, 2, missing=None), "missing must be true or false"),
    (lambda d: change(d, 2, fill=1.0), "unknown field 'fill'"),
]


def change(document, at, **fields):
    document["columns"][at] |= fields
    return document


@pytest.mark.parametrize(("corrupt", "message"), CORRUPT)
def test_corrupt_files_are_refused(corrupt, message):
    with pytest.raises(DocumentError, match=message):
        Encoding.from_dict(corrupt(json.loads(json.dumps(ENCODING.to_dict()))))


def test_an_encoding_in_words():
    region = LevelCode("region", ("east", "north", "west"), reference="north")
    assert Encoding((NumberCode("age", fill=50.0), region)).in_words() == (
        "'region' as 3 levels (relative to 'north'); missing values of 'age' replaced by the mean"
    )
    assert option_words("exclude", "…") == "--exclude"


def test_parts_are_assembled_side_by_side():
    numbers = matrix.NumberPart(np.array([5.0, np.nan]), 7.0)
    found = matrix.assembled([numbers, matrix.LevelPart(2, np.array([1, -1]))], (2, 3))
    np.testing.assert_array_equal(found, [[5.0, 0.0, 1.0], [7.0, 0.0, 0.0]])
