"""Damaged files of every kind end in one sentence and exit code 2, or are read; nothing else.

Each file is mutated at random: bytes changed, cut, inserted, copied about, set to extremes. The
whole command runs on it. To save time, one process reads many tables, where a command would start
its own, and the options are set up only once; all else is as on the command line.
"""

import io
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from damage import mutated
from privasso.cli import main

FIT = [
    "--target", "y", "--label-dp", "--epsilon", "3", "--delta", "1e-6", "--y-bounds", "0", "1000",
    "--lam", "500",
]  # fmt: skip
RECORDS = [
    "--target", "y", "--record-dp", "--mechanism", "statistics", "--epsilon", "3",
    "--delta", "1e-6", "--y-bounds", "0", "1000", "--bounds", "bounds.csv", "--out", "records.json",
]  # fmt: skip
#: Seconds after which a command counts as hanging; they take some hundredths of one.
PATIENCE = 20


def data():
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.standard_normal(40),
        "b": rng.integers(0, 90, 40),
        "c": rng.random(40) > 0.5,
    }
    return pl.DataFrame({**columns, "y": 700.0 + 100.0 * rng.random(40)})


def with_levels():
    """The same table with text, categories and gaps."""
    towns = ["north", "süd=1", "east"]
    return data().with_columns(
        pl.Series("town", [towns[k % 3] for k in range(40)]),
        pl.Series("kind", [towns[k // 5 % 3] for k in range(40)], dtype=pl.Categorical),
        pl.Series("gap", [None if k == 7 else float(k) ** 2 for k in range(40)]),
    )


def written(write, *arguments, **options):
    buffer = io.BytesIO()
    write(buffer, *arguments, **options)
    return buffer.getvalue()


def tables():
    """Whole files by ending, in several variants each."""
    frame = data()
    X, y = frame.drop("y").cast(pl.Float64).to_numpy(), frame["y"].to_numpy()
    arrays = {"X": X, "y": y, "feature_names": np.array(["a", "b", "c"])}
    mixed = with_levels()
    compressed = ("uncompressed", "snappy", "zstd", "gzip", "lz4")
    return {
        "csv": [frame.write_csv().encode(), mixed.write_csv(separator=";").encode()],
        "tsv": [frame.write_csv(separator="\t").encode()],
        "parquet": [
            *(written(frame.write_parquet, compression=kind) for kind in compressed),
            written(frame.write_parquet, row_group_size=10, data_page_size=64),
            written(mixed.write_parquet),
        ],
        "arrow": [
            written(frame.write_ipc, compression=kind) for kind in ("uncompressed", "lz4", "zstd")
        ]
        + [written(mixed.write_ipc)],
        "feather": [written(frame.write_ipc, record_batch_size=10)],
        "npz": [written(np.savez, **arrays), written(np.savez_compressed, **arrays)],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a model, a release and a design."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("whole"))
        data().write_csv("whole.csv")
        files = ["--out", "model.json", "--keep-release", "release.json"]
        assert main(["fit", "whole.csv", *FIT, *files]) == 0
        with_levels().write_parquet("levels.parquet")
        rule = ["--missing", "indicator"]
        assert main(["fit", "levels.parquet", *FIT, *rule, "--out", "levels.json"]) == 0
        Path("bounds.csv").write_text("name,low,high\na,-4,4\nb,0,90\nc,0,1\n")
        assert main(["fit", "whole.csv", *RECORDS, "--keep-release", "statistics.json"]) == 0
        assert main(["design", "--max-onavekl", "0.5", "--out", "design.json"]) == 0
        return Path.cwd()


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    """A copy of the folder, in which the test may damage what it likes."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_hang():
    def hangs(*_):
        pytest.fail(f"no answer within {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, hangs)
    yield lambda: signal.alarm(PATIENCE)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def check(folder, capsys, words, secrets=()):
    """Run a command: it works, or ends in one sentence and leaves nothing."""
    before = {path.name for path in folder.iterdir()}
    code = main(words)
    captured = capsys.readouterr()
    *warned, last = captured.err.splitlines() or [""]
    new = {path.name for path in folder.iterdir()} - before
    assert code in (0, 2)
    assert all(line.startswith("privasso: warning: ") for line in warned), captured.err
    if code == 2:
        assert last.startswith("privasso: error: ")
        assert last.isprintable()
        assert "Traceback" not in captured.err
        # Numbers may have changed so that no minimiser exists; what was paid for is then kept.
        assert new == ({"out.release.json"} if "nothing is lost" in last else set())
        assert not captured.out
        for secret in secrets:
            assert secret not in captured.err
    else:
        assert new <= {"out.csv", "out.json"}
    for name in new:
        (folder / name).unlink()
    return code


COMMANDS = {
    "model": ["predict", "damaged.json", "whole.csv", "--out", "out.csv"],
    "levels": ["predict", "damaged.json", "levels.parquet", "--out", "out.csv"],
    "release": ["fit", "whole.csv", "--from-release", "damaged.json", "--lam", "500",
                "--out", "out.json"],
    "statistics": ["fit", "--from-release", "damaged.json", "--lam", "500", "--out", "out.json"],
    "design": ["fit", "whole.csv", *FIT, "--design", "damaged.json", "--out", "out.json"],
}  # fmt: skip
ENDINGS = list(tables())


def damage_tables(folder, capsys, no_hang, ending, seeds):
    codes = []
    secrets = {f"{value!r}"[:8] for value in data()["y"].to_list()}
    path = folder / f"damaged.{ending}"
    wholes = tables()[ending]
    for seed in seeds:
        path.write_bytes(mutated(wholes[seed // 2 % len(wholes)], seed))
        no_hang()
        if seed % 2:
            words = ["predict", "model.json", path.name, "--out", "out.csv"]
        else:
            words = ["fit", path.name, *FIT, "--missing", "indicator", "--out", "out.json"]
        codes.append(check(folder, capsys, words, secrets))
    return codes


def damage_document(folder, capsys, no_hang, kind, seeds):
    codes = []
    whole = (folder / f"{kind}.json").read_bytes()
    for seed in seeds:
        (folder / "damaged.json").write_bytes(mutated(whole, seed))
        no_hang()
        codes.append(check(folder, capsys, COMMANDS[kind]))
    return codes


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "count", [20, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_tables(folder, capsys, no_hang, ending, count):
    codes = damage_tables(folder, capsys, no_hang, ending, range(count))
    assert set(codes) == {0, 2}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize(
    "count", [40, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_damaged_documents(folder, capsys, no_hang, kind, count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    codes = damage_document(folder, capsys, no_hang, kind, range(count))
    assert 2 in codes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10**6  # kilobytes
