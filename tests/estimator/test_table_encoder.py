"""`TableEncoder` in pipelines: the model of the command line, in files that read tables."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import privasso as pv
from privasso.cli import main

# Outside of the tests each fit has labels of its own.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

PRIVACY = pv.LabelDP(50.0, 1e-4, (-4, 4))


def table(m=300):
    rng = np.random.default_rng(0)
    region = rng.choice(["north", "east", "süd=1"], m, p=[0.5, 0.3, 0.2])
    age = [None if k % 11 == 5 else float(x) for k, x in enumerate(rng.normal(50, 9, m))]
    y = np.clip((region == "east") + 0.3 * rng.normal(size=m), -4, 4)
    return pl.DataFrame({"age": age, "region": region, "smoker": rng.random(m) < 0.3}), y


def pipeline(privacy: pv.privacy.Privacy = PRIVACY, lam=5.0, **options):
    return make_pipeline(
        pv.TableEncoder(**{"missing": "indicator", **options}),
        pv.PrivateLasso(lam, privacy, random_state=3),
    )


def test_the_command_line_fits_the_same_model(tmp_path):
    frame, y = table()
    fitted = pipeline().fit(frame, y)
    pv.save(fitted, tmp_path / "python.json")
    frame.with_columns(y=pl.Series(y)).write_parquet(tmp_path / "data.parquet")
    options = "--target y --label-dp --epsilon 50 --delta 1e-4 --y-bounds -4 4 --lam 5 --seed 3"
    words = [*options.split(), "--missing", "indicator", "--out", str(tmp_path / "shell.json")]
    assert main(["fit", str(tmp_path / "data.parquet"), *words]) == 0
    ours, theirs = pv.load(tmp_path / "python.json"), pv.load(tmp_path / "shell.json")
    names = ("age", "age is missing", "region=east", "region=süd=1", "smoker")
    assert ours.feature_names == theirs.feature_names == names
    assert ours.encoding == theirs.encoding
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-9)
    assert ours.predict(frame).tolist() == fitted.predict(frame).tolist()
    other = frame.with_columns(region=pl.lit("west"))
    with pytest.raises(ValueError, match=r"in 300 rows, first in row 1.*unknown='ignore'"):
        ours.predict(other)
    north = frame.with_columns(region=pl.lit("north"))
    assert ours.predict(other, unknown="ignore").tolist() == ours.predict(north).tolist()


def test_a_saved_model_predicts_from_frames_of_pandas(tmp_path):
    frame, y = table()
    fitted = pipeline().fit(pd.DataFrame(frame.to_dict(as_series=False)), y)
    pv.save(fitted, tmp_path / "m.json")
    model = pv.load(tmp_path / "m.json")
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(frame))
    pv.save(model, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "m.json").read_text()


def test_on_average_the_statement_tells_of_levels_and_claims_no_epsilon(tmp_path):
    frame, y = table()
    pv.save(pipeline(pv.OnAverage(1.0), 20.0).fit(frame, y), tmp_path / "m.json")
    text = str(pv.load(tmp_path / "m.json").guarantee)
    assert "the model shows them as they are in the data" in text
    assert "ε" not in text
    numbers = frame.select("smoker")
    pv.save(pipeline(pv.OnAverage(1.0), 20.0, missing="error").fit(numbers, y), tmp_path / "m.json")
    assert "as they are in the data" not in str(pv.load(tmp_path / "m.json").guarantee)


def test_other_pipelines_work_and_are_not_saved(tmp_path):
    frame, y = table()
    columns = make_column_transformer(
        (OneHotEncoder(), ["region"]), (StandardScaler(), ["smoker"]), sparse_threshold=0
    )
    fitted = make_pipeline(columns, pv.PrivateLasso(50.0, PRIVACY)).fit(
        pd.DataFrame(frame.to_dict(as_series=False)), y
    )
    with pytest.raises(ValueError, match="only a fitted TableEncoder followed by a PrivateLasso"):
        pv.save(fitted, tmp_path / "m.json")
    pv.save(fitted[-1], tmp_path / "m.json")
    assert pv.load(tmp_path / "m.json").n_features == 4
    scaled = make_pipeline(pv.TableEncoder(), StandardScaler(), pv.PrivateLasso(50.0, PRIVACY))
    scaled.fit(frame.drop("age"), y)
    with pytest.raises(ValueError, match="only a fitted TableEncoder followed by a PrivateLasso"):
        pv.save(scaled, tmp_path / "m.json")


def test_a_file_whose_encoding_does_not_fit_is_refused(tmp_path):
    frame, y = table()
    pv.save(pipeline().fit(frame, y), tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    for change in ({"feature_names": None}, {"feature_names": list("abcde")}, {"encoding": None}):
        (tmp_path / "bad.json").write_text(json.dumps({**document, **change}))
        with pytest.raises(pv.artefact.DocumentError, match="encoding"):
            pv.load(tmp_path / "bad.json")


def test_the_contract_of_transformers():
    frame, _ = table()
    encoder = pv.TableEncoder(missing="mean", categorical=["smoker"], unknown="ignore")
    assert clone(encoder).get_params() == encoder.get_params()  # pyright: ignore
    with pytest.raises(NotFittedError):
        encoder.transform(frame)
    encoder.fit(frame)
    assert encoder.get_feature_names_out().tolist() == [
        "age", "region=east", "region=süd=1", "smoker=true",
    ]  # fmt: skip
    assert encoder.feature_names_in_.tolist() == frame.columns
    pandas = encoder.set_output(transform="pandas").transform(frame)
    assert list(pandas.columns) == encoder.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="unknown must be 'error' or 'ignore'"):
        pv.TableEncoder(unknown="drop").fit(frame.drop("age")).transform(frame)  # pyright: ignore
    with pytest.raises(ValueError, match="missing must be one of"):
        pv.TableEncoder(missing="median").fit(frame)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"leave it out with drop\(\), or use it .* keep="):
        pv.TableEncoder().fit(pl.DataFrame({"id": range(20), "x": [0.5] * 20}))
