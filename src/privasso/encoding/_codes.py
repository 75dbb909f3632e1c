"""What one column of a table becomes in the matrix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumberCode:
    """A column of numbers.

    Attributes
    ----------
    name : str
        Name of the column in the table.
    fill : float or None
        What a missing value is replaced by; None refuses missing values.
    indicator : bool
        Whether a column of its own tells by 1 that the value is missing.
    """

    name: str
    fill: float | None = None
    indicator: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name} is missing") if self.indicator else (self.name,)


@dataclass(frozen=True)
class LevelCode:
    """A column of texts: 0/1 columns for its levels, of which each row has at most one.

    Of two levels only the second has a column, because the first would be its complement.

    Attributes
    ----------
    name : str
        Name of the column in the table.
    levels : tuple of str
        The levels, sorted.
    missing : bool
        Whether a missing value is one more level, after the others; otherwise it is refused.

    Examples
    --------
    >>> LevelCode("region", ("east", "north", "west")).outputs
    ('region=east', 'region=north', 'region=west')
    >>> LevelCode("smoker", ("no", "yes")).outputs
    ('smoker=yes',)
    """

    name: str
    levels: tuple[str, ...]
    missing: bool = False

    @property
    def dropped(self) -> int:
        """Number of levels, from the first, that have no column: 1 of two, otherwise 0."""
        return 1 if len(self.levels) + self.missing == 2 else 0

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        names = [f"{self.name}={level}" for level in self.levels]
        names += [f"{self.name} is missing"] if self.missing else []
        return tuple(names[self.dropped :])
