"""PLINK's .bed files: a column for each variant, and the phenotypes of the people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privasso._files import read_lines
from privasso._text import escaped
from privasso.blocks import PHENOTYPE, Variants, bed_lines, bed_names, bed_people, phenotypes
from privasso.tables._table import NumberTable


class BedTable(NumberTable):
    """A .bed file with its .bim and .fam files: copies of an allele, NaN where they are missing.

    The labels are the phenotypes of the .fam file, by the name ``pheno``, or columns of another
    file that names the people: those of `with_labels`. A label that is -9 or no number is NaN, and
    so is that of a person whom the file does not name.
    """

    def __init__(self, path: Path, labels: Path | None = None) -> None:
        variants = bed_names(path)
        self._place = {name: k for k, name in enumerate(variants)}
        people, found = bed_people(path)
        self._n_rows = len(people)
        bed_lines(path, (self._n_rows, len(variants)), variants=[])  # which checks the file
        self._labels = {PHENOTYPE: found} if labels is None else read_labels(labels, people)
        super().__init__(path, [*variants, *self._labels])

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return self._n_rows

    def feature_names(
        self,
        target: str | None,
        *,
        features: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> list[str]:
        """As for every table; without `features` no phenotype is one."""
        left_out = None if features is not None else list(exclude or ())
        if left_out is not None:
            left_out += [name for name in self._labels if name not in (target, *left_out)]
        return super().feature_names(target, features=features, exclude=left_out)

    def variants(self, names: Sequence[str]) -> Variants:
        """Some variants, NaN where a genotype is missing."""
        places = None
        if tuple(names) != tuple(self._place):
            places = [self._place[name] for name in names]
        lines, m = bed_lines(self.path, (self._n_rows, len(self._place)), places)
        return Variants(lines, m, np.full(len(lines), np.nan))

    def labels(self, target: str) -> np.ndarray:
        """A column of phenotypes."""
        self.require([target])
        if target not in self._labels:
            raise ValueError(f"{escaped(self.path)}: {target!r} is a variant, not a phenotype")
        return self._labels[target].copy()

    def _fill(self, block: np.ndarray, names: Sequence[str]) -> None:
        places = [k for k, name in enumerate(names) if name in self._place]
        for span, part in self.variants([names[k] for k in places]).column_blocks():
            block[:, places[span]] = part
        for k, name in enumerate(names):
            if name in self._labels:
                block[:, k] = self._labels[name]


def read_labels(path: Path, people: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Columns of a file that names people, in the order of these.

    It is a text file as PLINK's --pheno reads it: a line of names, which begins with FID and IID
    or with IID alone, then one line per person, with spaces, tabs or, in a .csv file, commas
    between the columns. A line with more or fewer columns is ignored. The identifiers are public.
    """
    comma = b"," if path.suffix.lower() == ".csv" else None
    lines = [line.strip().split(comma) for line in read_lines(path)]
    cells = [[cell.decode("utf-8", "replace").strip() for cell in line] for line in lines]
    header = [name.lstrip("\ufeff#") for name in cells[0]] if cells else []
    keys = 2 if header[:2] == ["FID", "IID"] else 1 if header[:1] == ["IID"] else 0
    if not keys or len(header) == keys:
        raise ValueError(
            f"{escaped(path)} must begin with a line of names: FID, IID, and at least one column"
        )
    cells = [line for line in cells[1:] if len(line) == len(header)]
    known = {one[-keys:]: k for k, one in enumerate(people)}
    named = [tuple(line[:keys]) for line in cells]
    if len(known) < len(people) or len(set(named)) < len(named):
        raise ValueError(f"{escaped(path)} or the .fam file names a person twice")
    rows = np.array([known.get(name, -1) for name in named], dtype=np.intp)
    found: dict[str, np.ndarray] = {}
    for k, name in enumerate(header[keys:], start=keys):
        found[name] = np.full(len(people), np.nan)
        values = phenotypes([line[k] for line in cells])
        found[name][rows[rows >= 0]] = values[rows >= 0]
    return found


def case_control(labels: np.ndarray) -> np.ndarray:
    """Cases and controls as PLINK codes them, 2 and 1, as 1 and 0; others are missing."""
    return np.where(labels == 2.0, 1.0, np.where(labels == 1.0, 0.0, np.nan))
