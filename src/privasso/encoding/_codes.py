"""What one column of a table becomes in the matrix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumberCode:
    """A column of numbers.

    `fill`: what a missing value is replaced by; None refuses missing values. `indicator`: whether a
    column of its own tells by 1 that the value is missing.
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

    - `levels`: the levels, sorted.
    - `reference`: the level without a column. None gives each level a column; then every other
      value, a missing one included, is zero in all of them.
    - `missing`: whether a missing value is one more level, after the others; otherwise it is
      refused.
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
