"""The command line as a whole: version, pipes, wrong options, the first run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privasso as pv
from privasso.cli import main
from privasso.cli._app import COMMANDS

DP = "--target y --label-dp --epsilon 1 --delta 1e-5 --y-bounds -9 9"


@pytest.fixture
def built_once():
    """Each command sets up its options here, as it does outside of the tests."""


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) * [1.0, 100.0]
    y = X @ [1.0, 0.02] + rng.standard_normal(200)
    pl.DataFrame({"small": X[:, 0], "large": X[:, 1], "y": y}).write_csv("data.csv")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"privasso {pv.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_help_has_an_example_and_no_flag_seems_to_take_a_value(command, capsys):
    assert main([command.__name__, "--help"]) == 0
    text = capsys.readouterr().out
    assert (
        f"privasso {command.__name__} " in text.partition("Options")[0].partition("Usage")[2][60:]
    )
    for line in text.splitlines():
        assert "<bool>" not in line or "--help" in line  # the last one is Typer's own


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predict model.json", "see privasso predict --help"),
        ("predic", "Did you mean 'predict'? See privasso --help"),
        ("fit data.csv --y-bounds 1,2 --out m.json", "two numbers with a space between them"),
        (
            "design",
            "exactly one of --max-onavekl, --max-advantage, --max-error",
        ),
        ("design --max-error 1 --max-onavekl 2", "--max-onavekl and --max-error were given"),
        ("fit data.csv", "try privasso fit data.csv --target COLUMN --label-dp"),
        (
            "fit data.csv --target y --label-dp --epsilon 1 --delta 1e-6 --y-bounds 9 1 --out m",
            "--y-bounds must increase",
        ),
        (
            "fit data.csv --target y --label-dp --epsilon -1 --delta 1e-6 --y-bounds 1 9 --out m",
            "--epsilon must be positive",
        ),
    ],
)
def test_wrong_options_name_the_next_command(capsys, words, message):
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_every_error_names_a_command(data, capsys):
    for words in ("fit data.csv --target z --out m.json", "export m.json --out m.txt", "audit"):
        assert main(words.split()) == 2
        assert f"privasso {words.split()[0]} --help" in capsys.readouterr().err


def test_quiet_and_json_are_everywhere(data, capsys):
    words = ["fit", "data.csv", *DP.split(), "--out", "m.json"]
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["export", "m.json", "--out", "m.sql", "-q"]) == 0
    assert capsys.readouterr().out == ""
    made = ["ledger", "create", "b.json", "--epsilon", "1", "--delta", "1e-6", "--json", "-q"]
    assert main(made) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == 1.0
    assert main(["bounds", "data.csv", "--target", "y", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == ["small", "large"]
    for command in [*(each.__name__ for each in COMMANDS), "ledger show", "ledger create"]:
        assert main([*command.split(), "--help"]) == 0
        said = capsys.readouterr().out
        assert "--quiet" in said, command
        assert "--json" in said, command


def test_no_colour_where_none_is_wanted(data, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["theory"]) == 0
    assert "\x1b[3" not in capsys.readouterr().out


def test_a_reader_that_goes_away(data):
    """The fit ends well although nobody reads its output."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "privasso", "fit", "data.csv", *DP.split(), "--out", "m.json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "compiling its kernels" not in line]
    assert said == []
    assert pv.load("m.json").n_features == 2


def test_coefficients_in_the_terminal(data, capsys):
    assert main(["fit", "data.csv", *DP.split(), "--epsilon", "20", "--out", "m.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    model = pv.load("m.json")
    (shown,) = (line.split() for line in lines if line.startswith("  large "))
    assert float(shown[1]) == pytest.approx(model.coef[1], rel=1e-3)
    assert float(shown[2]) == pytest.approx(100.0 * model.coef[1], rel=0.2)
    (shown,) = (line.split() for line in lines if line.startswith("  (intercept)"))
    assert float(shown[1]) == pytest.approx(model.intercept, rel=1e-3)


def test_advice_where_every_coefficient_is_zero(data, capsys):
    kept = ["--keep-release", "kept.json", "--report", "r.html"]
    assert main(["fit", "data.csv", *DP.split(), "--lam", "1e9", "--out", "m.json", *kept]) == 0
    out = capsys.readouterr().out
    assert "Every coefficient is zero" in out
    assert "--dry-run predicts what to expect" in out
    assert "--from-release kept.json" in out


def test_the_repeated_command_has_the_numbers_as_typed(data):
    assert main(["fit", "data.csv", *DP.split(), "--out", "m.json", "--report", "r.html"]) == 0
    with open("r.html", encoding="utf-8") as file:
        page = file.read()
    assert "--delta 1e-05" in page
    assert "--y-bounds -9 9" in page


def test_compiling_is_announced(data, tmp_path):
    """With an empty cache the first run says what it is doing."""
    script = (
        "from numba import njit\nfrom privasso.cli._progress import working\n"
        "with working('x'):\n    njit(lambda a: a + 1)(1)\n    njit(lambda a: a + 2)(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("compiling") == 1


@pytest.mark.parametrize(
    ("typed", "expected"), [("privasso fi", ["fit"]), ("privasso export --qu", ["--quiet"])]
)
def test_a_shell_completes_commands_and_options(typed, expected):
    """As the script that `privasso --show-completion bash` prints asks for it."""
    asked = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
        "_PRIVASSO_COMPLETE": "complete_bash",
    }
    found = subprocess.run(
        [str(Path(sys.executable).with_name("privasso"))],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == expected
