"""`privasso explore` starts a server, or writes a page."""

import json
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import polars as pl
import pytest

from privasso.cli import main


def test_a_table_is_explored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"a": [0.0, 2.0] * 6, "b": [0.0, 20.0] * 6, "y": range(12)})
    frame.with_columns(ward=pl.lit("x"), same=pl.lit(1.0)).write_csv("data.csv")
    command = ["explore", "data.csv", "--target", "y", "--no-browser", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "privasso", *command], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        url = json.loads(running.stdout.readline())["url"]
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
    spread = np.array([1.0, 10.0])
    relative = spread / np.sqrt(np.mean(spread**2))
    assert " ".join(f"{x:.6g}" for x in relative) in text
    assert '"alpha", "label"' in text
    start = text.partition('"name": "alpha"')[2].partition('"start": ')[2]
    assert start.startswith("6.0,")  # 12 rows, two columns that vary


def test_a_page_for_others(tmp_path, monkeypatch, capsys):
    from privasso import explore

    monkeypatch.setattr(explore, "static_page", lambda: "<p>")
    assert main(["explore", "--out", str(tmp_path / "p.html")]) == 0
    assert (tmp_path / "p.html").read_text() == "<p>"
    assert "open it anywhere" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--port 70000", "from 0 to 65535"),
        ("--out page.txt", "ends in .html"),
        ("data.csv --out page.html", "leave the table out"),
        ("data.csv", "0 columns of numbers that vary"),
        ("data.csv --target z", "z"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"a": ["x", "y"], "b": [1.0, 1.0]}).write_csv("data.csv")
    assert main(["explore", "--no-browser", *words.split()]) == 2
    assert message in capsys.readouterr().err
