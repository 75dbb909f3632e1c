"""`privasso demo` solves, prints and draws; bad input ends in one sentence and writes nothing."""

from privasso.cli import main


def test_demo(tmp_path, capsys):
    out = tmp_path / "pictures"
    assert main(["demo", "--out", str(out), "--n-features", "100", "--samples", "2"]) == 0
    printed = capsys.readouterr().out
    assert "72 solves, each certified" in printed
    assert "raise lambda to at least" in printed
    assert (out / "error-against-noise.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "x"), "--samples", "1"]) == 2
    captured = capsys.readouterr()
    assert "--samples must be at least 2" in captured.err
    assert not (tmp_path / "x").exists()
