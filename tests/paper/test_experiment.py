"""The base of the experiments, with an experiment that is easy to compute by hand."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import pytest

import privasso as pv
from privasso.paper._experiment import Experiment, stream
from privasso.paper._run import run


@dataclass(frozen=True)
class Uniforms(Experiment):
    """Largest of N uniform numbers, for several N."""

    kind: ClassVar[str] = "uniforms"
    varied: ClassVar[dict[str, str]] = {"n_features": "n_features"}

    law: str = "constant"
    n_features: tuple[int, ...] = (2, 5)
    _: KW_ONLY
    samples: int = 4

    @staticmethod
    def compute(parameters):
        numbers = stream(parameters, "numbers").uniform(size=parameters["n_features"])
        return {"largest": [float(numbers.max())]}

    def rows(self, case, results):
        mean = float(np.mean([result["largest"][0] for result in results]))
        yield {"largest": mean, "law": case["law"]}


def test_units_and_table(tmp_path):
    experiment = Uniforms(seed=3, samples=5)
    units = experiment.units()
    assert [unit.label for unit in units[4:6]] == ["N = 2, data set 4", "N = 5, data set 0"]
    assert len({unit.key for unit in units}) == len(units) == 10
    expected = [
        np.mean(
            [stream({"seed": 3, "index": k}, "numbers").uniform(size=n).max() for k in range(5)]
        )
        for n in (2, 5)
    ]
    table = run({"largest": experiment}, store=tmp_path)["largest"]
    assert table.columns == ["law", "n_features", "samples", "seed", "version", "largest"]
    assert table.drop("largest").rows() == [("constant", n, 5, 3, pv.__version__) for n in (2, 5)]
    assert table["largest"].to_list() == expected


@pytest.mark.parametrize("change", [{"seed": 1}, {"alpha": 0.6}, {"rho": 0.2}, {"sigma_xi": 0.2}])
def test_the_key_depends_on_everything_that_decides_the_result(change):
    before, after = ({unit.key for unit in Uniforms(**given).units()} for given in ({}, change))
    assert before.isdisjoint(after)
    more = {unit.key for unit in Uniforms(n_features=(2, 5, 7), samples=9).units()}
    assert before < more  # a larger grid keeps the finished units


def test_an_experiment_must_say_what_it_computes():
    class Nothing(Experiment):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # type: ignore[abstract]
