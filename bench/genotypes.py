"""A path of certified solves on packed genotypes: time, and memory against the packed file.

    python -m bench.genotypes --folder /somewhere/with/room [--rows 500000] [--columns 20000]

writes a .bed file there, solves in a process of its own, and removes the file. Nothing is
subtracted from the peak of resident memory: it counts the mapped file, Python and all libraries.
With ``--fits`` it is private fits that are measured, of three files.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.page import extend

#: Variants of one block of linkage; the next block is independent of it.
LINKED = 50
CAUSAL = 200
HERITABILITY = 0.5
COMMAND = "python -m bench.genotypes --folder FOLDER --write"
#: Kind of privacy, people and variants of the private fits.
FITS = (("records", 2_000, 200_000), ("records", 20_000, 20_000), ("labels", 1_000, 50_000))


def random_bits(rng: np.random.Generator, n_words: int, chance: float, digits: int = 8):
    """Words whose bits are set with a chance that is rounded to so many binary digits."""
    bits = np.zeros(n_words, dtype=np.uint64)
    number = max(1, min(2**digits - 1, round(chance * 2**digits)))
    for k in range(digits):
        word = rng.integers(0, 2**64, n_words, dtype=np.uint64)
        bits = bits | word if number >> k & 1 else bits & word
    return bits


def spread() -> np.ndarray:
    """The bits of a byte at the even places of two bytes."""
    byte = np.arange(256, dtype=np.uint16)
    return sum(((byte >> k & 1) << 2 * k for k in range(8)), np.zeros(256, np.uint16))


def generate(path: Path, rows: int, columns: int) -> None:
    """Two chains of alleles per person along the variants; a variant copies 7/8 of the one before.

    Minor-allele frequencies are between .02 and .5. In every second column one genotype of 128 is
    missing.
    """
    rng = np.random.default_rng(0)
    n_words, n_bytes = -(-rows // 64), -(-rows // 4)
    low = spread()
    chains = [np.zeros(n_words, dtype=np.uint64)] * 2
    with path.open("wb") as out:
        out.write(b"\x6c\x1b\x01")
        for j in range(columns):
            frequency = rng.uniform(0.02, 0.5)
            for k in range(2):
                fresh = random_bits(rng, n_words, frequency)
                if j % LINKED:
                    copied = random_bits(rng, n_words, 7 / 8, 3)
                    fresh = (chains[k] & copied) | (fresh & ~copied)
                chains[k] = fresh
            a, b = chains
            first, second = ~(a | b), ~(a & b)
            if j % 2:
                missing = random_bits(rng, n_words, 1 / 128, 7)
                first, second = first | missing, second & ~missing
            line = low[first.view(np.uint8)] | low[second.view(np.uint8)] << 1
            line = line.view(np.uint8)[:n_bytes].copy()
            if rows % 4:
                line[-1] &= (1 << 2 * (rows % 4)) - 1
            out.write(line.tobytes())


def solve(path: Path, rows: int, columns: int, points: int, smallest: float) -> dict[str, object]:
    """One path, and what it took."""
    from privasso import Status, solve_path
    from privasso.operators import Genotypes

    warm_up()
    begin = time.process_time(), time.perf_counter()
    F = Genotypes.open(path, shape=(rows, columns))
    opened = time.process_time() - begin[0]
    rng = np.random.default_rng(1)
    beta = np.zeros(columns)
    beta[rng.choice(columns, min(CAUSAL, columns // 4), replace=False)] = 1.0
    beta *= rng.standard_normal(columns)
    y = F.matvec(beta)
    y *= np.sqrt(HERITABILITY / y.var())
    y += np.sqrt(1 - HERITABILITY) * rng.standard_normal(rows)
    y -= y.mean()
    start = time.process_time()
    b = F.rmatvec(y)
    one_pass = time.process_time() - start
    lams = np.abs(b).max() * np.geomspace(1.0, smallest, points)
    start = time.process_time()
    path_ = solve_path(F, y, lams)
    seconds = time.process_time() - start
    scale = 0.5 * float(y @ y)
    return {
        "seconds": seconds,
        "pass": one_pass,
        "open": opened,
        "wall": time.perf_counter() - begin[1],
        "certified": sum(status is Status.CONVERGED for status in path_.status),
        "points": points,
        "kkt": float(path_.kkt.max()),
        "gap": float(path_.gap.max()) / scale,
        "support": int(np.count_nonzero(path_.x[:, -1])),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "file_gb": path.stat().st_size / 1e9,
    }


def fit(kind: str, path: Path, rows: int) -> str:
    """A private fit of five variants that are chosen, and what it took."""
    from privasso import LabelDP, PrivateLasso, RecordDP

    privacy = LabelDP(3.0, 1e-6, (-4.0, 4.0))
    if kind == "records":
        privacy = RecordDP(3.0, 1e-6, bounds=(0, 2), y_bounds=(-4.0, 4.0))
    y = np.random.default_rng(1).standard_normal(rows)
    few = path.with_name("few.bed")
    generate(few, 400, 200)
    describe(few, 400, 200)
    PrivateLasso(privacy=privacy, screen=5, random_state=0).fit(few, y[:400])  # compiles
    start = time.process_time()
    PrivateLasso(privacy=privacy, screen=5, random_state=0).fit(path, y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    rows, columns = path.stem.split("-")
    return json.dumps(
        {
            "people × variants": f"{int(rows):,} × {int(columns):,}",
            "private": kind,
            "processor time": f"{seconds:.1f} s",
            "peak of resident memory": f"{peak:.2f} GB",
        }
    )


def describe(path: Path, rows: int, columns: int) -> None:
    """The .bim and .fam files."""
    variants = "".join(f"1 rs{k} 0 {k} A C\n" for k in range(columns))
    path.with_suffix(".bim").write_text(variants)
    path.with_suffix(".fam").write_text("".join(f"f p{k} 0 0 0 -9\n" for k in range(rows)))


def fits(folder: Path, *, write: bool) -> None:
    """Each in a process of its own, since it is the peak of memory that is measured."""
    lines = []
    for kind, rows, columns in FITS:
        path = folder / f"{rows}-{columns}.bed"
        generate(path, rows, columns)
        describe(path, rows, columns)
        code = f"import bench.genotypes as b; print(b.fit({kind!r}, b.Path({str(path)!r}), {rows}))"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        lines.append(json.loads(done.stdout.splitlines()[-1]))
        print(lines[-1], flush=True)
        for one in (path, path.with_name("few.bed")):
            for suffix in (".bed", ".bim", ".fam"):
                one.with_suffix(suffix).unlink()
    if write:
        keys = ["people × variants", "private"]
        extend("scale-genotype-fits", lines, keys, COMMAND.replace("--write", "--fits --write"))


def warm_up() -> None:
    """Compile, or load what was compiled."""
    from privasso import solve_path
    from privasso.operators import Genotypes

    rng = np.random.default_rng(0)
    F = Genotypes(rng.integers(0, 256, (120, 50), dtype=np.uint8), 200)
    y = rng.standard_normal(200)
    solve_path(F, y, np.abs(F.rmatvec(y)).max() * np.geomspace(1, 0.05, 4))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.genotypes", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--smallest", type=float, default=0.1, help="last λ, as a part of λmax")
    parser.add_argument("--keep", action="store_true", help="keep the file, and use it if there")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="renew docs/data/scale-genotypes*.csv")
    parser.add_argument("--fits", action="store_true", help="private fits, of files of their own")
    given = parser.parse_args()
    if given.fits:
        fits(given.folder, write=given.write)
        return
    path = given.folder / f"genotypes-{given.rows}-{given.columns}.bed"
    if given.only:
        print(json.dumps(solve(path, given.rows, given.columns, given.points, given.smallest)))
        return
    if not path.exists():
        given.folder.mkdir(parents=True, exist_ok=True)
        generate(path, given.rows, given.columns)
    try:
        words = [sys.executable, "-m", "bench.genotypes", "--only", *sys.argv[1:]]
        found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    finally:
        if not given.keep:
            path.unlink()
    if given.write:
        line = {
            "people × variants": f"{given.rows:,} × {given.columns:,}",
            "packed file": f"{found['file_gb']:.2f} GB",
            "certified": f"{found['certified']} of {found['points']} points",
            "processor time": f"{found['seconds']:.1f} s",
            "one product Fᵀy": f"{found['pass']:.2f} s",
            "peak of resident memory": f"{found['peak_gb']:.2f} GB",
        }
        extend("scale-genotypes", [line], ["people × variants"], COMMAND)
    print(
        f"{given.rows:,} × {given.columns:,}: {found['certified']} of {found['points']} points "
        f"certified (KKT at most {found['kkt']:.0e} of λ, gap {found['gap']:.0e} of ½‖y‖²), "
        f"{found['support']} columns at the last\n"
        f"processor time {found['seconds']:.1f} s, {found['seconds'] / found['pass']:.0f} times "
        f"one product Fᵀy ({found['pass']:.2f} s); opening {found['open']:.1f} s\n"
        f"peak of resident memory {found['peak_gb']:.2f} GB, "
        f"{found['peak_gb'] / found['file_gb']:.2f} times the file of {found['file_gb']:.2f} GB"
    )


if __name__ == "__main__":
    main()
