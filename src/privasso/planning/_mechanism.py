"""From covariates and labels to a release: the noise is calibrated, and the questions asked."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from privasso._types import MatrixLike
from privasso._validation import generator, real_array, real_labels
from privasso.noise import Diagonal, Noise, NoiseDesign, Shaped
from privasso.operators import Covariates
from privasso.planning._average import AverageProducts
from privasso.planning._labels import LabelRelease
from privasso.planning._release_mechanism import ReleaseMechanism
from privasso.privacy import LabelDP, OnAverage, Privacy, Scales, check_kind
from privasso.programs import Calibration, Release
from privasso.queries import Answering, bit_source
from privasso.scales import ScaleLaw


def release_mechanism(privacy: Privacy) -> ReleaseMechanism:
    """How products of rows and labels are released under a kind of privacy."""
    check_kind(privacy)
    if isinstance(privacy, LabelDP):
        return LabelRelease(privacy)
    if isinstance(privacy, OnAverage):
        return AverageProducts(privacy)
    raise ValueError(
        f"{type(privacy).__name__} releases coefficients only, no products of rows and labels; "
        "use LabelDP or OnAverage, or PrivateLasso"
    )


def calibrate(
    rows: Covariates, privacy: Privacy, noise: Noise, *, scales: Scales = None
) -> Calibration:
    """Return the noise that `privacy` asks for on these covariates; reads no label."""
    mechanism = release_mechanism(privacy)
    if isinstance(noise, Shaped):
        if scales is not None and not (isinstance(scales, str) and scales == "data"):
            raise ValueError(
                "noise of the best covariance is shaped for the rows themselves and takes no "
                "scales; leave scales out, or choose a design such as PowerLaw(1.0, gamma=0.5)"
            )
        return mechanism.calibrate_shaped(rows, noise.shrink)
    if not isinstance(noise, NoiseDesign):
        raise ValueError(
            "noise must be Shaped() or a noise design, such as PowerLaw(1.0, gamma=0.5), "
            f"not an object of type {type(noise).__name__}"
        )
    v = _squared_scales(rows, scales)
    shape = noise.with_sigma(1.0).covariance(v) if v.size else Diagonal([])
    return mechanism.calibrate(rows, shape, v)


def release_labels(
    F: MatrixLike,
    y: ArrayLike,
    privacy: Privacy,
    noise: Noise | Calibration,
    *,
    fit_intercept: bool = True,
    scales: Scales = None,
    rng: int | np.random.Generator | None = None,
) -> Release:
    """Run the mechanism once: draw the noise and return what later steps may use.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N), or Covariates
        Covariates; public under `LabelDP`.
    y : array_like, shape (M,)
        Labels.
    privacy : Privacy
        What to protect, and how much.
    noise : NoiseDesign, Shaped or Calibration
        How the noise is spread over the columns; its level comes from `privacy`. Or what
        `calibrate` returned for the same covariates.
    fit_intercept : bool
        Centre F and release the label sum as well.
    scales : None, "data", array_like of shape (N,) or ScaleLaw
        Where the design finds the scales s of the columns, v = s²: the columns of F (the
        default), given scales, or a law, which says nothing about single columns and so gives
        all the same variance.
    rng : None, int or numpy.random.Generator
        Source of the noise; None takes entropy from the operating system.
    """
    rows = F if isinstance(F, Covariates) else Covariates(F, centre=fit_intercept)
    if rows.centred != fit_intercept:
        raise ValueError("F is prepared with centring that contradicts fit_intercept")
    mechanism = release_mechanism(privacy)
    if isinstance(noise, Calibration):
        calibration = noise
    else:
        calibration = calibrate(rows, privacy, noise, scales=scales)
    labels = real_labels(y, rows.shape[0], finite=not privacy.formal)
    program, table = mechanism.program(rows, calibration), rows.labelled(labels)
    ask = Answering(table, bit_source(None if rng is None else generator(rng)))
    return program(ask, 0.0)


def _squared_scales(rows: Covariates, scales: Scales) -> np.ndarray:
    """V of the live columns, from the data or from `scales`."""
    if scales is None or (isinstance(scales, str) and scales == "data"):
        return rows.v
    if isinstance(scales, str):
        raise ValueError(f"scales must be 'data', an array of scales or a law, not {scales!r}")
    if isinstance(scales, ScaleLaw):
        mean = scales.moment(1.0)
        if not 0.0 < mean < math.inf:
            raise ValueError("scales is a law without a finite mean of v = s²; pass another")
        return np.full(int(rows.live.sum()), mean)
    s = real_array("scales", cast(ArrayLike, scales), shape=(rows.shape[1],))
    if np.min(s) < 0.0:
        raise ValueError("scales must be zero or more; they are scales s, with v = s²")
    return s[rows.live] ** 2
