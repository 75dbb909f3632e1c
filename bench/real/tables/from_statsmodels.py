"""Tables that come with statsmodels."""

from __future__ import annotations

import numpy as np

from bench.real.tables.table import Table, build, register


def _frame(name: str):
    from statsmodels import datasets

    return getattr(datasets, name).load_pandas().data.copy()


@register("school-districts", needs="statsmodels")
def school_districts() -> Table:
    frame = _frame("star98")
    frame["rate"] = frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"])
    percent, years, salary, spending, pupils = (0, 100), (5, 25), (30, 90), (2, 8), (10, 30)
    bounds = {
        "LOWINC": percent,
        "PERASIAN": percent,
        "PERBLACK": percent,
        "PERHISP": percent,
        "PERMINTE": percent,
        "AVYRSEXP": years,
        "AVSALK": salary,
        "PERSPENK": spending,
        "PTRATIO": pupils,
        "PCTAF": percent,
        "PCTCHRT": percent,
        "PCTYRRND": percent,
        "PERMINTE_AVYRSEXP": (0, 2500),
        "PERMINTE_AVSAL": (0, 9000),
        "AVYRSEXP_AVSAL": (150, 2250),
        "PERSPEN_PTRATIO": (20, 240),
        "PERSPEN_PCTAF": (0, 800),
        "PTRATIO_PCTAF": (0, 3000),
        "PERMINTE_AVYRSEXP_AVSAL": (0, 225_000),
        "PERSPEN_PTRATIO_PCTAF": (0, 24_000),
    }
    return build(
        frame,
        outcome="rate",
        drop=("NABOVE", "NBELOW"),
        y_bounds=(0.0, 1.0),
        bounds=bounds,
        meaning="share of pupils above the national median in mathematics",
        source="Gill (2000), California STAR test of 1998; statsmodels star98",
    )


@register("doctor-visits", needs="statsmodels")
def doctor_visits() -> Table:
    frame = _frame("randhie")
    frame["log_visits"] = np.log1p(frame["mdvis"])
    return build(
        frame,
        outcome="log_visits",
        drop=("mdvis",),
        y_bounds=(0.0, 5.0),
        bounds={
            "lncoins": (0, 5),
            "lpi": (0, 8),
            "fmde": (0, 9),
            "disea": (0, 60),
            "physlm": (0, 1),
        },
        meaning="log of one plus the number of outpatient visits in a year",
        source="RAND experiment, in Cameron and Trivedi (2005); statsmodels randhie",
    )


@register("affairs", needs="statsmodels", kind="binary")
def affairs() -> Table:
    frame = _frame("fair")
    frame["any"] = (frame["affairs"] > 0).astype(float)
    return build(
        frame,
        outcome="any",
        drop=("affairs",),
        y_bounds=(0.0, 1.0),
        bounds={
            "rate_marriage": (1, 5),
            "age": (15, 45),
            "yrs_married": (0, 25),
            "children": (0, 6),
            "religious": (1, 4),
            "educ": (8, 20),
            "occupation": (1, 6),
            "occupation_husb": (1, 6),
        },
        meaning="a woman reports an extramarital affair",
        source="Fair (1978), survey by Redbook of 1974; statsmodels fair",
    )
