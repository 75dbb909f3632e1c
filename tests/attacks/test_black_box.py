"""Attacks on whole programs, which know nothing of the mechanism: mistakes are found."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privasso as pv
from black_boxes import black_box, learned_score, linear_score, quadratic_score
from privasso.privacy import Terms
from whole_program import traces

pytestmark = pytest.mark.filterwarnings("ignore::privasso.PrivacyWarning")
RNG = np.random.default_rng(0)
X = RNG.random((30, 2))
Y = RNG.uniform(0.1, 0.9, 30)
#: The neighbour: one label at the other end, where it is easy to see.
K = int(np.argmax(X[:, 0]))
Y[K] = 1.0
OTHER = np.where(np.arange(30) == K, 0.0, Y)
PRIVACY = pv.LabelDP(1.0, 0.01, y_bounds=(0.0, 1.0), mechanism="release")
NOISE = pv.PowerLaw(1.0, 0.5)


def estimator(**options):
    """The quickest fit there is."""
    return pv.PrivateLasso(lam=1e-3, privacy=PRIVACY, noise=NOISE, denoise=False, **options)


def test_noise_that_is_too_small_for_the_claim():
    rng = np.random.default_rng(0)
    own = pv.LabelDP(1.0, 1e-6, y_bounds=(0, 1)).guarantee(
        Terms(fit_intercept=False, seeded=False, n_rows=50)
    )
    for deviation, passed in ((0.5, False), (4.2, True)):
        found = black_box(lambda world, d=deviation: world + d * rng.standard_normal(1), own)
        assert found.passed is passed


def test_a_score_learns_from_means_from_spreads_and_from_what_is_tied():
    rng = np.random.default_rng(0)
    score = learned_score(rng.normal(0.0, 0.1, (100, 1)), rng.normal(0.0, 1.0, (100, 1)))
    narrow, wide = score(np.array([[0.0], [1.0]]))
    assert narrow > 0.0 > wide
    noise = rng.standard_normal((400, 2))
    score = linear_score(np.add(noise[:200], [1.0, 0.0]), noise[200:])
    high, low = score(np.array([[2.0, 0.0], [-1.0, 0.0]]))
    assert high > 1.0
    assert low < -1.0
    a, noise = rng.standard_normal((2, 200, 1))
    score = quadratic_score(np.hstack([a, a + 0.01 * noise]), rng.standard_normal((200, 2)))
    high, low = score(np.array([[1.0, 1.0], [1.0, 0.0]]))
    assert high > 0.0 > low


@functools.cache
def claim():
    """Not at import: a fit may compile kernels, and each worker imports every file."""
    return estimator().fit(X, Y).guarantee_


def numbers(est):
    return np.append(est.coef_, est.intercept_)


def attacked(fit, releases=100):
    """Labels differ a little from run to run, so that no fit is taken for another of the same."""
    rng = np.random.default_rng(1)

    def run(world):
        return fit((Y if world else OTHER) + 1e-9 * rng.random(30))

    return black_box(run, claim(), releases=releases)


def test_the_program_as_it_is():
    result = attacked(lambda y: numbers(estimator().fit(X, y)))
    assert result.passed is True


def reused_seed(y):
    return numbers(estimator(random_state=7).fit(X, y))


def intercept_without_noise(y):
    est = estimator().fit(X, y)
    return np.append(est.coef_, y.mean() - X.mean(axis=0) @ est.coef_)


def unclipped_labels(y):
    """The bounds say nothing about these labels, and they are not clipped."""
    return 6.0 * numbers(estimator().fit(X, y / 6.0 + 5.0 / 12.0)) + (y - y.mean())[K] * 0.9


def a_statistic_of_the_labels(y):
    return np.append(numbers(estimator().fit(X, y)), y.max() - np.sort(y)[-2])


@pytest.mark.parametrize(
    "broken",
    [reused_seed, intercept_without_noise, unclipped_labels, a_statistic_of_the_labels],
    ids=lambda x: x.__name__,
)
def test_mistakes_are_found(broken):
    result = attacked(broken)
    assert result.passed is False


def test_labels_in_what_is_written():
    labels = RNG.random(5)
    written = [f'{{"coef": [1.0, {labels[3]!r}]}}', "residuals: none"]
    assert traces(written, labels) == [labels[3]]
    est = estimator().fit(X, Y)
    assert traces([json.dumps(est.coef_.tolist()), str(est.guarantee_)], Y[Y < 1.0]) == []


def test_bad_input():
    with pytest.raises(ValueError, match="releases"):
        attacked(reused_seed, releases=3)


@pytest.mark.slow
def test_the_command_line_against_neighbouring_files(tmp_path):
    """`privasso fit` as a subprocess: files in, files out. Nothing of a label is written."""
    files = []
    for world, y in enumerate((OTHER, Y)):
        rows = [f"{a!r},{b!r},{c!r}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
        files.append(tmp_path / f"{world}.csv")
        files[-1].write_text("\n".join(["a,b,label", *rows]) + "\n")
    command = [
        Path(sys.executable).with_name("privasso"), "fit", "--target", "label", "--label-dp",
        "--epsilon", "1", "--delta", "0.01", "--y-bounds", "0", "1", "--lam", "0.001",
    ]  # fmt: skip
    written = []

    def run(world):
        model = tmp_path / "model.json"
        files_of = [str(files[world]), "--out", str(model)]
        done = subprocess.run([*command, *files_of], capture_output=True, text=True, check=True)
        written.extend([model.read_text(), done.stdout, done.stderr])
        read = pv.load(model)
        return np.append(read.coef, read.intercept)

    assert black_box(run, claim(), releases=40).passed is True
    assert traces(written, np.concatenate([Y[Y < 1.0], X.ravel()])) == []
