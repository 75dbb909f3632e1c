"""What a user may pass as genotypes in two bits: `Genotypes`, or the path of a .bed file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privasso.blocks import bed_names, bed_people
from privasso.operators import Genotypes

#: The name of the phenotypes in the .fam file beside a .bed file.
PHENOTYPE = "pheno"


def genotypes_of(X: Any, *, private: bool) -> tuple[Genotypes, tuple[str, ...] | None] | None:
    """Packed genotypes and names of the variants, if X is such; else None.

    From a file the entries are copies of the allele. A missing genotype is one copy where the
    genotypes are private, since a mean would reveal something about the others, and the mean of
    its column elsewhere.
    """
    if isinstance(X, Genotypes):
        return X, None
    if not isinstance(X, (str, Path)) or Path(X).suffix.lower() != ".bed":
        return None
    F = Genotypes.open(X, scaling="none", missing=1.0 if private else "mean")
    return F, bed_names(X)


def phenotypes_of(X: Any, y: Any) -> Any:
    """The labels: those of the .fam file where they are asked for, or y."""
    if not isinstance(y, str):
        return y
    if y != PHENOTYPE or isinstance(X, Genotypes):
        raise ValueError(
            f"with genotypes y holds the labels, or is {PHENOTYPE!r} for the sixth column of the "
            ".fam file beside a .bed file"
        )
    return np.asarray(bed_people(X)[1])
