"""`privasso fit`: a private model from a data file, with a statement and a report."""

from __future__ import annotations

from privasso.cli._fit_settings import FitSettings
from privasso.cli._options import AsJson


def fit(settings: FitSettings, as_json: AsJson = False) -> None:
    """Fit a sparse linear model with privacy noise and write it as one JSON file.

    Write bounds of the columns into the form of `privasso bounds`. Then see what the noise will
    do, without reading a record:

    `privasso fit patients.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --bounds bounds.csv --dry-run`

    Then fit:

    `privasso fit patients.csv --target pressure --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --bounds bounds.csv --out model.json --report report.html`

    If the covariates are public and only the labels are private:

    `privasso fit patients.csv --target pressure --label-dp --epsilon 1 --delta 1e-6
    --y-bounds 60 200 --out model.json --keep-release release.json`

    Tables of many files are read in blocks of rows and need not fit in memory:

    `privasso fit 'claims/*.parquet' --target cost --record-dp --epsilon 1 --delta 1e-6
    --y-bounds 0 5000 --bounds bounds.csv --memory 4GB --out model.json`

    Genotypes of PLINK stay packed while some variants are chosen. Labels are those of the .fam
    file, or --labels FILE --target COLUMN, and bounds are 0 to 2 copies:

    `privasso fit study.bed --record-dp --epsilon 3 --delta 1e-6 --y-bounds 15 45 --screen 10
    --labels bmi.txt --target bmi --out model.json`

    For labels of two classes, --classes or (for 0 and 1) --binary fits a logistic regression, of
    which `privasso predict` gives probabilities. A label of no class is a missing one, and nothing
    tells how many there are:

    `privasso fit patients.csv --target relapse --classes No,Yes --label-dp --epsilon 1 --delta 1e-6
    --out model.json`

    Under --label-dp text columns become one 0/1 column per level, such as `region=north`. Columns
    that look like identifiers, dates and missing values are refused until an option settles what
    to do.

    Several fits of the same people share the budget of a ledger, in which each is entered before
    its noise is drawn:

    `privasso ledger create budget.json --epsilon 3 --delta 1e-6`, then `privasso fit …
    --ledger budget.json`

    Another λ from a kept release costs nothing and needs no labels:

    `privasso fit patients.csv --from-release release.json --lam 5000 --out model2.json`
    """
    from privasso.cli._fit_check import check

    check(settings)
    if settings.dry_run:
        from privasso.cli._fit_plan import dry_run

        dry_run(settings, as_json)
    else:
        from privasso.cli._fit_run import run

        run(settings, as_json=as_json)
