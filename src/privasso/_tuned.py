"""Every number of a fit that was tuned, with its meaning and the tables that it was chosen on.

None of them comes from the data of a fit. Those of records, of logistic regression and of choices
of columns have studies, which the documentation shows; where no table is named, a number is a rule
of thumb that later tables have not contradicted.
"""

from __future__ import annotations

from typing import Final

# ---- The prior: what is supposed of a table before anything of it is read -----------------------

#: Distance between the bounds of labels in deviations of these: three on each side of the middle.
#: Guesses of coefficients, forecasts and choices of columns use it.
LABEL_WIDTH: Final = 6.0
LABEL_DEVIATION: Final = 1 / LABEL_WIDTH
#: The same where an average over labels is taken that vary by half as much, and by half more.
LABEL_DEVIATIONS: Final = (0.5 * LABEL_DEVIATION, LABEL_DEVIATION, 1.5 * LABEL_DEVIATION)
#: Part of the variance of the labels that the columns explain.
EXPLAINED: Final = 0.5
#: The same where ridge and shrinking of fits of labels are chosen for the average of several. A
#: ridge that is too large costs more where much can be explained: 25, 50 and 75 per cent instead
#: lost up to 0.06 of R² on simulated tables with correlated or skewed columns, of which half was
#: explained, and gained nothing on others.
EXPLAINED_PARTS: Final = (0.3, 0.6, 0.9)
#: How many columns have coefficients: each of these is as likely as the others. The wide tables of
#: docs/wide.md.
TRUE_COLUMNS: Final = (1, 3, 10, 30, 100)
#: Variance of a column in units of half the distance between its bounds.
COLUMN_VARIANCE: Final = 0.25
#: The same for a column that fills little of its bounds: sums of products lose most on these, so
#: that they are released only where that is expected to do no harm.
NARROW_VARIANCE: Final = 1 / 16
#: What a column is simulated with in a forecast: deviation as a part of the distance between its
#: bounds, as that of labels, and how many of these the mean is away from both.
FORECAST_DEVIATION, FORECAST_MARGIN = LABEL_DEVIATION, 2.0

# ---- Fits of whole records: docs/records.md, every other of 27 real tables ----------------------

#: R relative to √N, the length of a row whose entries are all at their bounds; and the same where
#: entries are in units of the scales of their columns.
ROW, STANDARD_ROW = 0.45, 0.7
#: Both where sums of products are released: few rows are shrunk then.
LONG_ROW, LONG_STANDARD_ROW = 0.85, 1.2
#: What a column of zeros and ones counts there, as a part of another one: it is mostly zero. For
#: other fits those beyond the first ones count as much: many are the levels of few variables, and
#: at most one level of each is there. 14 real tables and simulated ones with 42 and 251 levels.
ONES, MANY_ONES = 0.1, 16
#: κ for few rows, the most it may be, and the ε·M/N beyond which it grows.
RECORD_KAPPA, MOST_RECORD_KAPPA, MANY_ROWS = 0.05, 0.25, 100.0
#: t relative to e^ε − 1, and the power of ε with which it grows beyond 1.
RECORD_T, T_POWER = 0.19, 4 / 3
#: λ per row, for labels of range 1 and columns of range 2.
LAM_PER_ROW = 2e-5
#: Where a column that is not negative is measured from, between its bounds.
ORIGIN = 0.35
#: Statistics are released by "auto" if they are predicted to lose no more R².
MOST_STATISTICS_LOSS = 0.01
#: Ridge of statistics, in units of the largest eigenvalue of the noise. Simulated tables.
STATISTICS_RIDGE = 0.7
#: Eigenvalues of a shape are not taken to be below this part of their mean. docs/private-bounds.md.
SHAPE_FLOOR = 0.01

# ---- Logistic regression on records: docs/binary.md, one half of 33 real tables -----------------

#: R and K relative to √N, and both where entries are in units of scales, relative to these.
PULL, REACH, STANDARD_REACH = 0.3, 1.0, 1.5
#: t relative to that of other fits for few rows, and the most of it; λ per row.
LOGISTIC_T, MOST_LOGISTIC_T, LOGISTIC_LAM_PER_ROW = 0.5, 1.5, 2e-4

# ---- Fits of labels on public covariates --------------------------------------------------------

#: κ at ε·M/N = `MANY_ROWS`, with whose third root it grows, the most of it, and the least by how
#: neighbours differ: where a label is replaced, predictions of few rows are worse, and clipped
#: residuals cost more. 27 real tables at ε = 1, 3, 10.
LABEL_KAPPA, MOST_LABEL_KAPPA = 0.1, 0.25
LEAST_LABEL_KAPPA: Final = {"emptied": 0.08, "replaced": 0.1}
#: With more columns than rows the least κ grows with √ε from here on. Simulated tables at ε = 10.
WIDE_KAPPA_EPSILON = 3.0
#: Values of t to choose from, relative to ε, and the one where there are no rows to choose it for.
LABEL_RIDGES, LABEL_RIDGE = (0.02, 0.05, 0.1, 0.2, 0.4), 0.1
#: A larger ridge is preferred to one that is better by no more than this part: the smaller the
#: minimiser, the closer is what is computed from it to products with Gaussian noise.
RIDGE_WORTH = 0.05
#: Part of the rows that is shrunk where it pays, of products of rows and labels (between a half and
#: nine tenths little changes) and of an objective, whose weights are squared.
SHRINK_PRODUCTS, SHRINK_OBJECTIVE = 0.75, 0.5
#: Gain in explained variance, as a part of that of the labels, for which shrinking pays. Where
#: labels are not quite linear in the columns, shrunk rows pull coefficients away from the best ones
#: for all rows, which costs about as much. And the same beside components of the covariates, which
#: are never quite linear in what they stand for.
SHRINK_GAIN, SHRINK_GAIN_COMPONENTS = 0.01, 0.1
#: Weight of the noise of the label sum against that of one standardised column. The intercept
#: enters every prediction, so that it counts for more than one column.
SUM_WEIGHT = 4.0
#: Part of what the best guess explains that a sparser model may lose.
SPARSITY_LOSS = 0.001
#: Standard errors added to Stein's estimate where λ is chosen by it. In simulations with strong
#: noise, 0 leads to up to hundreds of times the best error and 1 to tens of times; 3 is no better.
STEIN_CAUTION = 2.0

# ---- What λ is for ------------------------------------------------------------------------------

#: Chance that any coefficient is not zero for labels that have nothing to do with the columns,
#: where λ is to select columns, and R² that this may cost where nothing is said about the aim. With
#: 0.02, labels alone were predicted worse than with whole records protected on 4 of 27 real tables.
SELECT_CHANCE, SELECT_LOSS = 0.05, 0.005
#: How far the mean of a column is from where it is measured, in units of half its range, and that
#: of the labels from the middle of their bounds, as a part of the range: two of their deviations
#: away from both bounds. Log odds of two classes are as far as those of 12 per cent.
SELECT_MEAN, SELECT_LEVEL, SELECT_LOG_ODDS = 1 / 3, 1 / 6, 2.0

# ---- The mean that corrects an intercept --------------------------------------------------------

#: Deviations of small and large differences between the mean and the median of residuals, as parts
#: of the range of the labels.
SMALL_SHIFT, LARGE_SHIFT = 0.004, 0.1
#: Of fits without a choice of columns: sensitivity relative to that of a Gaussian mechanism with
#: the whole budget, how often a difference is large, and the largest noise in the mean, as a part
#: of the range, with which it is of use.
SHIFT_PART, SHIFT_OFTEN, SHIFT_NOISE = 0.1, 0.1, 1 / 30

# ---- Choices of columns: docs/wide.md, simulated tables, with its ten real ones in view ---------

#: Where labels are clipped for their associations, and residuals in further rounds, as parts of the
#: range of the labels.
CHOICE_CLIP, RESIDUAL_CLIP = 0.08, 0.06
#: Part of the sensitivity of the choice that finds the centre of the labels, and of that of
#: everything before the last fit that corrects its intercept.
CENTRE_PART, LEVEL_PART = 0.25, 0.25
#: By the number of further rounds, parts of the share for the first choice, for all fits but the
#: last, and for all further choices.
ROUND_PARTS = {0: (1.0, 0.0, 0.0), 1: (0.45, 0.25, 0.30), 3: (0.35, 0.35, 0.30)}
#: Fewest columns for so many further rounds.
ROUND_COLUMNS = {0: 1, 1: 6, 3: 12}
#: More rounds may be this much worse for independent columns; they are better for correlated ones.
ROUND_WORTH = 0.03
#: Shares of the budget and numbers of columns that are compared.
CHOICE_SHARES = (0.2, 0.35, 0.5, 0.65)
CHOICE_COUNTS = (3, 5, 8, 12, 16, 20, 30, 40, 60, 80, 120, 160, 250, 400, 600, 1000)
#: A choice must gain this much R² over a fit of all, unless what that reaches is known better from
#: public columns: coefficients may be less sparse than supposed. Where a fit of all reaches more
#: than the last number of what can be explained, a choice must gain more for records, as columns
#: that are missed cost more than little noise, and is not made for labels, whose fit of all loses
#: less. Chosen on diabetes-64 and simulated tables with 42 and 251 levels, at ε = 1, 3, 10, and on
#: 6,000 and 12,000 rows of 1,000 columns, 10 or 100 of them true.
CHOICE_GAIN, LARGE_GAIN, MUCH_DIRECT = 0.03, 0.05, 2 / 3
#: Fewest columns of a table for a choice that nobody asks for: what gained by one had 54 and more.
#: A fit of all columns of labels has a release, from which other λ cost nothing.
CHOICE_COLUMNS = 40

# ---- Components of public covariates beside chosen columns: docs/wide.md, real tables -----------

#: Components are considered where there are more columns than this part of the rows.
WIDE_PART = 0.25
#: Most components, and the numbers of components, of columns and the shares that are compared.
MOST_COMPONENTS = 400
COMPONENTS = (0, 3, 5, 8, 12, 18, 25, 35, 50, 75, 100, 150, 200, 300, MOST_COMPONENTS)
BESIDE_COUNTS, BESIDE_SHARES = (1, 3, 6, 12, 25, 50), (0.1, 0.2, 0.4, 0.6)
#: Largest part of the explained variance that is expected along the leading components.
MOST_LEADING = 0.5
#: What must be gained over a fit of all columns, as a part of what can be explained.
COMPONENT_GAIN = 0.05
#: Components are no more than this part of the rows.
COMPONENT_ROWS = 0.5

# ---- The range of the labels: docs/private-bounds.md --------------------------------------------

#: Least and largest part for it of the squared sensitivity of a Gaussian mechanism, with the budget
#: that intervals leave. Between them the noise of a choice is this part of the rows. All of these
#: numbers come from 27 real tables at ε = 1.
LEAST_RANGE_PART, MOST_RANGE_PART, RANGE_NOISE = 0.05, 0.5, 0.025
#: Part of that for the magnitude of the labels; the rest is for an interval.
MAGNITUDE_PART = 0.25
#: What a magnitude or an interval pays for each doubling, in deviations of the noise, and the least
#: and the most as parts of the rows: where noise is small, few labels may be clipped.
MAGNITUDE_PRICE, INTERVAL_PRICE = (3.0, 0.01, 0.2), (4.0, 0.01, 0.12)
#: What is added to both sides, as a part of the interval.
RANGE_ROOM = 0.1

# ---- Intervals ----------------------------------------------------------------------------------

#: Part of the squared sensitivity of a Gaussian mechanism with the whole budget for intervals.
INTERVAL_PART = 0.5
