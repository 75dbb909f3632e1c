"""A ledger as a file: what is written is read, and changes by anybody else are noticed."""

import json
import os
from dataclasses import replace

import pytest
from ledgers import DELTA, PRIVACY, data, statement

import privasso as pv
from privasso._documents import DocumentError
from privasso.ledger import Book, Entry, _store
from privasso.privacy import compose


def test_round_trip(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = pv.Ledger.create("budget.json", 2.0, DELTA, data="Größen")
    first.charge(statement(0.5), "one")
    second = pv.Ledger.open("budget.json")
    assert (second.epsilon, second.delta, second.book.data) == (2.0, DELTA, "Größen")
    second.charge(statement(0.25), "two")
    assert first.entries == second.entries
    assert [entry.what for entry in first.entries] == ["one", "two"]
    monkeypatch.chdir("/")  # the path was taken when it was opened
    first.charge(statement(0.25), "three")
    assert {file.name for file in tmp_path.iterdir()} == {"budget.json"}
    document = json.loads((tmp_path / "budget.json").read_text())
    assert set(document) == {
        "format", "version", "identity", "data", "epsilon", "delta", "entries", "n_entries",
        "last_hash",
    }  # fmt: skip
    assert set(document["entries"][0]) == {"time", "what", "guarantee", "hash"}
    with pytest.raises(ValueError, match="is not overwritten"):
        pv.Ledger.create(tmp_path / "budget.json", 9.0, DELTA)
    with pytest.raises(FileNotFoundError):
        pv.Ledger.open(tmp_path / "nowhere.json")


def edited(**fields):
    return lambda d: d | fields


def in_entry(k, **fields):
    def change(d):
        d["entries"][k] |= fields
        return d

    return change


def without_last(d):
    return d | {"entries": d["entries"][:-1]}


CORRUPT = {
    "a list": (lambda d: [d], "no JSON object"),
    "format": (edited(format="other"), "is not a ledger"),
    "version": (edited(version=4), "has version 4"),
    "former version": (edited(version=2), "version 3; use the version of privasso that wrote it"),
    "status": (in_entry(0, status="free"), "unknown status 'free'"),
    "reserved only": (in_entry(0, status="reserved"), "first noticed at entry 1"),
    "unknown": (edited(more=1), "unknown field 'more'"),
    "entries": (edited(entries={}), "entries must be a list"),
    "no entry": (lambda d: d | {"entries": [1, *d["entries"][1:]]}, "must be an object"),
    "larger budget": (edited(epsilon=9.0), "hashes do not fit"),
    "bad budget": (edited(delta=2.0), "probability below 1"),
    "another purpose": (edited(data="x"), "hashes do not fit"),
    "time": (in_entry(1, time="yesterday"), r"hashes do not fit \(first noticed at entry 2\)"),
    "what": (in_entry(0, what="less"), r"hashes do not fit \(first noticed at entry 1\)"),
    "last removed": (without_last, "lists 2 entries but was written with 3"),
    "last removed, counted": (lambda d: without_last(d) | {"n_entries": 2}, "hashes do not fit"),
    "first removed": (
        lambda d: d | {"entries": d["entries"][1:], "n_entries": 2},
        r"first noticed at entry 1",
    ),
    "swapped": (lambda d: d | {"entries": d["entries"][::-1]}, "first noticed at entry 1"),
    "last hash": (edited(last_hash="0"), "hashes do not fit"),
    "field in entry": (in_entry(0, more=1), "an unknown field 'more'"),
    "smaller loss": (
        lambda d: in_entry(
            2, guarantee=statement(0.01).to_dict()
        )(d),
        r"first noticed at entry 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRUPT)
def test_changes_by_hand_are_noticed(name, tmp_path):
    change, message = CORRUPT[name]
    path = tmp_path / "budget.json"
    ledger = pv.Ledger.create(path, 2.0, DELTA)
    for k in range(3):
        ledger.charge(statement(0.5 + k / 10), f"fit {k}")
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    for call in (lambda: pv.Ledger.open(path), lambda: ledger.charge(statement(0.1))):
        with pytest.raises(DocumentError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_total_that_no_longer_fits_leaves_nothing():
    """Entries that are composed tightly may be beyond a budget as choices made on the way."""
    fit = statement(1.4)
    full = Book(2.0, DELTA, "", "0", (Entry("", "", fit), Entry("", "", fit)))
    assert compose([fit, fit])["epsilon"] > 2.0
    small = statement(1.35)
    book = replace(full, entries=(Entry("", "", small), Entry("", "", small)))
    assert compose([small, small])["epsilon"] < 2.0 < book.spent()
    assert book.left() == 0.0
    with pytest.raises(pv.BudgetError, match="nothing is left"):
        book.charged(Entry("", "", statement(0.01)))


def test_truncation_anywhere_is_noticed(tmp_path):
    path = tmp_path / "budget.json"
    pv.Ledger.create(path, 2.0, DELTA).charge(statement())
    whole = path.read_bytes().rstrip()
    for end in range(0, len(whole), 61):
        path.write_bytes(whole[:end])
        with pytest.raises(DocumentError):
            pv.Ledger.open(path)


def test_an_older_copy_is_noticed_by_whoever_saw_the_newer(tmp_path):
    path = tmp_path / "budget.json"
    ledger = pv.Ledger.create(path, 2.0, DELTA)
    ledger.charge(statement(0.5))
    older = path.read_bytes()
    ledger.charge(statement(0.5))
    path.write_bytes(older)
    with pytest.raises(DocumentError, match="by an older copy"):
        ledger.charge(statement(0.5))
    path.unlink()
    pv.Ledger.create(path, 2.0, DELTA)
    with pytest.raises(DocumentError, match="replaced by another"):
        ledger.charge(statement(0.5))


def test_links(tmp_path):
    path = tmp_path / "budget.json"
    ledger = pv.Ledger.create(path, 2.0, DELTA)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    pv.Ledger.open(link).charge(statement(0.5))
    assert link.is_symlink()
    assert len(ledger.entries) == 1
    os.link(path, tmp_path / "second.json")
    with pytest.raises(DocumentError, match="several names"):
        ledger.charge(statement(0.5))


def test_a_lock_that_is_held_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "PATIENCE", 0.1)
    ledger = pv.Ledger.create(tmp_path / "budget.json", 2.0, DELTA)
    with (
        _store.locked(tmp_path / "budget.json"),
        pytest.raises(TimeoutError, match="nothing was charged"),
    ):
        ledger.charge(statement(0.5))
    assert ledger.entries == ()


def test_an_interrupted_write_charges_nothing(tmp_path, monkeypatch):
    ledger = pv.Ledger.create(tmp_path / "budget.json", 2.0, DELTA)
    X, y = data()

    def interrupted(*args):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        patch.setattr(os, "urandom", lambda n: pytest.fail("noise drawn"))
        with pytest.raises(OSError, match="disk full"):
            pv.PrivateLasso(1.0, PRIVACY, ledger=ledger).fit(X, y)
    assert ledger.entries == ()
