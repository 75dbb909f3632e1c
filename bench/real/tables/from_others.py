"""Tables that come with vega_datasets, scikit-survival and plotnine."""

from __future__ import annotations

import numpy as np

from bench.real.tables.table import Table, build, register


@register("cars", needs="vega_datasets")
def cars() -> Table:
    from vega_datasets import local_data

    frame = local_data.cars().dropna()
    frame["Year"] = frame["Year"].dt.year - 1900
    for place in ("Europe", "Japan"):
        frame[place] = (frame["Origin"] == place).astype(float)
    return build(
        frame,
        outcome="Miles_per_Gallon",
        drop=("Name", "Origin"),
        y_bounds=(0.0, 50.0),
        bounds={
            "Cylinders": (3, 8),
            "Displacement": (50, 500),
            "Horsepower": (40, 250),
            "Weight_in_lbs": (1500, 5500),
            "Acceleration": (5, 30),
            "Year": (70, 82),
        },
        meaning="miles per gallon",
        source="Quinlan (1993), automobiles of 1970 to 1982; vega_datasets cars",
    )


@register("heart-attacks", needs="sksurv")
def heart_attacks() -> Table:
    """The length of stay is left out: it is a part of the follow-up."""
    from sksurv.datasets import load_whas500

    frame, end = load_whas500()
    frame = frame.astype(float)
    frame["log_follow_up"] = np.log(end["lenfol"])
    return build(
        frame,
        outcome="log_follow_up",
        drop=("los",),
        y_bounds=(0.0, 8.0),
        bounds={
            "age": (18, 105),
            "bmi": (10, 50),
            "diasbp": (0, 200),
            "hr": (20, 220),
            "sysbp": (50, 250),
        },
        meaning="log of the days of follow-up after a heart attack",
        source="Hosmer, Lemeshow, May (2008), Worcester study; scikit-survival whas500",
    )


@register("diamonds", needs="plotnine")
def diamonds() -> Table:
    """10,000 of the 53,940 diamonds, drawn once."""
    from plotnine.data import diamonds as everything

    frame = everything.sample(10_000, random_state=0).reset_index(drop=True)
    frame["log_price"] = np.log(frame["price"])
    for name in ("cut", "color", "clarity"):
        for level in list(frame[name].cat.categories)[1:]:
            frame[f"{name}={level}"] = (frame[name] == level).astype(float)
    return build(
        frame,
        outcome="log_price",
        drop=("price", "cut", "color", "clarity"),
        y_bounds=(5.0, 10.0),
        bounds={
            "carat": (0, 5),
            "depth": (40, 80),
            "table": (40, 100),
            "x": (0, 12),
            "y": (0, 12),
            "z": (0, 12),
        },
        meaning="log of the price in dollars",
        source="Wickham (2009), ggplot2; plotnine diamonds",
    )


@register("fuel", needs="plotnine")
def fuel() -> Table:
    """The consumption in the city is left out: it nearly is the outcome."""
    from plotnine.data import mpg

    frame = mpg.copy()
    frame["automatic"] = frame["trans"].astype(str).str.startswith("auto").astype(float)
    for name in ("drv", "fl", "class"):
        for level in sorted(frame[name].astype(str).unique())[1:]:
            frame[f"{name}={level}"] = (frame[name].astype(str) == level).astype(float)
    return build(
        frame,
        outcome="hwy",
        drop=("manufacturer", "model", "trans", "drv", "cty", "fl", "class"),
        y_bounds=(0.0, 50.0),
        bounds={"displ": (1, 8), "year": (1999, 2008), "cyl": (4, 8)},
        meaning="miles per gallon on a highway",
        source="fueleconomy.gov, models of 1999 and 2008; plotnine mpg",
    )


@register("counties", needs="plotnine")
def counties() -> Table:
    """The poverty of children, adults and the elderly is left out: it adds up to the outcome."""
    from plotnine.data import midwest

    frame = midwest.copy()
    for state in ("IN", "MI", "OH", "WI"):
        frame[state] = (frame["state"] == state).astype(float)
    percent = (0, 100)
    people = (0, 1_000_000)
    names = ("poptotal", "popwhite", "popblack", "popamerindian", "popasian", "popother")
    shares = ("percwhite", "percblack", "percamerindan", "percasian", "percother")
    learnt = ("perchsd", "percollege", "percprof", "percpovertyknown")
    return build(
        frame,
        outcome="percbelowpoverty",
        drop=(
            "PID",
            "county",
            "state",
            "category",
            "percchildbelowpovert",
            "percadultpoverty",
            "percelderlypoverty",
        ),
        y_bounds=(0.0, 60.0),
        bounds={
            "area": (0, 0.2),
            "popdensity": (0, 100_000),
            "popadults": people,
            "poppovertyknown": people,
            **dict.fromkeys(names, people),
            **dict.fromkeys((*shares, *learnt), percent),
        },
        meaning="percentage of people below the poverty line",
        source="Wickham (2009), ggplot2, counties of the Midwest in 2000; plotnine midwest",
    )


@register("penguins", needs="plotnine")
def penguins() -> Table:
    from plotnine.data import penguins as everything

    frame = everything.dropna().reset_index(drop=True)
    for name in ("species", "island", "sex"):
        for level in sorted(frame[name].astype(str).unique())[1:]:
            frame[f"{name}={level}"] = (frame[name].astype(str) == level).astype(float)
    return build(
        frame,
        outcome="body_mass_g",
        drop=("species", "island", "sex"),
        y_bounds=(2000.0, 7000.0),
        bounds={
            "bill_length_mm": (25, 65),
            "bill_depth_mm": (10, 25),
            "flipper_length_mm": (150, 250),
            "year": (2007, 2009),
        },
        meaning="body mass in grams",
        source="Horst, Hill, Gorman (2020), palmerpenguins; plotnine penguins",
    )


@register("house-sales", needs="plotnine")
def house_sales() -> Table:
    from plotnine.data import txhousing

    frame = txhousing.dropna().reset_index(drop=True)
    frame["median"] = frame["median"] / 1000.0
    frame["volume"] = frame["volume"] / 1e6
    return build(
        frame,
        outcome="median",
        drop=("city", "date"),
        y_bounds=(0.0, 350.0),
        bounds={
            "year": (2000, 2015),
            "month": (1, 12),
            "sales": (0, 10_000),
            "volume": (0, 3000),
            "listings": (0, 50_000),
            "inventory": (0, 60),
        },
        meaning="median price of the houses sold in a month, in 1000 dollars",
        source="Real Estate Center of Texas A&M University, cities of Texas; plotnine txhousing",
    )
