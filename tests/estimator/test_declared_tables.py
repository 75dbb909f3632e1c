"""`TableEncoder` with a data dictionary, and what a statement says of columns that were learnt."""

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import privasso as pv
from privasso.cli import main
from privasso.encoding import Dictionary, LevelEntry, NumberEntry, read_dictionary

LINES = "name,low,high,fill,levels\nage,18,98,,\ndose,0,500,0,\nward,,,,heart|skin\n"
KNOWN = Dictionary(
    (
        NumberEntry("age", 18, 98),
        NumberEntry("dose", 0, 500, fill=0.0),
        LevelEntry("ward", ("heart", "skin")),
    )
)
PRIVACY = pv.RecordDP(2.0, 1e-6, bounds=KNOWN.bounds, y_bounds=(60, 160))


def clinic(m=400):
    """A table of texts, as a CSV file holds them, with gaps and cells that are none of it."""
    rng = np.random.default_rng(5)
    age = [str(round(one, 3)) for one in rng.uniform(10, 110, m)]
    age[3], age[8], age[9], age[11] = "", "unknown", "1e400", "true"
    ward = rng.choice(["heart", "skin", "eye", " heart"], m).tolist()
    ward[5], ward[6] = "", "NA"
    dose = [str(one) for one in rng.integers(0, 600, m)]
    y = (100 + 0.2 * rng.standard_normal(m)).round(6)
    return pl.DataFrame({"ward": ward, "age": age, "dose": dose}), y


def expected(frame):
    """The matrix by the rule that the documentation states, cell by cell."""
    rows = []
    for ward, age, dose in frame.rows():
        row = [float(ward.strip() == level) for level in ("heart", "skin")]
        for cell, fill in ((age, 58.0), (dose, 0.0)):
            try:
                row.append(1.0 if cell == "true" else float(cell))
            except ValueError:
                row.append(fill)
        rows.append(row)
    return np.array(rows)


def test_it_reads_as_the_dictionary_says_and_learns_nothing():
    frame, _ = clinic()
    encoder = pv.TableEncoder(dictionary=KNOWN).fit(frame[:1])
    assert encoder.get_feature_names_out().tolist() == ["ward=heart", "ward=skin", "age", "dose"]
    assert encoder.feature_names_in_.tolist() == ["ward", "age", "dose"]
    found = encoder.transform(frame)
    assert found.columns == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found.to_numpy(), expected(frame))
    other = pv.TableEncoder(dictionary=KNOWN).fit(frame.head(0)[["ward", "age", "dose"]])
    assert other.encoding_ == encoder.encoding_
    pandas = pd.DataFrame(frame.to_dict(as_series=False))
    np.testing.assert_array_equal(encoder.transform(pandas).to_numpy(), expected(frame))
    plain = encoder.set_output(transform="default").transform(pandas.astype(object))
    np.testing.assert_array_equal(plain, expected(frame))
    wider = frame.with_columns(name=pl.lit("x"))
    np.testing.assert_array_equal(encoder.fit_transform(wider), expected(frame))


def test_no_cell_is_refused_and_none_changes_another():
    frame, _ = clinic(30)
    pandas = pd.DataFrame(frame.to_dict(as_series=False)).astype(object)
    encoder = pv.TableEncoder(dictionary=KNOWN).fit(pandas).set_output(transform="default")
    before = encoder.transform(pandas)
    hostile = {
        "text": "SECRET", "a mapping": {"a": 1}, "a list": [1, 2], "bytes": b"1", "none": None,
        "not available": pd.NA, "not a time": pd.NaT, "a day": pd.Timestamp("2020-01-17"),
        "complex": 1 + 2j, "a huge number": -(10**5000), "infinity": np.inf, "NaN": np.nan,
        "a quiet NaN": Decimal("NaN"), "a signal": Decimal("sNaN"), "an object": object(),
        "a surrogate": "\ud800", "NUL": "\0", "long": "9" * 100_000,
    }  # fmt: skip
    seen = {}
    for what, cell in hostile.items():
        for place in (0, 17, 29):
            for k, name in enumerate(pandas.columns):
                changed = pandas.copy()
                changed.at[place, name] = cell
                after = encoder.transform(changed)
                own = [0, 1] if k == 0 else [k + 1]
                rest = np.ones(before.shape, bool)
                rest[place, own] = False
                np.testing.assert_array_equal(after[rest], before[rest])
                seen[what, name] = after[place, own].tolist()
    assert seen["text", "age"] == seen["complex", "age"] == seen["a signal", "age"] == [58.0]
    assert seen["a huge number", "age"] == [-np.inf]  # clipped by the fit
    assert seen["long", "age"] == [np.inf]
    assert seen["text", "ward"] == seen["none", "ward"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("cell", "number", "level"),
    [
        (True, 1.0, "true"), (np.bool_(False), 0.0, "false"), (3, 3.0, "3"), (2.0, 2.0, "2"),
        (np.float32(0.5), 0.5, "0.5"), (Decimal("1.50"), 1.5, "1.5"), (0.1, 0.1, "0.1"),
        (Fraction(1, 4), 0.25, "0.25"), (np.int8(-7), -7.0, "-7"),
    ],
)  # fmt: skip
def test_numbers_among_objects(cell, number, level):
    known = Dictionary((NumberEntry("a", -10, 10), LevelEntry("b", (level, "other"))))
    frame = pd.DataFrame({"a": [cell, "x"], "b": [cell, "x"]}, dtype=object)
    encoder = pv.TableEncoder(dictionary=known).set_output(transform="default")
    found = encoder.fit_transform(frame)
    assert found[0].tolist() == [number, *(float(one == level) for one in known.levels["b"])]
    assert found[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore:the same labels")
def test_the_command_line_fits_the_same_model(tmp_path):
    frame, y = clinic()
    (tmp_path / "bounds.csv").write_text(LINES)
    frame.with_columns(pressure=pl.Series(y)).write_csv(tmp_path / "clinic.csv")
    words = "--target pressure --record-dp --epsilon 2 --delta 1e-6 --y-bounds 60 160 --seed 3"
    files = "--bounds", str(tmp_path / "bounds.csv"), "--out", str(tmp_path / "shell.json")
    assert main(["fit", str(tmp_path / "clinic.csv"), *words.split(), *files]) == 0
    known = read_dictionary(tmp_path / "bounds.csv")
    assert known == KNOWN
    privacy = pv.RecordDP(2.0, 1e-6, bounds=known.bounds, y_bounds=(60, 160))
    fitted = make_pipeline(
        pv.TableEncoder(dictionary=str(tmp_path / "bounds.csv")),
        pv.PrivateLasso(privacy=privacy, random_state=3),
    ).fit(frame, y)
    pv.save(fitted, tmp_path / "python.json")
    ours, theirs = pv.load(tmp_path / "python.json"), pv.load(tmp_path / "shell.json")
    assert ours.coef.tolist() == theirs.coef.tolist()
    assert ours.intercept == theirs.intercept
    assert ours.encoding == theirs.encoding
    assert ours.feature_names == theirs.feature_names
    assert set(ours.guarantee.assumptions) <= set(theirs.guarantee.assumptions)
    assert any("in the data dictionary were chosen" in one for one in ours.guarantee.assumptions)


def released(*steps, X, y, estimator=pv.PrivateLasso):
    """The statement of a fit after these steps, and the warnings about preparation."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        est: Any = estimator(privacy=PRIVACY_OF_TWO)
        make_pipeline(*steps, est).fit(X, y)
    about = [str(one.message) for one in heard if "learnt" in str(one.message)]
    assert all(issubclass(one.category, pv.PrivacyWarning) for one in heard)
    return est.guarantee_, about


PRIVACY_OF_TWO = pv.RecordDP(1.0, 1e-6, bounds=(-3, 3), y_bounds=(0, 1))
RNG = np.random.default_rng(1)
TABLE = pl.DataFrame({"a": RNG.random(200), "b": RNG.random(200)})
LABELS = RNG.integers(0, 2, 200)
PUBLIC = Dictionary((NumberEntry("a", 0, 1), NumberEntry("b", 0, 1)))
SENTENCE = "prepared by rules that do not depend on the data"


@pytest.mark.parametrize("estimator", [pv.PrivateLasso, pv.PrivateLogisticLasso])
def test_steps_that_learn_are_seen_in_a_pipeline(estimator):
    y = LABELS + 0 * RNG.random(200)
    learnt = {
        "StandardScaler": [StandardScaler()],
        "TableEncoder": [pv.TableEncoder()],
        "TableEncoder and StandardScaler": [pv.TableEncoder(), StandardScaler()],
        "Pipeline": [make_pipeline(StandardScaler())],
    }
    for names, steps in learnt.items():
        statement, about = released(*steps, X=TABLE, y=y, estimator=estimator)
        assert not statement.for_release
        assert "NOT FOR RELEASE: the columns were prepared by what was learnt" in str(statement)
        assert SENTENCE not in str(statement)
        assert len(about) == 1
        assert about[0].startswith(f"{names} learnt from the records that this fit protects")
    silent = [[], ["passthrough"], [FunctionTransformer(np.log1p)]]
    public = StandardScaler().fit(pl.DataFrame(RNG.random((9, 2)), schema=["a", "b"]))
    silent += [[pv.TableEncoder(dictionary=PUBLIC)], [FrozenEstimator(public)]]
    for steps in silent:
        statement, about = released(*steps, X=TABLE, y=y, estimator=estimator)
        assert statement.for_release
        assert not about
        assert SENTENCE in str(statement)


def test_an_encoder_that_learnt_is_seen_without_a_pipeline(recwarn):
    X = pv.TableEncoder().fit_transform(TABLE)
    est = pv.PrivateLasso(privacy=PRIVACY_OF_TWO).fit(X, LABELS)
    assert not est.guarantee_.for_release
    assert any("TableEncoder learnt" in str(one.message) for one in recwarn)
    copy = pv.PrivateLasso(privacy=PRIVACY_OF_TWO).fit(np.array(X), LABELS)
    assert copy.guarantee_.for_release  # a copy tells nothing; the assumption is named
    assert SENTENCE in str(copy.guarantee_)
    labels = pv.PrivateLasso(privacy=pv.LabelDP(1.0, 1e-6, (0, 1))).fit(X, LABELS)
    assert labels.guarantee_.for_release


@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
def test_files_say_it_and_those_of_before_are_read(tmp_path):
    learnt = pv.PrivateLasso(privacy=PRIVACY_OF_TWO)
    make_pipeline(StandardScaler(), learnt).fit(TABLE, LABELS)
    pv.save(learnt, tmp_path / "learnt.json")
    assert pv.load(tmp_path / "learnt.json").guarantee == learnt.guarantee_
    plain = pv.PrivateLasso(privacy=PRIVACY_OF_TWO).fit(TABLE, LABELS)
    pv.save(plain, tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    (now,) = (one for one in pv.load(tmp_path / "m.json").guarantee.assumptions if SENTENCE in one)
    for old in (f'"{now}",', f', "{now}"'):
        text = text.replace(old, "")
    assert now not in text
    (tmp_path / "old.json").write_text(text)
    assert pv.load(tmp_path / "old.json").guarantee.for_release


def test_composed_statements_keep_the_reservation():
    statement, _ = released(StandardScaler(), X=TABLE, y=LABELS)
    plain, _ = released(X=TABLE, y=LABELS)
    assert not plain.compose(statement).for_release
    assert plain.compose(plain).for_release
    assert not statement.group(2).for_release


@pytest.mark.parametrize("rule", ["mean", "indicator"])
def test_a_split_without_gaps_learns_the_mean(rule):
    train = pl.DataFrame({"a": [1.0, 2.0, 6.0], "b": ["x", "y", "x"]})
    test = pl.DataFrame({"a": [None, 5.0], "b": ["y", "x"]})
    encoder = pv.TableEncoder(missing=rule).fit(train)
    assert encoder.get_feature_names_out().tolist() == ["a", "b=y"]
    assert encoder.transform(test).tolist() == [[3.0, 1.0], [5.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "mean"}, "leave missing, categorical, keep and unknown out"),
        ({"unknown": "ignore"}, "leave missing, categorical, keep and unknown out"),
        ({"dictionary": 3}, "dictionary must be the path"),
        ({"dictionary": "absent.csv"}, "absent.csv"),
        (
            {"dictionary": Dictionary((NumberEntry("weight", 0, 1),))},
            "no column 'weight', which the dictionary describes",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises((ValueError, OSError), match=message):
        pv.TableEncoder(**{"dictionary": KNOWN, **options}).fit(clinic()[0])


def test_types_are_public_and_may_be_refused():
    known = Dictionary((NumberEntry("day", 0, 1),))
    days = pd.DataFrame({"day": pd.date_range("2020-01-17", periods=3)})
    for frame in (days, pl.DataFrame({"day": pl.Series(days["day"].to_numpy())})):
        encoder = pv.TableEncoder(dictionary=known).fit(frame)
        with pytest.raises(ValueError, match="column 'day' holds dates") as caught:
            encoder.transform(frame)
        assert "--" not in str(caught.value)
