"""What README and the documentation show runs, and prints what they say it prints.

Each page is one test: its blocks run from top to bottom in one namespace and one folder. (The
known tools make a test of each block, and parallel workers would then share out a page.)
"""

import ast
import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from markdown_it import MarkdownIt
from sklearn.datasets import load_diabetes

import privasso as pv
from privasso.cli import main

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")
PAGES += sorted((ROOT / "docs").glob("*.md"))
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES += TUTORIALS
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

# These take minutes and have tests of their own: here only their options are parsed.
LONG = {"demo", "explore", "reproduce"}
QUICK = "--data-only"  # of the first
#: Releases of an audit; the number is not compared.
RELEASES = ("--releases", "20")
#: Files that a page writes in the shell.
WRITTEN = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END$", flags=re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
#: A remark of `predict` which the noise decides: the coefficients may lead beyond the bounds.
OUTSIDE = re.compile(r"^\d+ of them lay outside the bounds of the labels.*$", flags=re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@pytest.fixture
def given(tmp_path, monkeypatch, blank_pictures) -> dict[str, object]:
    """What the pages take for granted: covariates X, labels y, and data files in the folder."""
    monkeypatch.chdir(tmp_path)
    # Few releases confirm what an audit finds; their number is tested in its own room.
    monkeypatch.setattr("privasso.attacks._audit.CONFIRMING", 2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) * [0.1, 1.0, 10.0, 100.0]
    signal = X @ [5.0, 0.0, 0.0, 0.005]
    y = 5.0 + signal + 0.5 * rng.standard_normal(500)
    frame = pl.DataFrame(X, schema=["dose", "height", "age", "weight"])
    frame.write_csv("others.csv")
    frame.with_columns(pressure=120.0 + 20.0 * signal).write_csv("patients.csv")
    frame.with_columns(y=y).write_csv("data.csv")
    bounds = {"dose": 0.5, "height": 5, "age": 50, "weight": 500}
    lines = "".join(f"{name},{-limit},{limit}\n" for name, limit in bounds.items())
    (tmp_path / "bounds.csv").write_text(f"name,low,high\n{lines}")
    diabetes = load_diabetes(scaled=False)
    public = pl.DataFrame(diabetes.data, schema=list(diabetes.feature_names))  # pyright: ignore[reportAttributeAccessIssue]
    public.write_csv("public.csv")
    public.with_columns(progression=diabetes.target).write_csv("diabetes.csv")  # pyright: ignore[reportAttributeAccessIssue]
    return {"X": X, "y": y}


def blocks(page: Path):
    """Yield (language, text, number of the first line) of each code block."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            yield token.info.strip(), token.content, token.map[0] + 1


@every_page
def test_the_code_of_a_page_runs(page, given, capsys):
    for language, text, line in blocks(page):
        if language == "python":
            run_python("\n" * line + text, page, given)
        elif language in {"sh", "console"}:
            for command, shown in commands(text, prompt=language == "console"):
                run_command(command, shown, capsys)
        else:  # directives of the documentation builder, or a language this test should learn
            assert language.startswith("{"), f"{page.name}:{line}: a block of {language!r}"


def run_python(text: str, page: Path, names: dict[str, object]) -> None:
    """Run a block; an expression whose comment starts with numbers has that value."""
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        comment = lines[(statement.end_lineno or 0) - 1].partition("  # ")[2]
        stated = NUMBER.findall(comment)
        if stated and value is not None:
            # The type that NumPy shows around a number has digits, too: np.float64(0.5).
            found = NUMBER.findall(re.sub(r"np\.\w+\(", "(", repr(value)))
            assert len(stated) >= len(found) > 0, (comment, value)
            for said, number in zip(stated, found, strict=False):
                assert agree(said, number), f"{comment!r} is not {value!r}"


def agree(said: str, number: str) -> bool:
    """Whether a number is the one that was said, to the digits that were said.

    >>> agree("−0.006", "-0.0057"), agree("0.251", "0.2516"), agree("2e-6", "1.8e-6")
    (True, False, True)
    """
    mantissa, _, exponent = said.replace("−", "-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(mantissa + "e" + (exponent or "0")) - float(number)) <= 0.5001 * unit


def commands(text: str, *, prompt: bool):
    """Yield (words, output shown or None) of each command of a shell block."""
    text = WRITTEN.sub(
        lambda found: shlex.join(("write", *found.groups())).replace("\n", "\\n"), text
    )
    lines = text.replace("\\\n", " ").splitlines()
    if not prompt:
        for line in lines:
            if words := shlex.split(line, comments=True):
                yield words, None
        return
    for part in re.split(r"^\$ ", "\n".join(lines), flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield shlex.split(line), output


def run_command(words: list[str], shown: str | None, capsys) -> None:
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(words[1:]) <= set(targets)
        return
    if words[0] == "source":
        assert words[1] == ".venv/bin/activate"
        return
    if words[0] == "write":
        Path(words[1]).write_text(words[2].replace("\\n", "\n"), encoding="utf-8")
        return
    assert words[0] == "privasso"
    parsed_only = words[1] in LONG and QUICK not in words
    # A dry run draws no noise: what it prints is always the same.
    numbers = "--dry-run" in words
    arguments = words[1:] + ["--help"] * parsed_only
    if RELEASES[0] in words:
        arguments[arguments.index(RELEASES[0]) + 1] = RELEASES[1]
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        if not (numbers and shown):
            # A forecast whose numbers are not compared needs few simulated fits.
            patch.setattr("privasso.forecast._scheme._MOST", 6)
            patch.setattr("privasso.forecast._records._FITS", 2)
        code = main(arguments)
    printed = capsys.readouterr()
    assert code == 0, f"{shlex.join(words)}\n{printed.err}"
    if shown is not None and not parsed_only:
        pattern = re.escape(plain(shown, numbers)).replace(r"\ …\ ", r"\ (?:.*\ )?")
        pattern = pattern.replace("…", ".*")
        assert re.fullmatch(pattern, plain(printed.out, numbers)), printed.out


def plain(output: str, numbers: bool) -> str:
    """Output without its layout and, if they depend on the noise, its numbers and remarks."""
    return " ".join((output if numbers else NUMBER.sub("#", OUTSIDE.sub("", output))).split())


@pytest.fixture(scope="module")
def known_options() -> set[str]:
    """Every option of every command, from the help."""
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, redirect_stdout(out):
        patch.setenv("COLUMNS", "200")  # a narrow terminal cuts long names
        main(["--help"])
        names = re.findall(r"^│ (\w+) ", out.getvalue(), flags=re.MULTILINE)
        assert {"fit", "predict", "theory"} <= set(names)
        for name in names:
            assert main([name, "--help"]) == 0
        return set(OPTION.findall(out.getvalue()))


@every_page
def test_options_and_names_in_the_text_exist(page, known_options):
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    inline = [child for token in tokens for child in token.children or []]
    code = [child.content for child in inline if child.type == "code_inline"]
    for name in re.findall(r"\bpv\.(\w+)", " ".join(code)):
        assert hasattr(pv, name), f"{page.name} speaks of pv.{name}"
    ours = " ".join(words for words in code if words.startswith(("--", "privasso ")))
    assert set(OPTION.findall(ours)) <= known_options


@pytest.mark.slow
def test_tutorials_succeed_in_a_fresh_clone(tmp_path):
    """Word for word: a clone, its own environment, and each page from top to bottom in a shell."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    # Without a second terminal the shell must stop at the first command that fails.
    for page in TUTORIALS:
        lines = ["set -e"]
        for language, text, _ in blocks(page):
            if language == "sh":
                lines.append(text)
            elif language == "console":
                lines += re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, flags=re.MULTILINE)
            else:
                raise AssertionError(f"{page.name} has a block of {language!r}")
        ended = subprocess.run(
            ["bash", "-c", "\n".join(lines)], cwd=clone, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{page.name}: {ended.stderr[-2000:]}"
    written = {"model.json", "report.html", "predictions.csv", "model.sql", "audit.html"}
    assert written <= {path.name for path in clone.iterdir()}
