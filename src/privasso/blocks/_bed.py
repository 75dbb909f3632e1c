"""PLINK .bed files: variants, people with phenotypes, genotypes decoded where they are read.

Names of variants, the alleles that are counted, and identifiers of people are public.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from privasso._files import fits_memory, open_regular, read_lines
from privasso._text import escaped
from privasso._validation import real_array, real_labels
from privasso.blocks._part import ArrayPart, Chunk, Local, Part
from privasso.blocks._row_blocks import RowBlocks

#: The first bytes of a .bed file, and the third if it is stored variant by variant.
_MAGIC = b"\x6c\x1b"
_BY_VARIANT = b"\x01"
_HEADER = 3
#: The value of a phenotype that is missing, beside whatever is no number.
_MISSING = -9.0
#: The name of the phenotypes in the .fam file beside a .bed file.
PHENOTYPE = "pheno"
#: What stands for a missing genotype until it is filled.
_GONE = 3
#: Entries that are decoded at a time, and those of a part.
_CHUNK, _PART = 1 << 21, 1 << 23
#: Columns up to which a table is read by rows; of more, fits read few columns of all rows.
_NARROW = 4096


def bed_lines(
    path: str | PathLike[str],
    shape: tuple[int, int] | None = None,
    variants: Sequence[int] | None = None,
) -> tuple[np.ndarray, int]:
    """Read genotypes of a .bed file: one line of bytes per variant; and the number of people.

    All variants, or only some by their places. All variants of a file that takes more than half of
    the memory of the machine are mapped instead: such a file must not be cut while it is used.

    Raises
    ------
    ValueError
        If the file is not a .bed file stored variant by variant, or its size does not fit.
    """
    bed = Path(path)
    with open_regular(bed) as file:
        header, found = file.read(_HEADER), os.fstat(file.fileno()).st_size
    if len(header) < _HEADER or header[:2] != _MAGIC:
        raise ValueError(
            f"{escaped(bed)} is not a PLINK .bed file: its first two bytes are not 6c 1b"
        )
    if header[2:] != _BY_VARIANT:
        raise ValueError(
            f"{escaped(bed)} is stored person by person or damaged (third byte {header[2]:02x}, "
            "not 01); write it again with plink --make-bed"
        )
    if shape is None:
        n_rows, n_columns = (len(_words(bed.with_suffix(suffix))) for suffix in (".fam", ".bim"))
    else:
        n_rows, n_columns = (int(k) for k in shape)
    if n_rows < 1 or n_columns < 1:
        raise ValueError(
            f"{escaped(bed)} has {n_rows} people and {n_columns} variants; both must be there"
        )
    line = -(-n_rows // 4)
    expected = _HEADER + line * n_columns
    if found != expected:
        raise ValueError(
            f"{escaped(bed)} has {found} bytes, but {n_rows} people and {n_columns} variants take "
            f"{expected}: it is not complete, or belongs to other .fam and .bim files"
        )
    if variants is None and not fits_memory(2 * expected):
        packed = np.memmap(bed, np.uint8, mode="r", offset=_HEADER, shape=(n_columns, line))
        return packed.view(np.ndarray), n_rows
    places = [(0, n_columns)] if variants is None else [(k, 1) for k in variants]
    packed = np.empty((sum(count for _, count in places), line), dtype=np.uint8)
    rest = packed.reshape(-1)
    with open_regular(bed) as file:
        for start, count in places:
            file.seek(_HEADER + start * line)
            if file.readinto(rest[: count * line].data) < count * line:
                raise ValueError(f"{escaped(bed)} was cut while it was being read")
            rest = rest[count * line :]
    return packed, n_rows


def _names(path: Path) -> tuple[str, ...]:
    r"""Names of the variants of a .bed file, from the .bim file beside it; each must be there once.

    Names and the alleles that are counted are taken to be public.
    """
    bim = path.with_suffix(".bim")
    lines = _words(bim)
    for number, words in enumerate(lines, start=1):
        if len(words) < 6:
            raise ValueError(f"{escaped(bim)}: line {number} has {len(words)} columns, not 6")
    names = tuple(words[1] for words in lines)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise ValueError(
            f"{escaped(bim)} names two variants {twice!r}; give each a name of its own, for "
            "instance with plink2 --set-all-var-ids @:#:$r:$a"
        )
    return names


def _people(path: Path) -> tuple[list[tuple[str, str]], np.ndarray]:
    r"""Family and own identifiers of the people of a .bed file, and their phenotypes.

    Both are in the .fam file beside it, of which each line that is not blank is a person. The
    identifiers are public. A phenotype that is -9, no number or not there is NaN, each for itself,
    whatever the others are.
    """
    lines = [[*words, *[""] * (6 - len(words))] for words in _words(path.with_suffix(".fam"))]
    return [(words[0], words[1]) for words in lines], phenotypes([words[5] for words in lines])


def phenotypes(cells: list[str]) -> np.ndarray:
    """Numbers of a column of phenotypes; -9 and what is no number is NaN.

    >>> phenotypes(["1.5", "-9", "NA", "2"])
    array([1.5, nan, nan, 2. ])
    """
    found = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        with contextlib.suppress(ValueError):
            found[k] = float(cell)
    found[found == _MISSING] = np.nan
    return found


def _words(path: Path) -> list[list[str]]:
    """The words of each line of a text file that is not blank."""
    if not path.exists():
        raise ValueError(
            f"{escaped(path)} is not there; put it beside the .bed file or pass shape=(M, N)"
        )
    return [[word.decode("utf-8", "replace") for word in line.split()] for line in read_lines(path)]


def copies(lines: np.ndarray, missing: int = _GONE) -> np.ndarray:
    """Copies of the allele of four genotypes for each byte, of type int8.

    >>> copies(np.array([[0b01_00_10_11]], dtype=np.uint8)).tolist()
    [[0, 1, 2, 3]]
    """
    n, width = lines.shape
    pairs = np.zeros((n * width + 1) // 2, dtype="<u2")
    pairs.view(np.uint8)[: n * width] = lines.reshape(-1)
    found = np.take(_table(missing), pairs).view(np.int8)
    return found[: 4 * n * width].reshape(n, 4 * width)


@lru_cache(4)
def _table(missing: int) -> np.ndarray:
    """The eight genotypes in two bytes, as one number of eight bytes."""
    codes = np.arange(1 << 16)[:, None] >> np.arange(0, 16, 2) & 3
    return np.array([2, missing, 1, 0], dtype=np.int8)[codes].view(np.uint64).reshape(-1)


@dataclass(frozen=True, eq=False)
class Variants:
    """A matrix of copies of alleles, of which some rows or columns are decoded where they are read.

    - `lines` (N, ⌈M/4⌉): the bytes of each column.
    - `n_rows`: M.
    - `fill` (N,): what stands for a missing genotype.
    """

    lines: np.ndarray = field(repr=False)
    n_rows: int
    fill: np.ndarray = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.lines)

    def taken(self, columns: np.ndarray | slice) -> Variants:
        """Some of the columns."""
        return replace(self, lines=self.lines[columns], fill=self.fill[columns])

    def filled(self, missing: ArrayLike) -> Variants:
        """The same with numbers of copies that missing genotypes count as, of all or of each."""
        given, n = real_array("missing", missing), len(self.lines)
        if given.shape not in ((), (n,)):
            raise ValueError(f"missing must be one number, or one for each of {n} columns")
        if np.min(given) < 0.0 or np.max(given) > 2.0:
            raise ValueError("missing must be a number of copies from 0 to 2")
        return replace(self, fill=np.broadcast_to(given, (n,)).astype(np.float64))

    def __getitem__(self, at: slice | tuple[slice, slice | np.ndarray]) -> np.ndarray:
        """``F[rows]``, ``F[:, columns]`` or ``F[rows, columns]`` in float64, `rows` a slice."""
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        start, stop, _ = rows.indices(self.n_rows)
        first, some = start // 4, self.taken(columns)
        found = copies(some.lines[:, first : -(-stop // 4)])[
            :, start - 4 * first : stop - 4 * first
        ]
        known = found != _GONE
        return np.where(known, found, some.fill[:, None]).T

    def column_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All columns, some at a time; as int8 where that is enough."""
        step = max(1, _CHUNK // self.n_rows)
        fill = float(self.fill[0])
        alike = fill.is_integer() and bool(np.all(self.fill == fill))
        for start in range(0, len(self.lines), step):
            span = slice(start, start + step)
            if alike:
                found = copies(self.lines[span], int(fill))[:, : self.n_rows]
                yield span, np.ascontiguousarray(found).T
            else:
                yield span, self[:, span]


@dataclass(frozen=True, eq=False)
class Bed:
    """A .bed file with the .bim and .fam files beside it; genotypes are read when they are needed.

    - `names`: those of the variants.
    - `people`: family and own identifiers.
    - `phenotypes`: the sixth column of the .fam file, NaN where it is missing.
    """

    path: Path
    names: tuple[str, ...] = field(repr=False)
    people: list[tuple[str, str]] = field(repr=False)
    phenotypes: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Bed:
        """Read names and people."""
        bed = Path(path)
        return cls(bed, _names(bed), *_people(bed))

    def variants(self, places: Sequence[int] | None = None) -> Variants:
        """All variants, or some by their places; a missing genotype is NaN."""
        lines, m = bed_lines(self.path, (len(self.people), len(self.names)), places)
        return Variants(lines, m, np.full(len(lines), np.nan))


class BedPart(Part):
    """Some rows of a matrix of genotypes, and their labels."""

    def __init__(self, F: Variants, y: np.ndarray, start: int, stop: int) -> None:
        self.F, self.y, self.start, self.stop = F, y, start, stop
        self.rows = stop - start

    def chunks(self) -> Iterator[Chunk]:
        """Decode some rows at a time."""
        step = max(1, _CHUNK // max(1, self.F.shape[1]))
        for start in range(self.start, self.stop, step):
            part = slice(start, min(start + step, self.stop))
            yield self.F[part], self.y[part]

    def select(self, columns: np.ndarray) -> BedPart:
        """Only these columns are decoded."""
        return BedPart(self.F.taken(columns), self.y, self.start, self.stop)


def variants_of(F: Variants, y: np.ndarray, names: tuple[str, ...] | None = None) -> RowBlocks:
    """Genotypes and labels as a table.

    A wide one is handed on as it is: then a choice decodes some columns at a time, in their order
    in the file, and a fit the columns that were chosen.
    """
    m, n = F.shape
    if n > _NARROW:
        return RowBlocks((m, n), Local([ArrayPart(F, y)]), names)
    step = max(1, _PART // n)
    parts = [BedPart(F, y, lo, min(lo + step, m)) for lo in range(0, m, step)]
    return RowBlocks((m, n), Local(parts), names)


def read_bed(
    path: str | PathLike[str],
    y: ArrayLike | str = PHENOTYPE,
    *,
    missing: ArrayLike = 1.0,
) -> RowBlocks:
    r"""Read the genotypes of a PLINK .bed file as a table with labels, for `PrivateLasso.fit`.

    The bytes of the file are kept as they are, two bits for each genotype, or mapped if they take
    more than half of the memory. A genotype becomes the number of copies (0, 1 or 2) of the allele
    that the .bim file names first, where it is read.

    Parameters
    ----------
    path : path of the .bed file
        The .fam and .bim files are beside it, one line per person and per variant.
    y : array_like of shape (M,) or "pheno"
        Labels, or the name of those in the sixth column of the .fam file.
    missing : float or array_like of shape (N,)
        Copies that a missing genotype counts as, from 0 to 2, for all variants or for each. Choose
        them without looking at the data, since means would reveal something about the records.

    Returns
    -------
    RowBlocks

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny.bed")
    ...     _ = path.write_bytes(bytes([0x6C, 0x1B, 0x01, 0b00_10_11, 0b11_01_00]))
    ...     _ = path.with_suffix(".bim").write_text("1 rs12 0 1 A G\n1 rs7 0 2 C T\n")
    ...     _ = path.with_suffix(".fam").write_text("a 1 0 0 2 1.5\na 2 0 0 1 2\nb 1 0 0 1 0\n")
    ...     X, y = read_bed(path).gathered()
    >>> X
    array([[0., 2.],
           [1., 1.],
           [2., 0.]])
    """
    bed, labels, target = _opened(path, y)
    return replace(variants_of(bed.variants().filled(missing), labels, bed.names), target=target)


def read_public_bed(path: str | PathLike[str], y: ArrayLike | str = PHENOTYPE) -> RowBlocks:
    """The same for genotypes that are public: a missing one is the mean of its column."""
    bed, labels, target = _opened(path, y)
    F = bed.variants()
    known, copies = np.zeros((2, F.shape[1]))
    for span, block in F.column_blocks():
        known[span] = np.sum(block == block, axis=0)
        copies[span] = np.nansum(block, axis=0)
    F = F.filled(copies / np.maximum(known, 1.0))
    return replace(variants_of(F, labels, bed.names), target=target)


def _opened(path: str | PathLike[str], y: ArrayLike | str) -> tuple[Bed, np.ndarray, str | None]:
    """The file, labels, and the name of these."""
    bed = Bed.of(path)
    if not isinstance(y, str):
        return bed, real_labels(y, len(bed.people)), None
    if y != PHENOTYPE:
        raise ValueError(
            f"with genotypes y holds the labels, or is {PHENOTYPE!r} for the sixth column of "
            "the .fam file beside a .bed file"
        )
    return bed, bed.phenotypes, y
