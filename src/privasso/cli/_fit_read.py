"""What `privasso fit` reads: a table in memory, in blocks, or of genotypes."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privasso._text import escaped
from privasso._types import Matrix
from privasso.blocks import RowBlocks, variants_of
from privasso.cli._fit import FitSettings
from privasso.cli._options import named
from privasso.encoding import Columns, Dictionary, Encoding, LevelEntry, NumberEntry, learn_encoding
from privasso.fit import Name, Outcome, Plan
from privasso.tables import NUMBERS, BedTable, Table, open_table

#: Labels of controls and cases, as PLINK codes them.
CASE_CONTROL = 1, 2


@dataclass(frozen=True, eq=False, repr=False)
class FitTable:
    """A table as a fit takes it; it has no words for what it holds.

    - `X`: an array, or blocks of rows; without the rows in a dry run of records.
    - `labels`: None where blocks hold them, or none are read.
    - `names`: of the columns of X.
    - `dictionary`: what is public about the columns of private records; None for public ones.
    - `encoding`: how columns of the file become those of X.
    """

    X: Matrix | RowBlocks
    labels: np.ndarray | None
    names: tuple[str, ...]
    target: str
    dictionary: Dictionary | None = None
    encoding: Encoding | None = None

    def described(self, names: Sequence[str] | None) -> Dictionary | None:
        """What is public about the columns of a model."""
        return self.dictionary

    def rehearsed(self, plan: Plan) -> Encoding:
        """How columns become numbers in the largest model that a plan can publish."""
        assert self.encoding is not None
        return self.encoding

    def published(self, made: Outcome) -> Outcome:
        """What was released, with the way in which columns became numbers, if that is not plain."""
        plain = self.dictionary is None and self.encoding is not None and self.encoding.plain
        return made.encoded(None if plain else self.encoding)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChosenTable(FitTable):
    """Genotypes of which variants are chosen: a model has the chosen variants and no others."""

    settings: FitSettings

    def described(self, names: Sequence[str] | None) -> Dictionary:
        return declared(self.settings, names or ())

    def rehearsed(self, plan: Plan) -> Encoding:
        """Whichever are chosen, their names are no longer than these."""
        most = len(self.names) if plan.outlook is None else plan.outlook.settings.columns
        return self.described(sorted(self.names, key=len)[-most:]).encoding

    def published(self, made: Outcome) -> Outcome:
        """The model of the chosen columns alone, if some were chosen; others have zeros."""
        made = made.chosen()
        names = self.names if made.final is None else made.final.feature_names
        return made.encoded(self.described(names).encoding)


@contextlib.contextmanager
def opened(settings: FitSettings, *, labels: bool = True, quiet: bool) -> Iterator[FitTable]:
    """The table that the options name, with labels as the fit takes them.

    Without `labels` a dry run gets public covariates, or of private records the size of the table.
    """
    if settings.in_blocks:
        from privasso.cli._fit_blocks import in_blocks

        with in_blocks(settings, labels=labels, quiet=quiet) as table:
            yield table
        return
    chosen = settings.record_dp and settings.genotypes and settings.screened() not in (None, "all")
    table = _genotypes(settings) if chosen and labels else in_memory(settings, labels=labels)
    if table.labels is not None:
        # An array that can be overwritten when it is no longer needed.
        labels_of_fit = np.require(coded(settings, table.labels), requirements="W")
        table = replace(table, labels=labels_of_fit)
    yield table


def in_memory(settings: FitSettings, *, labels: bool = True) -> FitTable:
    """All rows as an array, with labels as they are in the file."""
    table, target, names = _file(settings)
    y = None
    if settings.record_dp:
        dictionary = _dictionary(settings, table, names)
        encoding = dictionary.encoding
        # An array of this shape that has no memory of its own: a dry run uses only the shape.
        X = np.broadcast_to(0.0, (table.n_rows, len(encoding.names)))
        if labels:
            columns, y = table.declared(dictionary, target, classes=_texts(settings))
            X = dictionary.matrix(columns)
        return FitTable(X, y, encoding.names, target, dictionary, encoding)
    levels = _some_of("--categorical", settings.categorical, names)
    if labels:
        columns, y = table.columns_and_labels(
            names, target, categorical=levels, classes=_texts(settings)
        )
    else:
        columns = table.columns(names, categorical=levels)
    encoding = _learnt(settings, table, columns, names)
    return FitTable(encoding.matrix(columns), y, encoding.names, target, None, encoding)


def _genotypes(settings: FitSettings) -> ChosenTable:
    table, target, names = _file(settings)
    assert isinstance(table, BedTable)
    fill: float | list[float] = 1.0
    if settings.dictionary is not None:
        fill = [*numbers_alone(declared(settings, names)).values()]
    labels = coded(settings, table.labels(target))
    X = variants_of(table.variants(names).filled(fill), labels, tuple(names))
    return ChosenTable(X, None, tuple(names), target, settings=settings)


def numbers_alone(dictionary: Dictionary) -> dict[str, float]:
    """What stands for missing values of each column; one with levels is refused."""
    if dictionary.levels:
        raise ValueError(
            f"column {next(iter(dictionary.levels))!r} has levels in --bounds; genotypes and "
            "blocks of rows take numbers only: encode it first, or leave it out with --exclude"
        )
    return {one.name: one.filled for one in dictionary.entries if isinstance(one, NumberEntry)}


def _learnt(settings: FitSettings, table: Table, columns: Columns, names: list[str]) -> Encoding:
    """How covariates become columns of the matrix; columns that --features names are kept."""
    keep = _some_of("--keep", settings.keep, names)
    try:
        found = learn_encoding(
            columns, missing=settings.missing or "error", keep=names if settings.features else keep
        )
    except ValueError:
        table.check_header()  # cells of a record that are taken for names are not shown
        raise
    return found.relative_to(settings.references)


def coded(settings: FitSettings, labels: np.ndarray) -> np.ndarray:
    """Labels as they are, or of two classes as 0 and 1, with no error for any other label."""
    found = classes_of(settings)
    if found is None:
        return labels
    negative, positive = (0.0, 1.0) if _texts(settings) else found
    return np.where(labels == positive, 1.0, np.where(labels == negative, 0.0, np.nan))


def classes_of(settings: FitSettings) -> tuple[Name, Name] | None:
    """The two classes as the file has them: those of genotypes are 1 and 2 by default."""
    found = settings.named_classes()
    if found is not None and settings.classes is None and settings.genotypes:
        return CASE_CONTROL
    return None if found is None else found.names


def classes_words(settings: FitSettings) -> str:
    """What labels are read as, by the options alone."""
    found = classes_of(settings)
    if found is None:
        if settings.on_average or settings.source.suffix.lower() in NUMBERS:
            return ""
        return "Labels are read as numbers; any other is missing. Name two words with --classes.\n"
    other = "" if settings.classes else " Name other classes with --classes."
    return (
        f"Labels are read as {found[0]!r} and {found[1]!r}, the positive class; any other is a "
        f"missing one.{other}\n"
    )


def _texts(settings: FitSettings) -> tuple[str, str] | None:
    """The names of the classes, if they are no numbers."""
    found = settings.named_classes()
    if found is None or not isinstance(found.negative, str):
        return None
    return found.negative, str(found.positive)


def labels_in(settings: FitSettings, table: Table, target: str) -> np.ndarray:
    """The column of labels alone, as a fit takes it."""
    check_type(settings, table, target)
    labels = table.columns_and_labels([], target, categorical=[], classes=_texts(settings))[1]
    return coded(settings, labels)


def check_type(settings: FitSettings, table: Table, target: str) -> None:
    """Refuse classes that the labels cannot be, by the type that the file states for all rows."""
    kind = table.types.get(target)
    if not settings.binary or kind not in ("number", "text"):
        return
    if kind == "number" and _texts(settings):
        raise ValueError(
            f"column {target!r} holds numbers by its type; name two numbers with --classes"
        )
    if kind == "text" and settings.classes is None:
        raise ValueError(
            f"column {target!r} holds text by its type; name its two classes with --classes, such "
            "as --classes No,Yes"
        )


def table_of(settings: FitSettings) -> Table:
    """The data file, with the labels of another one beside genotypes."""
    if settings.labels is None:
        return open_table(settings.source, row_names=settings.row_names)
    return BedTable(settings.source, settings.labels)


def target_of(settings: FitSettings) -> str:
    """The column of labels; in an NPZ file it is y, in a .fam file pheno."""
    if settings.target is not None:
        return settings.target
    if settings.source.suffix.lower() == ".npz":
        return "y"
    if settings.genotypes and settings.labels is None:
        return "pheno"
    raise ValueError("--target COLUMN says which column holds the labels; it is missing")


def _file(settings: FitSettings) -> tuple[Table, str, list[str]]:
    """The data file, the column of labels, and the covariates that the options select.

    The column of labels must be in the file, because with a wrong name the labels would be taken
    for covariates; only --no-target-column says that the file has none.
    """
    table, target = table_of(settings), target_of(settings)
    if not settings.no_target_column:
        table.require([target])
        check_type(settings, table, target)
    elif target in table.names:
        raise ValueError(
            f"{escaped(settings.source)} has the target {target!r} among its columns; leave out "
            "--no-target-column"
        )
    names = table.feature_names(
        target,
        features=names_in(settings.features, table.names),
        exclude=names_in(settings.exclude, table.names),
    )
    return table, target, names


def declared(settings: FitSettings, names: Sequence[str]) -> Dictionary:
    """What is public about these columns: what --bounds says, or 0 to 2 copies of an allele."""
    if settings.dictionary is None:
        low, high = (0.0, 2.0) if settings.genotypes and settings.bounds is None else (None, None)
        return Dictionary(tuple(NumberEntry(name, low, high) for name in names))
    with named(f"--bounds {settings.bounds}", ValueError):
        found = settings.dictionary.of(names)
    entries = {entry.name: entry for entry in found.entries}
    for column, level in settings.references.items():
        entries[column] = _without(entries.get(column), column, level)
    return Dictionary(tuple(entries.values()))


def _without(entry: NumberEntry | LevelEntry | None, column: str, level: str) -> LevelEntry:
    """A column of levels without the reference, whose rows have zeros in all others."""
    if not isinstance(entry, LevelEntry) or level not in entry.levels:
        raise ValueError(
            f"--reference {column}={level}: the data dictionary has no such level of a column that "
            "is used"
        )
    if len(entry.levels) == 1:
        raise ValueError(f"--reference {column}={level} leaves no level of this column")
    return LevelEntry(column, tuple(one for one in entry.levels if one != level))


def _dictionary(settings: FitSettings, table: Table, names: list[str]) -> Dictionary:
    """The same; a name that is no column is refused, and text where ranges are to be found."""
    if settings.dictionary is not None:
        with named(f"--bounds {settings.bounds}", ValueError):
            table.require(settings.dictionary.names)
    elif settings.bounds is not None:
        table.check_header()  # the names are published
        types = table.types
        for name in names:
            if types.get(name) == "text":
                raise ValueError(
                    f"column {name!r} holds text by its type, and --bounds private is for numbers; "
                    "leave it out with --exclude, or give a data dictionary with its levels"
                )
    return declared(settings, names)


def names_in(given: Sequence[str] | None, known: Collection[str]) -> list[str] | None:
    """Names of columns from the values of an option, each one name or several between commas.

    A name that holds a comma is given alone, or in double quotes.

    Examples
    --------
    >>> names_in(["a, b", "height, cm", 'c,"height, cm"'], {"a", "b", "c", "height, cm"})
    ['a', 'b', 'height, cm', 'c', 'height, cm']
    """
    if not given:
        return None
    names = []
    for value in given:
        parts = [value] if value in known else next(csv.reader([value], skipinitialspace=True), [])
        names += [part if part in known else part.strip() for part in parts if part.strip()]
    return names


def _some_of(option: str, given: Sequence[str] | None, names: list[str]) -> list[str]:
    found = names_in(given, names) or []
    for name in found:
        if name not in names:
            raise ValueError(f"{option} {name!r} is none of the covariates")
    return found
