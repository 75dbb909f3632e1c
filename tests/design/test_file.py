"""Design files: what is written comes back, and anything else is refused."""

import json

import pytest

import privasso as pv
from privasso._documents import DocumentError
from privasso.design import load_design, save_design

MODEL = pv.Model(scales=pv.LogNormal(0.0, 0.5))


@pytest.mark.parametrize("options", [{}, {"gamma": 0.0}, {"gamma": 2.0}])
def test_round_trip(tmp_path, options):
    best = pv.optimal_design(MODEL, pv.MaxLeakage(2.0), **options)
    path = tmp_path / "design.json"
    save_design(best, path)
    saved = load_design(path)
    assert (saved.lam, saved.noise) == (best.lam, best.noise)
    assert type(saved.noise) is type(best.noise)
    assert saved.predicted["E"] == best.E
    assert pv.state_evolution(MODEL, saved.lam, saved.noise).E == best.E


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "design.json"
    save_design(pv.optimal_design(MODEL, pv.MaxLeakage(2.0)), path)
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "privasso-release"}, "not a noise design"),
        ({"version": 2}, "has version 2"),
        ({"version": True}, "has version True"),
        ({"lam": 0.0}, "lam must be positive"),
        ({"lam": "0.2"}, "lam must be a real number"),
        ({"lam": True}, "lam must be a real number"),
        ({"lam": 10**400}, "lam must be finite"),
        ({"extra": 1}, "'extra'"),
        ({"asked": None}, "asked must be text"),
        ({"predicted": [1]}, "predicted must be an object"),
        ({"predicted": {"E": "x"}}, "E must be a real number"),
        ({"noise": None}, "lacks its noise"),
        ({"noise": {"name": "os.system"}}, "noise must be an object named"),
        ({"noise": {"name": ["Gram"]}}, "noise must be an object named"),
        ({"noise": {"name": "Gram", "sigma": 0.1, "gamma": 1.0}}, "contradicts the name Gram"),
        ({"noise": {"name": "Gram", "sigma": -0.1, "gamma": 2.0}}, "sigma must be zero or"),
        ({"noise": {"name": "Gram", "sigma": 0.1}}, "lacks the field 'gamma'"),
        ({"noise": {"name": "Tabulated", "sigma": 0.1}}, "lacks the field 'log_v'"),
    ],
)
def test_refusals(tmp_path, document, change, message):
    path = tmp_path / "other.json"
    path.write_text(json.dumps({**document, **change}))
    with pytest.raises(DocumentError, match=message):
        load_design(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"format": 1, "format": 2}', "same name twice"),
        (b'{"lam": NaN}', "holds NaN"),
        (b"[]", "no JSON object"),
        (b" " * 5_000_000, "too large"),
    ],
    ids=["bytes", "cut", "deep", "twice", "nan", "list", "large"],
)
def test_other_files(tmp_path, content, message):
    path = tmp_path / "design.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=message):
        load_design(path)
    with pytest.raises(FileNotFoundError):
        load_design(tmp_path / "missing.json")
