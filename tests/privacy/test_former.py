"""Files of the first version: guarantees with a kind for each mechanism, ledgers, kept releases."""

import json
from pathlib import Path

import numpy as np
import pytest

import privasso as pv
from privasso._documents import DocumentError
from privasso.fit import KeptStatistics
from privasso.ledger import Book

FILES = json.loads((Path(__file__).parent / "former" / "files.json").read_text("utf-8"))
GUARANTEES = FILES["guarantees"]


@pytest.mark.parametrize("name", GUARANTEES)
def test_a_guarantee_means_what_it_meant(name):
    """The δ at four ε were computed by the version that wrote the files."""
    document, deltas = GUARANTEES[name]["document"], GUARANTEES[name]["delta"]
    found = pv.Guarantee.from_dict(document)
    given = document["parameters"]
    for number in ("epsilon", "delta", "n_rows", "y_low", "y_high"):
        assert dict(found.parameters).get(number) == given.get(number)
    assert list(found.released) == document["released"]
    assert found.for_release == document["for_release"]
    if name not in ("composed", "two releases"):
        assert found.adjacency == document["adjacency"]
    if deltas is None:
        assert found.loss is None
        return
    assert found.loss is not None
    for epsilon, delta in zip((0.2, 0.5, 1.0, 2.0), deltas, strict=True):
        # Choices of several rounds are composed more closely now.
        now = found.loss.delta(epsilon)
        assert now <= delta * (1.0 + 1e-6) + 1e-30
        assert 0.8 * delta <= now or delta < 1e-12
    assert pv.Guarantee.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("record", {"c": 0.5}, "small enough"),
        ("record", {"c": None}, "must be a real number"),
        ("label release", {"mu": 0.5}, "small enough"),
        ("record screened", {"choices": 1.5}, "count"),
        ("record screened", {"choice_epsilon": 0.5}, "small enough"),
        ("record", {"epsilon": None}, "must be a real number"),
    ],
)
def test_a_changed_one_is_refused(name, change, message):
    document = GUARANTEES[name]["document"]
    with pytest.raises(DocumentError, match=message):
        pv.Guarantee.from_dict(document | {"parameters": document["parameters"] | change})


def test_one_without_losses_is_refused():
    document = GUARANTEES["record"]["document"]
    numbers = {k: x for k, x in document["parameters"].items() if k not in ("c", "mu")}
    with pytest.raises(DocumentError, match="needs the losses"):
        pv.Guarantee.from_dict(document | {"parameters": numbers})


def test_a_ledger_is_read_and_goes_on():
    document = FILES["ledger"]
    book = Book.from_document(document)
    assert book.spent() == pytest.approx(FILES["spent"], rel=1e-3)
    again = Book.from_document(json.loads(json.dumps(book.to_document())))
    assert again == book
    entries = [dict(entry) for entry in document["entries"]]
    entries[0]["what"] = "another fit"
    with pytest.raises(DocumentError, match="hashes do not fit"):
        Book.from_document(document | {"entries": entries})


@pytest.mark.parametrize("name", ["objective", "release"])
def test_a_kept_release_is_solved_from(name, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(json.dumps(FILES["releases"][name]))
    kept = pv.load_release(path)
    assert isinstance(kept.privacy, pv.LabelDP)
    assert kept.privacy.mechanism == name
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 60))[:50, :2]
    assert np.isfinite(kept.open(X).solve("auto").coef).all()
    pv.save_release(kept, tmp_path / "new.json")
    new = pv.load_release(tmp_path / "new.json")
    assert (new.privacy, new.guarantee) == (kept.privacy, kept.guarantee)


def test_kept_statistics_are_solved_from(tmp_path):
    path = tmp_path / "statistics.json"
    path.write_text(json.dumps(FILES["releases"]["statistics"]))
    kept = pv.load_release(path)
    assert isinstance(kept, KeptStatistics)
    assert kept.solve(1.0).coef.shape == (2,)
