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

    Examples
    --------
    >>> NumberCode("weight", fill=70.0, indicator=True).outputs
    ('weight', 'weight is missing')
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
    """A column of texts: a 0/1 column for each level but the reference, which is zero in all.

    With a column for the reference, too, the columns and the intercept would be linearly
    dependent, and noise in a direction that changes no prediction can leave the objective without
    a minimum.

    Attributes
    ----------
    name : str
        Name of the column in the table.
    levels : tuple of str
        The levels, sorted.
    reference : str or None
        The level without a column. None gives each level a column; then every other value, a
        missing one included, is zero in all of them.
    missing : bool
        Whether a missing value is one more level, after the others; otherwise it is refused.

    Examples
    --------
    >>> LevelCode("region", ("east", "north", "west"), "north", missing=True).outputs
    ('region=east', 'region=west', 'region is missing')
    >>> LevelCode("smoker", ("yes",), None).outputs
    ('smoker=yes',)
    """

    name: str
    levels: tuple[str, ...]
    reference: str | None
    missing: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that have a column."""
        return tuple(level for level in self.levels if level != self.reference)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        names = tuple(f"{self.name}={level}" for level in self.shown)
        return (*names, f"{self.name} is missing") if self.missing else names
