"""`--classes`: labels with names give the model of labels 0 and 1, in every kind of file."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import privasso as pv
from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

BUDGET = "--target ill --epsilon 1 --delta 1e-6 --seed 3"
LABELS, RECORDS = f"--label-dp {BUDGET}", f"--record-dp {BUDGET} --bounds bounds.csv"
M = 500
#: What a label can be, by what it is coded as; None stands for a missing one.
CELLS = {
    0: ["No", " No ", "No\t"],
    1: ["Yes", "  Yes"],
    None: ["", "NA", "no", "YES", "1", "maybe"],
}


def study():
    """Ages, doses, and labels of which some are missing."""
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(18, 90, M).round(), rng.uniform(0, 500, M).round(3)
    ill = (rng.random(M) < expit(0.05 * (age - 55) - 0.006 * (dose - 250))).astype(int)
    labels = [None if k % 9 == 0 else int(x) for k, x in enumerate(ill)]
    return pl.DataFrame({"age": age, "dose": dose, "ill": labels})


def written(names):
    """The same labels in other words, each in several spellings."""
    words = [names[x][k % len(names[x])] for k, x in enumerate(study()["ill"])]
    return study().with_columns(pl.Series("ill", words))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study().write_csv("coded.csv")
    written(CELLS).write_csv("named.csv")
    Path("bounds.csv").write_text("name,low,high\nage,18,98\ndose,0,500\n")
    return tmp_path


def run(line, code=0):
    assert main(shlex.split(line)) == code


def coefficients(data, options):
    run(f"fit {data} {options} --out model.json --force")
    model = pv.load("model.json")
    return [*model.coef, model.intercept, model.lam]


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
def test_every_kind_of_file_gives_the_model_of_zeros_and_ones(privacy):
    expected = coefficients("coded.csv", f"{privacy} --binary")
    frame, names = written(CELLS), f"{privacy} --classes No,Yes"
    frame.write_csv("named.tsv", separator="\t")
    frame.write_csv("semicolons.csv", separator=";")
    frame.write_csv("quoted.csv", quote_style="always")
    frame.write_parquet("named.parquet")
    frame.with_columns(pl.col("ill").cast(pl.Categorical)).write_ipc("named.arrow")
    for data in ("named.csv", "named.tsv", "semicolons.csv", "quoted.csv", "named.parquet",
                 "named.arrow"):  # fmt: skip
        assert coefficients(data, names) == expected, data
    assert pv.load("model.json").classes == ("No", "Yes")


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
def test_names_that_are_numbers(privacy):
    expected = coefficients("coded.csv", f"{privacy} --binary")
    assert coefficients("coded.csv", f"{privacy} --classes 0,1") == expected
    assert pv.load("model.json").classes == (0, 1)
    written({0: ["1", "1.0", " 1"], 1: ["2", "2e0"], None: ["", "0", "3", "Yes"]}).write_csv(
        "t.csv"
    )
    assert coefficients("t.csv", f"{privacy} --classes 1,2") == expected
    assert pv.load("model.json").classes == (1, 2)
    typed = study().with_columns(pl.col("ill") + 1)
    typed.write_parquet("typed.parquet")
    assert coefficients("typed.parquet", f"{privacy} --classes 1,2") == expected
    study().with_columns(pl.col("ill").cast(bool)).write_parquet("flags.parquet")
    assert coefficients("flags.parquet", f"{privacy} --classes false,true") == expected
    texts = typed.with_columns(pl.col("ill").cast(str))
    texts.write_parquet("texts.parquet")
    assert coefficients("texts.parquet", f"{privacy} --classes 1,2") == expected
    X, y = typed.select("age", "dose").to_numpy(), typed["ill"].cast(float).to_numpy()
    np.savez("typed.npz", X=X, ill=y, y=y, feature_names=["age", "dose"])
    options = privacy.replace("--target ill", "--target y")
    assert coefficients("typed.npz", f"{options} --classes 1,2") == expected
    if privacy is RECORDS:  # the names of rows are no field of the header
        lines = Path("named.csv").read_text().splitlines()
        Path("rows.csv").write_text("\n".join([lines[0], *(f"r,{one}" for one in lines[1:])]))
        assert coefficients("rows.csv", f"{privacy} --classes No,Yes --row-names") == expected


def test_the_order_says_which_class_is_positive():
    one = coefficients("named.csv", f"{LABELS} --classes No,Yes --lam 50")
    other = coefficients("named.csv", f"{LABELS} --classes Yes,No --lam 50")
    assert np.sign(one[0]) == -np.sign(other[0]) != 0


def test_where_names_are_shown(capsys):
    files = "--out m.json --report r.html --keep-release k.json"
    run(f"fit named.csv {LABELS} --classes 'No, Yes' {files}")
    said = capsys.readouterr().out
    assert "Labels are read as 'No' and 'Yes', the positive class; any other is a missing" in said
    assert "Name other classes" not in said
    page = Path("r.html").read_text(encoding="utf-8")
    assert "log odds of &#x27;Yes&#x27;, for" in page or "log odds of 'Yes', for" in page
    assert json.loads(Path("m.json").read_text())["classes"] == ["No", "Yes"]
    assert pv.load("m.json").classes == ("No", "Yes")
    # What the report says to solve again with knows the names.
    again = re.search(r"privasso fit [^<\n]*--from-release k.json [^<\n]*--lam LAMBDA", page)
    assert again is not None
    assert re.search(r"--classes (&#x27;|')No, Yes", again[0])
    run("fit named.csv --from-release k.json --classes No,Yes --lam 40 --out again.json")
    assert pv.load("again.json").classes == ("No", "Yes")
    assert "Labels are read" not in capsys.readouterr().out  # none was
    run("predict m.json named.csv --out p.csv")
    assert f"{M} probabilities of 'Yes' in p.csv" in capsys.readouterr().out


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
def test_what_is_read_is_said_from_the_options_alone(privacy, capsys):
    """Whether all labels are of the classes, or none is, nobody learns from the sentence."""
    said = []
    for data, options in (("coded.csv", "--binary"), ("named.csv", "--binary")):
        run(f"fit {data} {privacy} {options} --dry-run")
        dry = capsys.readouterr().out
        run(f"fit {data} {privacy} {options} --out m.json --force")
        told = (dry + capsys.readouterr().out).splitlines()
        said.append([line for line in told if "Labels are read as" in line])
    assert said[0] == said[1]
    sentence = (
        "Labels are read as 0 and 1, the positive class; any other is a missing one. "
        "Name other classes with --classes."
    )
    assert said[0] == [sentence, sentence]


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
@pytest.mark.parametrize("cell", ['"SE""CRET"', "\x00", "Yes\xff", '"a,Yes"', "é" * 5000, "1e400"])
def test_a_strange_label_is_a_missing_one(privacy, cell, capsys):
    lines = Path("named.csv").read_text().splitlines()
    for name, label in (("odd", cell), ("none", "")):
        lines[4] = f"61.0,100.0,{label}"
        Path(f"{name}.csv").write_bytes("\n".join(lines).encode("latin-1"))
    options = f"{privacy} --classes No,Yes"
    assert coefficients("odd.csv", options) == coefficients("none.csv", options)
    assert "SECRET" not in "".join(capsys.readouterr())


BAD = "must be two different names"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--classes Yes", BAD),
        ("--classes Yes,Yes", BAD),
        ("--classes 'Yes, Yes '", BAD),
        ("--classes 1,1.0", BAD),
        ("--classes ''", BAD),
        ("--classes ,", BAD),
        ("--classes No,", BAD),
        ("--classes NA,Yes", BAD),
        ("--classes No,Yes,Maybe", BAD),
        ("--classes 'No\nYes,x'", BAD),
        ("--classes No,Yes --y-bounds 0 1", "--classes and --y-bounds cannot be given together"),
        ("--classes No,Yes --loss huber", "--classes and --loss both say"),
        ("--classes No,Yes --memory 4GB", "--classes needs the whole table in memory"),
    ],
)
def test_wrong_names(options, message, capsys):
    for command in ("fit named.csv", "audit named.csv"):
        if command.startswith("audit") and "--memory" in options:
            continue
        out = "--out m.json"
        run(f"{command} {LABELS} {options} {out}", code=2)
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not Path("m.json").exists()


def test_names_that_a_type_does_not_have(capsys):
    """The type that a file states is public; what a CSV file holds is not."""
    study().write_parquet("coded.parquet")
    written(CELLS).write_parquet("named.parquet")
    np.savez("coded.npz", X=np.ones((9, 1)), y=np.ones(9))
    for data, options, message in (
        ("coded.parquet", "--classes No,Yes", "holds numbers by its type; name two numbers"),
        ("named.parquet", "--binary", "holds text by its type; name its two classes"),
        ("coded.npz", "--target y --classes No,Yes", "holds numbers by its type"),
    ):
        for more in ("--dry-run", "--out m.json"):
            run(f"fit {data} {LABELS} {options} {more}", code=2)
            error = capsys.readouterr().err
            assert message in error
            assert error.count("\n") == 1


def test_words_that_a_linear_fit_would_take_for_missing(capsys):
    """One label may be why a whole column is text, so that no refusal may depend on it."""
    written(CELLS).write_csv("named.csv")
    written(CELLS).write_parquet("named.parquet")
    for fit in ("named.csv --dry-run", "named.csv --out a.json", "named.parquet --out b.json"):
        run(f"fit {fit} {LABELS} --y-bounds 0 1")
        assert "Labels are read as numbers; any other is missing." in capsys.readouterr().out


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
def test_evaluation(privacy, capsys):
    def evaluated(data, options=""):
        run(f"evaluate model.json {data} {privacy} {options} --metrics auc,log-loss")
        return capsys.readouterr().out

    coefficients("coded.csv", f"{privacy} --binary")
    capsys.readouterr()
    plain = evaluated("coded.csv")
    assert evaluated("named.csv", "--classes No,Yes").split("\n", 1)[1] == plain.split("\n", 1)[1]
    coefficients("named.csv", f"{privacy} --classes No,Yes")
    capsys.readouterr()
    named = evaluated("named.csv")  # the names of the model
    assert named.startswith("Labels are read as 'No' and 'Yes'")
    assert named.split("\n", 1)[1] == plain.split("\n", 1)[1]
    assert evaluated("coded.csv", "--classes 0,1") == plain.replace(
        " Name other classes with --classes.", ""
    )


def test_evaluation_of_names_from_python(capsys):
    """Names with commas and quotes, as a fit in Python can have them."""
    frame, names = study().drop_nulls(), ('No, "never"', "Yes")
    words, X = np.array(names)[frame["ill"].to_numpy()], frame.select("age", "dose")
    privacy = pv.LabelDP(1.0, 1e-6, (0, 1))
    found = []
    for labels, classes in ((frame["ill"].to_numpy(), (0, 1)), (words, names)):
        est = pv.PrivateLogisticLasso(privacy=privacy, classes=classes, random_state=0)
        pv.save(est.fit(X, labels), "model.json")
        frame.with_columns(pl.Series("ill", labels)).write_csv("labels.csv")
        run(f"evaluate model.json labels.csv {LABELS} --json")
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_evaluation_of_a_linear_model(capsys):
    run(f"fit coded.csv {LABELS} --y-bounds 0 1 --out model.json")
    capsys.readouterr()
    run(f"evaluate model.json coded.csv {LABELS} --classes 0,1", code=2)
    assert "--classes is for a model of two classes" in capsys.readouterr().err


@pytest.mark.parametrize("privacy", [LABELS, RECORDS], ids=["labels", "records"])
def test_an_audit_attacks_the_same_fit(privacy, capsys):
    frame = written({0: [" No"], 1: ["Yes"], None: ["Yes"]})
    frame.write_csv("full.csv")
    codes = pl.col("ill").str.strip_chars().replace_strict({"No": 0, "Yes": 1})
    frame.with_columns(codes).write_csv("codes.csv")
    said = []
    for data, options in (("full.csv", "--classes No,Yes"), ("codes.csv", "--binary")):
        run(f"audit {data} {privacy} {options} --releases 20 --row 3 --json")
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]


def test_genotypes_are_cases_and_controls_unless_named():
    from privasso.cli._fit import FitSettings
    from privasso.cli._fit_read import coded

    labels = np.array([1.0, 2.0, 0.0, np.nan])
    for name, classes, expected in (
        ("g.bed", None, [0, 1, np.nan, np.nan]),
        ("g.bed", "0,1", [1, np.nan, 0, np.nan]),
        ("g.csv", None, [1, np.nan, 0, np.nan]),
        ("g.csv", "2,1", [1, 0, np.nan, np.nan]),
    ):
        settings = FitSettings(Path(name), binary=True, classes=classes)
        np.testing.assert_array_equal(coded(settings, labels), expected)
