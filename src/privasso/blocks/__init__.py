"""Tables in blocks of rows: in memory, in files, or on a cluster."""

from privasso.blocks._bed import (
    PHENOTYPE,
    Bed,
    Variants,
    bed_lines,
    copies,
    phenotypes,
    read_bed,
    variants_of,
)
from privasso.blocks._changes import Change, LabelsAsColumn, LabelsWithin
from privasso.blocks._dask import Dask, of_dask, on_dask
from privasso.blocks._files import open_files
from privasso.blocks._part import (
    Chunk,
    DataChangedError,
    Part,
    Sums,
    Task,
    View,
    WorkersLostError,
    taken,
)
from privasso.blocks._row_blocks import Progress, RowBlocks
from privasso.blocks._sources import SparseTable, blocks_of, is_bed, read_sparse, sparse_of

__all__ = [
    "PHENOTYPE",
    "Bed",
    "Change",
    "Chunk",
    "Dask",
    "DataChangedError",
    "LabelsAsColumn",
    "LabelsWithin",
    "Part",
    "Progress",
    "RowBlocks",
    "SparseTable",
    "Sums",
    "Task",
    "Variants",
    "View",
    "WorkersLostError",
    "bed_lines",
    "blocks_of",
    "copies",
    "is_bed",
    "of_dask",
    "on_dask",
    "open_files",
    "phenotypes",
    "read_bed",
    "read_sparse",
    "sparse_of",
    "taken",
    "variants_of",
]
