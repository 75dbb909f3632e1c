"""No error tells a label, or which row has it."""

import numpy as np
import polars as pl
import pytest

from privasso.cli import main

DP = "--target status --label-dp --epsilon 3 --delta 1e-6 --y-bounds -4 4"
SENTENCE = (
    "privasso: error: the labels must be one column of finite numbers; they hold something else, "
    "and which is not shown because labels are private. Name another target, remove the rows "
    "without a label, or code two classes as 0 and 1; "
    "see privasso fit --help\n"
)
LABELS = {
    "text": ["HIV-positive" if k == 37 else "0.5" for k in range(50)],
    "text alone": ["HIV-positive"] * 50,
    "missing": [None if k == 37 else 1.5 for k in range(50)],
    "all missing": [None] * 50,
    "nan": [float("nan") if k == 37 else 1.5 for k in range(50)],
    "infinite": [float("inf") if k == 37 else 1.5 for k in range(50)],
    "dates": pl.Series(["2020-01-17"] * 50).str.to_date(),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(ending, labels):
    a = np.random.default_rng(0).standard_normal(50)
    frame = pl.DataFrame({"a": a, "status": labels})
    if ending == "csv":
        frame.write_csv("data.csv")
    elif ending == "npz":
        arrays = {"feature_names": np.array(["a"]), "X": a[:, None]}
        np.savez("data.npz", **arrays, y=frame["status"].to_numpy())
    else:
        getattr(frame, "write_parquet" if ending == "parquet" else "write_ipc")(f"data.{ending}")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "npz"])
@pytest.mark.parametrize("labels", LABELS)
def test_bad_labels_are_refused_without_saying_which(folder, capsys, ending, labels):
    write(ending, LABELS[labels])
    options = DP.replace("status", "y") if ending == "npz" else DP
    assert main(["fit", f"data.{ending}", *options.split(), "--out", "model.json"]) == 2
    error = capsys.readouterr().err
    typed = ("dates",) if ending != "npz" else ("dates", "text", "text alone")
    if ending != "csv" and labels in typed:  # the type of the column is public
        assert "does not hold numbers by its type" in error or "holds objects" in error
        assert "HIV" not in error
    else:
        assert error == SENTENCE
    assert {path.name for path in folder.iterdir()} == {f"data.{ending}"}


@pytest.mark.parametrize("command", [f"{DP} --dry-run", f"{DP} --out o.json"])
def test_text_that_comes_late_in_a_csv_file_is_not_quoted(folder, capsys, command):
    lines = [f"{k % 7},{'positive' if k == 15_000 else 1}" for k in range(20_000)]
    (folder / "data.csv").write_text("a,status\n" + "\n".join(lines) + "\n")
    code = main(["fit", "data.csv", *command.split()])
    error = capsys.readouterr().err
    assert (code, error) == ((0, "") if "--dry-run" in command else (2, SENTENCE))


def test_a_row_that_cannot_be_parsed_is_not_quoted(folder, capsys):
    (folder / "data.csv").write_text("a,status\n1,2\n3,HIV,positive,4\n")
    assert main(["fit", "data.csv", *DP.split(), "--out", "model.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("privasso: error: data.csv: line 3 does not fit the header")
    assert "HIV" not in error


def test_a_release_without_names_does_not_take_labels_for_covariates(folder, capsys):
    import privasso as pv

    X = np.random.default_rng(0).standard_normal((50, 2))
    est = pv.PrivateLasso(50.0, pv.LabelDP(3.0, 1e-6, (-4, 4))).fit(X, X[:, 0])
    pv.save_release(est.release_, "release.json")
    np.savez("data.npz", X=X, y=np.array(["HIV-positive"] * 50))
    assert (
        main(
            ["fit", "data.npz", "--from-release", "release.json", "--lam", "50", "--out", "m.json"]
        )
        == 0
    )
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "status": ["x"] * 50}).write_csv("data.csv")
    capsys.readouterr()
    assert (
        main(
            ["fit", "data.csv", "--from-release", "release.json", "--lam", "50", "--out", "n.json"]
        )
        == 2
    )
    assert "has 3 columns and the release" in capsys.readouterr().err
