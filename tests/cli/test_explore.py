"""`privasso explore` starts a server, or writes a page."""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from browser import chromium
from privasso import explore
from privasso.cli import main
from privasso.tables import open_table


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


def test_the_address_is_not_on_the_command_line_of_the_browser(monkeypatch, capsys):
    """Other users see command lines, and whoever has the address may ask."""
    seen = []

    def shown(address):
        path = Path(address.removeprefix("file://"))
        seen.append((address, path.read_text(), path.stat().st_mode, path.parent.stat().st_mode))
        with chromium() as browser:
            page = browser.new_page()
            page.goto(address)
            page.wait_for_url("http://127.0.0.1:*/*/")
            seen.append(page.title())

    def serve(self):
        raise KeyboardInterrupt

    def opened(address):
        threading.Thread(target=server[0].serve_forever, daemon=True).start()
        shown(address)
        server[0].shutdown()

    server = []
    made = explore.Explorer.__init__

    def init(self, *arguments):
        made(self, *arguments)
        server.append(self)

    monkeypatch.setattr(explore.Explorer, "__init__", init)
    monkeypatch.setattr("webbrowser.open", opened)
    monkeypatch.setattr("privasso.explore.answer", lambda *_: None)
    serving = explore.Explorer.serve_forever
    monkeypatch.setattr(
        explore.Explorer, "serve_forever", lambda self: serve(self) if seen else serving(self)
    )
    assert main(["explore"]) == 130
    url = capsys.readouterr().out.splitlines()[0]
    (address, text, mode, folder), title = seen
    assert url.split("/")[3] not in address
    assert url in text
    assert (mode & 0o777, folder & 0o777) == (0o600, 0o700)
    assert not Path(address.removeprefix("file://")).exists()
    assert title == "privasso explorer"


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


def test_identifiers_are_no_columns_unless_they_are_kept(tmp_path, capsys):
    file = tmp_path / "data.csv"
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50), "id": range(50)})
    frame.write_csv(file)
    assert main(["explore", str(file), "--no-browser"]) == 2
    assert "'id' looks like an identifier" in capsys.readouterr().err
    table = open_table(file)
    assert len(explore.settings_of(table, exclude=["id"]).scales) == 2
    assert len(explore.settings_of(table, keep=["id"]).scales) == 3
