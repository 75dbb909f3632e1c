"""`privasso fit --record-dp`: one sentence about wrong options and wrong data dictionaries."""

import pytest
from cli_records import BOUNDS, DP, files, fit, prepared

# Outside of the tests each command is a process of its own, which fits once.
pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


BAD_OPTIONS = [
    ("", "what is to be protected"),
    (f"{DP} --label-dp --bounds bounds.csv", "say what to protect"),
    (f"{DP}", "--bounds FILE"),
    ("--target y --record-dp --epsilon 1 --delta 1e-6 --bounds bounds.csv", "--y-bounds LOW HIGH"),
    (f"{DP} --bounds nowhere.csv", "nowhere.csv"),
    (f"{DP} --bounds bounds.csv --sigma 1", "--sigma belongs to --on-average"),
    (f"{DP} --bounds bounds.csv --noise gram", "--noise belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --missing mean", "--missing belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --categorical ward", "--categorical belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --keep ward", "--keep belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --time-limit 3", "--time-limit belongs to --label-dp"),
    (f"{DP} --bounds bounds.csv --share 0.1", "nothing is; leave it out"),
    (f"{DP} --bounds private --share 1", "share is a part of the budget"),
    (f"{DP} --bounds bounds.csv --mechanism release", "--mechanism must be one of"),
    (f"{DP} --bounds bounds.csv --mechanism statistics --shape private", "shape belongs to"),
    (f"{DP} --bounds bounds.csv --kappa 0", "kappa must be positive"),
    (f"{DP} --bounds bounds.csv --t nan", "t must be finite"),
    (f"{DP} --bounds bounds.csv --lam 0", "must be positive"),
    (f"{DP} --bounds bounds.csv --keep-release r.json", "needs --mechanism statistics"),
    (f"{DP} --bounds bounds.csv --path-out path.csv", "needs --mechanism statistics"),
    (f"{DP} --bounds bounds.csv --mechanism auto --keep-release r.json", "needs --mechanism stat"),
    (f"{DP} --bounds bounds.csv --shape nowhere.csv", "nowhere.csv"),
    (f"{DP} --bounds bounds.csv --shape bounds.csv", "--shape: bounds.csv has no columns 'age'"),
    (f"{DP} --bounds bounds.csv --out bounds.csv", "the same file"),
    (f"{DP} --bounds bounds.csv --features age,y", "cannot be one of the features"),
    (f"{DP.replace('--epsilon 1', '--epsilon 0')} --bounds bounds.csv", "must be positive"),
    (f"{DP.replace('60 200', '200 60')} --bounds bounds.csv", "must increase"),
    (f"{DP.replace('60 200', '60 nan')} --bounds bounds.csv", "must be finite"),
    ("--target y --on-average --sigma 1 --lam 1 --kappa 1", "--label-dp or --record-dp"),
    ("--target y --on-average --sigma 1 --lam 1 --bounds bounds.csv", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --bounds bounds.csv", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --private-scales", "belongs to --record-dp"),
    (f"{DP.replace('record', 'label')} --mechanism statistics", "one of auto, objective, release"),
    (f"{DP.replace('record', 'label')} --mechanism release --t 1", "t belongs to objective"),
    ("--from-release r.json --record-dp", "cannot be given with --from-release"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(folder, capsys, options, message):
    fit(f"--out model.json {options}", code=2)
    error = capsys.readouterr().err
    assert error.startswith("privasso: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "bounds.csv"}


BAD_DICTIONARIES = [
    ("age,18,98,,\n", "the first line must be the header"),
    ("name,low,high,low\nage,1,2,3\n", "the first line must be the header"),
    ("name,low,high\n", "no line for any column"),
    ("name,low,high\nage,18\n", "line 2 has 2 fields"),
    ("name,low,high\nage,,\n", "column 'age' has no bounds; fill in low and high"),
    ("name,low,high\nage,18,\n", "column 'age' has one bound"),
    ("name,low,high\nage,98,18\n", "low of column 'age' is above its high"),
    ("name,low,high\nage,18,nan\n", "must be finite"),
    ("name,low,high\nage,-inf,18\n", "must be finite"),
    ("name,low,high\nage,young,old\n", "low of column 'age' is not a number"),
    ("name,low,high\nage,18,98\nage,18,98\n", "has the column 'age' twice"),
    ("name,low,high,fill\nage,18,98,99\n", "fill of column 'age' must lie between"),
    ("name,low,high,levels\nward,0,1,heart|skin\n", "column 'ward' has levels, which need no low"),
    ("name,levels\nward,heart|heart\n", "must be distinct"),
    ("name,levels\nward,heart|\n", "column 'ward' has an empty level"),
    ("name,low,high\nage,18,98\ndose,0,500\n", "no line for the column 'ward'"),
    (BOUNDS + "weight,0,1,,\n", "has no column 'weight'"),
    (BOUNDS.replace("age", "aeg"), "did you mean 'age'"),
    ("\udcff".encode("utf-8", "surrogateescape"), "not text in UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), BAD_DICTIONARIES)
def test_bad_dictionaries(folder, capsys, content, message):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "bounds.csv").write_bytes(data)
    fit(f"{DP} --bounds bounds.csv --out model.json", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert "bounds.csv" in error
    assert error.count("\n") == 1
    assert files(folder) == {"data.csv", "bounds.csv"}


BAD_JSON = [
    ("[1, 2]", "must be an object"),
    ('{"age": [18]}', "must be a list [low, high]"),
    ('{"age": 3}', "must be an object with named fields"),
    ('{"age": {"low": 1}}', "one bound"),
    ('{"age": {"low": 1, "high": 2, "hi": 3}}', "unknown field 'hi'"),
    ('{"age": {"low": true, "high": 2}}', "low of column 'age' must be a real number"),
    ('{"age": [18, 98], "age": [1, 2]}', "same name twice"),
    ('{"age": [18, NaN]}', "finite"),
    ('{"age": [18, 98]', "not valid JSON"),
]


@pytest.mark.parametrize(("content", "message"), BAD_JSON)
def test_bad_dictionaries_in_json(folder, capsys, content, message):
    (folder / "bounds.json").write_text(content)
    fit(f"{DP} --bounds bounds.json --out model.json", code=2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
