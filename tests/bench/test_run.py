"""The runner: what is kept, what is run again, and what the page says."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn import metrics

from bench.real import contenders, page, run
from bench.real.__main__ import main
from bench.real.cells import Cell, Scores, cells, read, split, write
from bench.real.summary import Row, better, close_share, counts, duels, margins
from bench.real.task import TASKS, area, log_loss, r_squared

CELL = Cell("labels", "diabetes", "noisy-products", None, 3.0)


@pytest.fixture
def in_this_process(monkeypatch):
    """A pool that runs its work at once."""

    class Pool:
        def __init__(self, jobs, mp_context):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *details):
            return None

        def submit(self, function, *arguments):
            done = run.Future()
            done.set_result(function(*arguments))
            return done

    monkeypatch.setattr(run, "ProcessPoolExecutor", Pool)
    for name in run._THREADS:
        monkeypatch.setenv(name, "1")


def test_a_split_divides_the_rows_and_is_the_same_for_all_methods():
    data = split(CELL, 4)
    assert (len(data.y), len(data.y_test)) == (309, 133)
    other = split(Cell("labels", "diabetes", "no-privacy", None, None), 4)
    assert (data.X == other.X).all()
    assert data.seed == split(Cell("labels", "diabetes", "label-noise", None, 3.0), 4).seed
    assert data.seed != split(CELL, 5).seed
    assert not np.array_equal(data.y, split(CELL, 5).y)


def test_standardised_columns_take_mean_and_deviation_from_the_training_rows():
    data = split(Cell("labels", "diabetes", "privasso", "standardised", 1.0), 0)
    assert data.X.mean(axis=0) == pytest.approx(np.zeros(10), abs=1e-12)
    assert data.X.std(axis=0) == pytest.approx(np.ones(10))
    assert np.abs(data.X_test.mean(axis=0)).max() > 1e-3


def test_what_does_not_depend_on_form_or_guarantee_is_run_once():
    found = cells(TASKS["labels"], ["diabetes"], [1.0, 3.0], ["raw", "standardised"], set())
    names = [cell.contender for cell in found]
    assert names.count("no-privacy") == 1
    assert names.count("label-noise") == 2
    assert names.count("privasso") == 4


def test_scores_are_kept_until_the_method_changes(tmp_path, monkeypatch):
    scores = Scores({"noisy products": {0: 0.25, 1: None}}, {0: 0.1, 1: 0.2}, {1: "why"})
    write(tmp_path, CELL, scores)
    assert read(tmp_path, CELL) == scores
    contenders._hash.cache_clear()
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: original(path) + b"#")
    assert read(tmp_path, CELL) == Scores()
    contenders._hash.cache_clear()


@pytest.mark.usefixtures("in_this_process")
def test_a_second_run_adds_only_what_is_missing(tmp_path, monkeypatch):
    console = Console(quiet=True)
    first = run.complete([CELL], 2, tmp_path, 1, console)[CELL]
    ran = []
    monkeypatch.setattr(run, "one", lambda cell, number: ran.append(number) or ({}, 0.0, "no"))
    second = run.complete([CELL], 3, tmp_path, 1, console)[CELL]
    assert ran == [2]
    assert second.failures == {2: "no"}
    column = second.by_column["noisy products"]
    assert {number: column[number] for number in (0, 1)} == first.by_column["noisy products"]


def test_the_same_split_gives_the_same_score():
    assert run.one(CELL, 0)[0] == run.one(CELL, 0)[0]


@pytest.mark.usefixtures("in_this_process")
def test_the_tables_have_every_row_and_say_how_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.page.DATA", tmp_path)
    (tmp_path / "commands.csv").write_text("file,command\n", encoding="utf-8")
    out = tmp_path / "scores.json"
    options = ["labels", "--epsilon", "3", "--splits", "1", "--tables", "diabetes"]
    assert main([*options, "--keep", str(tmp_path / "kept"), "--write", "--out", str(out)]) == 0
    made = pl.read_csv(tmp_path / "real-labels.csv")
    assert made["form"].to_list() == ["raw", "standardised"]
    assert set(made["table"]) == {"diabetes"}
    facts = dict(pl.read_csv(tmp_path / "real-labels-facts.csv").iter_rows())
    assert (facts["tables"], facts["cells"]) == (1, 1)
    assert pl.read_csv(tmp_path / "real-labels-tables.csv")["rows × columns"][0] == "442 × 10"
    commands = dict(pl.read_csv(tmp_path / "commands.csv").iter_rows())
    assert commands["real-labels"] == f"python -m bench.real {' '.join(options)} --write"
    found = json.loads(out.read_text(encoding="utf-8"))
    assert len(found["rows"]) == 2
    own = found["rows"][0]["scores"]
    assert own["privasso, best λ"]["0"] >= own["privasso"]["0"]


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(("task", "table"), [("records", "diabetes"), ("binary", "tumours")])
def test_the_other_comparisons_run(tmp_path, capsys, task, table):
    keep = ["--keep", str(tmp_path)]
    assert main([task, "--epsilon", "3", "--splits", "1", "--tables", table, *keep]) == 0
    assert "no privacy" in capsys.readouterr().out


def test_a_rival_counts_in_its_better_form_and_a_cell_once():
    rows = [
        Row("a", "raw", 1.0, {"own": {0: 0.5}, "rival": {0: 0.1}, "no privacy": {0: 0.6}}),
        Row("a", "standardised", 1.0, {"own": {0: 0.5}, "rival": {0: 0.6}, "no privacy": {0: 0.6}}),
        Row("b", "raw", 1.0, {"own": {0: 0.4}, "rival": {0: 0.1}, "no privacy": {0: 0.6}}),
    ]
    assert [(row.table, row.form) for row in better(rows, "rival")] == [
        ("a", "standardised"),
        ("b", "raw"),
    ]
    task = replace(TASKS["labels"], own="own")
    facts = dict(page.facts(task, rows, 1).iter_rows())
    assert (facts["cells"], facts["tables that keep 80% at ε = 1"]) == ("2", "1")


def test_a_wrong_table_is_an_error_of_one_line(capsys):
    assert main(["labels", "--tables", "nothing"]) == 2
    assert "no regression table of the name nothing" in capsys.readouterr().err.replace("\n", " ")


def rows() -> list[Row]:
    better = {0: 0.5, 1: 0.6, 2: 0.7}
    worse = {0: 0.4, 1: 0.52, 2: 0.58}
    unsure = {0: 0.9, 1: 0.6, 2: 0.3}
    return [
        Row("a", "raw", 1.0, {"own": better, "rival": worse, "best": {0: 0.52, 1: 0.6, 2: 0.7}}),
        Row("b", "raw", 1.0, {"own": worse, "rival": better, "best": better}),
        Row("c", "raw", 1.0, {"own": better, "rival": unsure, "best": better}),
    ]


def test_wins_and_losses_are_beyond_one_standard_error_of_the_differences():
    assert counts(rows(), "own", "rival") == {"win": 1, "tie": 1, "loss": 1}
    # Differences of 0.10, 0.08 and 0.12: mean 0.1, standard error 0.02/√3.
    found = rows()[0].difference("own", "rival")
    assert found.mean == pytest.approx(0.1)
    assert found.error == pytest.approx(0.02 / np.sqrt(3.0))
    assert close_share(rows(), "own", "best") == pytest.approx(2.0 / 3.0)
    assert margins(rows(), "own", "rival") == pytest.approx([-0.1, 0.0, 0.1])


def test_failed_fits_are_counted_and_not_averaged():
    found = Row("a", "raw", 1.0, {"own": {0: 0.5, 1: None, 2: 0.7}}).mean("own")
    assert (found.mean, found.failed) == (pytest.approx(0.6), 1)
    assert np.isnan(Row("a", "raw", 1.0, {"own": {0: None}}).mean("own").mean)


def test_scores():
    y = np.array([0.0, 1.0, 1.0, 0.0])
    assert r_squared(y, np.full(4, 0.5)) == 0.0
    assert r_squared(y, y) == 1.0
    assert area(y, np.array([0.1, 0.9, 0.8, 0.85])) == 0.75
    odds = np.array([-1.0, 2.0, -0.5, 0.3])
    assert log_loss(y, odds) == pytest.approx(metrics.log_loss(y, 1 / (1 + np.exp(-odds))))


def test_columns_are_compared_with_those_that_protect_the_same():
    scores = {"privasso, labels": {0: 0.8, 1: 0.9}, "randomised response": {0: 0.7, 1: 0.7}}
    found = [Row("a", "raw", 1.0, {**scores, "diffprivlib": {0: 0.1, 1: 0.2}})]
    assert duels(TASKS["binary"], found) == [("privasso, labels", "randomised response")]
    assert ("privasso", "rival") in duels(TASKS["records"], rows())


def test_a_peer_that_does_not_work_here_is_named_without_a_path(monkeypatch):
    def broken(*data, **settings):
        raise ImportError("cannot import name 'A' from 'b' (/somewhere/b.so)")

    monkeypatch.setattr("bench.real.peers.diffprivlib_linear.fit", broken)
    found = contenders._trial("diffprivlib_linear")
    assert found.endswith("cannot import name 'A' from 'b'")
    assert contenders._trial("adassp") == ""
