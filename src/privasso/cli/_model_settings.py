"""The options that describe rows and columns where there are no data."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from privasso._files import read_bounded
from privasso._text import escaped
from privasso.cli._options import option

if TYPE_CHECKING:
    import numpy as np

    from privasso.model import Model
    from privasso.scales import ScaleLaw

#: Bytes beyond which a file of scales is refused.
_MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class ModelSettings:
    """What rows, columns and labels are like."""

    alpha: float = option("Rows per column, M/N.", 0.5)
    rho: float = option("Fraction of nonzero coefficients.", 0.1)
    sigma_xi: float = option("Standard deviation of the label noise.", 0.1)
    scales: str = option(
        "Law of the column scales: uniform[:LOW,HIGH], lognormal[:MU,SIGMA], constant[:VALUE], "
        "or a text file with one scale per column.",
        "uniform",
    )
    n_features: int | None = option("Number of columns.  [default: the limit of many]")
    covariance: str | None = option(
        "Correlated columns: ar:R, blocks:SIZE,R, factors:NUMBER,SHARE, power:P or "
        "levels:RATIO,PART (random eigenvectors), or a data file of public covariates."
    )
    seed: int | None = option("Seed of the draws, with --covariance.")

    def model(self) -> Model:
        """The model that the options describe.

        >>> ModelSettings(scales="lognormal:0,1").model()
        Model(alpha=0.5, rho=0.1, sigma_xi=0.1, scales=LogNormal(mu=0.0, sigma=1.0))
        """
        from privasso.model import COVARIANCE_NAMES, GivenCovariance, Model, covariance_from_name
        from privasso.tables import open_table

        model = Model(self.alpha, self.rho, self.sigma_xi, scale_law(self.scales))
        text = self.covariance
        if text is None:
            return model
        if text.partition(":")[0].lower() in COVARIANCE_NAMES:
            return replace(model, covariance=covariance_from_name("--covariance", text))
        if not Path(text).exists():
            known = ", ".join(COVARIANCE_NAMES)
            raise ValueError(f"--covariance {text!r} is neither a file nor one of {known}")
        if self.scales != "uniform":
            raise ValueError("a file of covariates brings its own scales; leave --scales out")
        table = open_table(text)
        covariance = GivenCovariance.of(table.matrix(table.names))
        return replace(model, scales=None, covariance=covariance)


def scale_law(text: str) -> ScaleLaw:
    """Return the law that a word such as ``lognormal:0,0.5`` or a file of scales stands for."""
    from privasso.scales import LAW_NAMES, Empirical, law_from_name

    if text.partition(":")[0].lower() in LAW_NAMES:
        return law_from_name("--scales", text)
    if Path(text).exists():
        return Empirical(_scales_in_order(Path(text)))
    raise ValueError(f"--scales {text!r} is neither a file nor one of {', '.join(LAW_NAMES)}")


def prior_scales(text: str, names: list[str]) -> ScaleLaw | np.ndarray:
    r"""Return the same, or one scale per column from lines ``name,scale``, in any order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "scales.csv")
    ...     _ = file.write_text("weight,12\nage,15.5\n")
    ...     prior_scales(str(file), ["age", "weight"])
    array([15.5, 12. ])
    """
    import numpy as np

    from privasso.scales import LAW_NAMES

    path = Path(text)
    if text.partition(":")[0].lower() in LAW_NAMES or not path.exists():
        return scale_law(text)
    content = io.StringIO(_text(path), newline="")
    try:
        lines = [line for line in csv.reader(content) if line]
        found = {line[0].strip(): float(line[1]) for line in lines if len(line) == 2}
    except (csv.Error, ValueError):
        found, lines = {}, [[]]
    if len(found) != len(lines):
        raise ValueError(f"--scales {escaped(path)} must have lines NAME,SCALE, each name once")
    for name in names:
        if name not in found:
            raise ValueError(f"--scales {escaped(path)} has no line for the column {name!r}")
    return np.array([found[name] for name in names])


def _scales_in_order(path: Path) -> list[float]:
    """All numbers of a file, between commas, spaces or line breaks; # begins a comment."""
    lines = (line.partition("#")[0] for line in _text(path).splitlines())
    try:
        return [float(word) for line in lines for word in line.replace(",", " ").split()]
    except ValueError:
        raise ValueError(f"--scales {escaped(path)} must hold numbers alone") from None


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--scales {escaped(path)} is not a text file in UTF-8") from None
