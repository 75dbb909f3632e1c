"""`privasso reproduce` writes the page; bad input ends with one sentence."""

import json

import pytest

from privasso.cli import main


def test_one_figure(tmp_path, capsys):
    out = tmp_path / "pages"
    assert main(["reproduce", "fig1", "--quick", "--jobs", "1", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "confirmed" in captured.out
    assert "Claims that we add" in captured.out
    assert str(out / "index.html") in captured.out
    assert "Drawing fig1" in captured.err  # one line per stage, as there is no terminal
    assert (out / "figures" / "fig1.pdf").exists()


def test_quiet(tmp_path, capsys):
    assert main(["reproduce", "fig1", "--jobs", "1", "--out", str(tmp_path), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_json(tmp_path, capsys):
    assert main(["reproduce", "fig1", "fig2", "--jobs", "1", "--out", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert captured.err == ""
    assert record["manifest"]["figures"] == ["fig1", "fig2"]
    verdicts = {claim["key"]: claim["verdict"] for claim in record["claims"]}
    assert verdicts["l"] == "confirmed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("fig9", "there is no figure 'fig9'; choose from fig1"),
        ("--samples 1", "--samples must be at least 2"),
        ("--jobs 0", "--jobs must be at least 1"),
        ("--seed -1", "--seed must be at least 0"),
    ],
)
def test_bad_input(tmp_path, capsys, options, message):
    out = tmp_path / "x"
    assert main(["reproduce", *options.split(), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("privasso: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_help_shows_an_example(capsys):
    assert main(["reproduce", "--help"]) == 0
    assert "Example" in capsys.readouterr().out


def test_stopping_from_the_keyboard(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("privasso.paper.reproduce", stop)
    assert main(["reproduce", "fig1", "--out", str(tmp_path)]) == 130
    assert "Run the same command again to continue" in capsys.readouterr().err
