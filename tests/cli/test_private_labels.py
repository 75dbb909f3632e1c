"""No error tells a label, or which row has it."""

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main

DP = "--target status --label-dp --aim predict --epsilon 3 --delta 1e-6 --y-bounds -4 4"
AVERAGE = "--target status --on-average --sigma 0.1 --lam 5"
SENTENCE = (
    "privasso: error: the labels must be one column of finite numbers; they hold something else, "
    "and which is not shown because labels are private. Name another target, remove the rows "
    "without a label, or code two classes as 0 and 1; "
    "see privasso fit --help\n"
)
ENDINGS = ("csv", "parquet", "arrow", "npz")
#: One label of fifty.
CELLS = {"text": "HIV-positive", "missing": None, "nan": float("nan"), "infinite": float("inf")}
BY_TYPE = {"dates": pl.Series(["2020-01-17"] * 50).str.to_date(), "text": ["HIV-positive"] * 50}


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


def labels(cell, kind="numbers"):
    numbers = [1.5 if k % 3 else -0.5 for k in range(50)]
    numbers[37] = cell
    return [None if x is None else str(x) for x in numbers] if kind == "text" else numbers


def fitted(ending, cell, options=DP):
    """The coefficients, None if there is an error; 0 is the middle of the bounds."""
    write(ending, labels(cell, "text" if isinstance(cell, str) else "numbers"))
    if ending == "npz":
        options = options.replace("status", "y")
    code = main(["fit", f"data.{ending}", *options.split(), "--seed", "1", "--out", "model.json"])
    return pv.load("model.json").coef.tolist() if code == 0 else None


# Outside of the tests each command is a process of its own, which fits once.
@pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_label_that_is_no_number_changes_itself_alone(folder, capsys, ending):
    """It counts as the middle of the bounds, and an infinite one as the bound; see `LabelDP`."""
    del folder
    middle, bound, other = (fitted(ending, number) for number in (0.0, 4.0, 1.5))
    assert middle is not None
    assert bound is not None
    assert other not in (middle, bound)
    for cell, label in CELLS.items():
        if (ending, cell) == ("npz", "text"):
            continue
        assert fitted(ending, label) == (bound if cell == "infinite" else middle), cell
        capsys.readouterr()
        assert fitted(ending, label, AVERAGE) is None  # no guarantee that a refusal would break
        assert f"\n{capsys.readouterr().err}".endswith(f"\n{SENTENCE}"), cell


@pytest.mark.parametrize(
    ("ending", "kind"),
    [("parquet", "dates"), ("arrow", "dates"), ("npz", "dates"), ("npz", "text")],
)
def test_labels_that_are_none_by_their_type_are_refused(folder, capsys, ending, kind):
    write(ending, BY_TYPE[kind])
    options = DP.replace("status", "y") if ending == "npz" else DP
    assert main(["fit", f"data.{ending}", *options.split(), "--out", "model.json"]) == 2
    error = capsys.readouterr().err
    assert "does not hold numbers by its type" in error or "holds objects" in error
    assert "HIV" not in error
    assert {path.name for path in folder.iterdir()} == {f"data.{ending}"}


def test_text_that_comes_late_in_a_csv_file_is_not_quoted(folder, capsys):
    lines = [f"{k % 7},{'positive' if k == 15_000 else 1}" for k in range(20_000)]
    (folder / "data.csv").write_text("a,status\n" + "\n".join(lines) + "\n")
    for command in (f"{DP} --dry-run", f"{DP} --seed 0 --out o.json"):
        assert main(["fit", "data.csv", *command.split()]) == 0
        assert "positive" not in capsys.readouterr().err


def test_a_row_that_cannot_be_parsed_is_not_quoted(folder, capsys):
    (folder / "data.csv").write_text("a,status\n1,2\n3,HIV,positive,4\n")
    assert main(["fit", "data.csv", *DP.split(), "--out", "model.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("privasso: error: data.csv: line 3 does not fit the header")
    assert "HIV" not in error


def test_a_release_without_names_does_not_take_labels_for_covariates(folder, capsys):
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
