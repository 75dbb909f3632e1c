"""Whole programs against neighbouring files: `privasso fit` stands, mistakes in it are found."""

import sys
from pathlib import Path

import numpy as np
import pytest

import privasso as pv
from privasso.privacy import Terms
from whole_program import audit_command, numbers_in

RNG = np.random.default_rng(0)
X = RNG.random((30, 2))
Y = RNG.uniform(0.1, 0.9, 30)
#: The label, or record, in which the files differ: one that is easy to see.
K = int(np.argmax(X[:, 0]))
CLAIM = pv.LabelDP(1.0, 0.01, (0.0, 1.0)).guarantee(
    Terms(fit_intercept=False, seeded=False, n_rows=1)
)
PROGRAMS = Path(__file__).parent / "programs"
LABELS = "--target label --label-dp --epsilon 1 --delta 0.05 --y-bounds 0 1 --lam 0.001"
RECORDS = "--target label --record-dp --epsilon 1 --delta 0.05 --y-bounds 0 1 --bounds {bounds}"


def written(path, x, y):
    """A table; labels that are NaN are missing."""
    rows = zip(x.tolist(), y.tolist(), strict=True)
    lines = [",".join([*map(repr, a), "" if np.isnan(b) else repr(b)]) for a, b in rows]
    path.write_text("\n".join(["a,b,label", *lines]) + "\n")
    return path


def labels_of(folder, high=1.0, low=0.0):
    """Two files that differ in one label."""
    one, two = Y.copy(), Y.copy()
    one[K], two[K] = high, low
    return written(folder / "one.csv", X, one), written(folder / "two.csv", X, two)


def records_of(folder):
    """Two files of which the second has an empty record; it is far outside of the bounds."""
    far, fewer = X.copy(), Y.copy()
    far[K], fewer[K] = (40.0, -30.0), np.nan
    return written(folder / "one.csv", far, Y), written(folder / "two.csv", far, fewer)


def attacked(folder, files, options, releases, fault="", fork=True, **rest):
    (folder / "bounds.csv").write_text("name,low,high\na,0,1\nb,0,1\n")
    options = options.replace("{bounds}", str(folder / "bounds.csv"))
    command = f"{sys.executable} -m broken_fit fit {{data}} {options} --out {{out}} --json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PROGRAMS))
        patch.setenv("FAULT", fault)
        return audit_command(command, *files, releases=releases, fork=fork, **rest)


RELEASE = f"{LABELS} --mechanism release"
#: What is wrong, the options of the fit, the files, and how many runs show it.
FAULTS = {
    "noise_halved": (RELEASE.replace("--epsilon 1", "--epsilon 3"), labels_of, 200),
    "rows_unclipped": (RECORDS, records_of, 120),
    "seed_reused": (LABELS, labels_of, 60),
    "intercept_without_noise": (LABELS, labels_of, 60),
    "label_in_an_attribute": (LABELS, labels_of, 20),
    "wrong_bounds": (RELEASE, lambda folder: labels_of(folder, 3.0, -2.0), 120),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_mistakes_in_the_program_are_found(fault, tmp_path):
    options, files, releases = FAULTS[fault]
    result = attacked(tmp_path, files(tmp_path), options, releases, fault, secrets=Y)
    assert result.passed is False
    assert bool(result.leaks) is (fault == "label_in_an_attribute")
    print(f"\n{fault}: {result.audit.verdict}")


@pytest.mark.slow
@pytest.mark.parametrize("options", [LABELS, RECORDS], ids=["labels", "records"])
def test_the_program_as_it_is_stands(options, tmp_path):
    files = (records_of if options is RECORDS else labels_of)(tmp_path)
    result = attacked(tmp_path, files, options, 60, secrets=np.append(X.ravel(), Y))
    print(f"\n{result.audit.verdict}")
    assert result.passed is True


def small(tmp_path, fault, fork, releases=40):
    """A program of a few lines, which takes no time."""
    (tmp_path / "one.csv").write_text("label\n0.123456789\n")
    (tmp_path / "two.csv").write_text("label\n0.987654321\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PROGRAMS))
        return audit_command(
            f"{sys.executable} -m small_program {fault} {{data}} {{out}}",
            tmp_path / "one.csv",
            tmp_path / "two.csv",
            guarantee=CLAIM,
            releases=releases,
            fork=fork,
        )


@pytest.mark.parametrize("fork", [False, True])
def test_a_small_program(fork, tmp_path):
    assert small(tmp_path, "none", fork, 20).passed is True


def test_mistakes_of_a_small_program(tmp_path):
    assert small(tmp_path, "noise", True).passed is False
    found = small(tmp_path, "label", True, 20)
    assert found.passed is False
    assert len(found.leaks) == 2


def test_numbers_by_their_place():
    found = numbers_in('{"a": [1, {"b": true}], "s": "x 2.5e1, -3"}')
    assert found == {"a/0": 1.0, "a/1/b": 1.0, "s/0": 25.0, "s/1": -3.0}
    assert numbers_in("took 3 s") == {"0": 3.0}
    assert numbers_in("9" * 400) == {"": 1e300}


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("privasso fit --out {out}", {}, "{data}"),
        ("privasso fit {data} --out {out}", {"releases": 3}, "releases"),
        ("fit {data} {out}", {"fork": True}, "python -m"),
    ],
)
def test_bad_commands(command, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        audit_command(command, *labels_of(tmp_path), **options)


def test_programs_that_fail(tmp_path):
    files = labels_of(tmp_path)
    with pytest.raises(RuntimeError, match="exit code 2"):
        audit_command(f"{sys.executable} -c exit(2) {{data}} {{out}}", *files)
    with pytest.raises(ValueError, match="the same"):
        audit_command("privasso fit {data} {out}", files[0], files[0])
