"""Every number of the solvers that was tuned, with its meaning, and what it was chosen on.

They decide how fast a minimiser is found; what is one, a certificate decides. Rules for the LASSO
were tried on the matrices of `bench.matrices`. One stays if without it one of these takes more than
1.3 times as long or as much memory: what the slowest takes without a rule, relative to before, in
one run. Where no row names a number, it is a rule of thumb.

| rule | without | on |
|---|---|---|
| AMP where columns look independent | 2.4 | Gaussian 2000 × 1000, λmax/100 |
| AMP alone on the columns copied out | 2.1 | the same |
| rough copies of F | 1.8 | independent 3000 × 6000 |
| `ALONE_DEVIATIONS` | 1.7 | the same; noisy, it is 0.7 |
| no AMP on `TALL` matrices | 2.1 | insurance 5000 × 350, λmax/20 |
| but where `AMP_MANY` columns matter | 1.35 | tall 20,000 × 500, λmax/100 |
| λ followed down | 2.7 | expression 80 × 7000, λmax/500; at λmax/3 it is 0.6 |
| fast where the slope allows | 1.9 | tall 20,000 × 500, λmax/20 |
| the slope itself | 6.0 | large means 500 × 300, λmax/100 |
| rough solves while columns are `MISSING` | 1.8 | genotypes 800 × 4000, λmax/500 |
| `SMALL_SET` | 1.5 | raw counts 700 × 765, λmax/3 |
| Newton steps that set all coefficients to zero whose sign changes | 1.4 | noisy, 1500 × 3000 |
| the rules of sparse columns, together | 2.1 | TF-IDF 5000 × 20,000, λmax/300 |
| F itself in place of copies | 1.9, memory | Gaussian 2000 × 1000, λmax/200 |
| bordered systems | 1.75 | 64 noise vectors, 2,000 columns, λ = σ_η = 0.1 |
"""

# ---- What is tried first ------------------------------------------------------------------------

#: Fewest rows and columns for which AMP is tried.
AMP_SMALLEST = 50
#: Rows per column from which on a few passes over F and the Gram matrix of few columns are quicker.
TALL = 4
#: unless so many columns correlate with the labels by more than λ.
AMP_MANY = 200
#: Columns that are compared: runs of neighbours, as neighbours often are most alike.
RUNS, RUN_LENGTH = 8, 8
#: Rows that are enough to compare columns.
ROWS_COMPARED = 2000
#: Largest mean squared correlation, relative to that of independent columns.
INDEPENDENT = 1.5

# ---- Approximate message passing ----------------------------------------------------------------

#: Hand over once an iteration changes less than this part of the support
SETTLED_TURNOVER = 0.1
#: and moves the coefficients by less than this, relative to their size.
SETTLED_CHANGE = 0.2
#: Hand over after this many iterations in any case: what still moves then is a coefficient that
#: goes to zero and back.
AMP_PATIENCE = 30
#: The V at which the loop first looks for a ray; it looks again at every doubling. As
#: V = ρ̂/(α − ρ̂) at a fixed point, V = 3 means that ρ̂ is three quarters of the largest it can be.
SUSPICIOUS_V = 3.0
#: Most iterations alone on the columns copied out, and how often columns may join them.
ALONE_ITERATIONS, ALONE_ROUNDS = 120, 6
#: Accuracy with which it begins, relative to the one that is asked for.
ALONE_AIM = 0.3
#: Part of the distance to the fixed point that a run on columns rounded to 16 bits should leave.
ROUGH_GAIN = 0.01
#: Steps of conjugate gradients towards a dual point, and the relative error of the slowest
#: constraint that is enough.
DIRECTION_STEPS, DIRECTION_ACCURACY = 6, 0.3

#: Most iterations that may be expected where AMP goes on alone.
ALONE_FEW = 80
#: How far from the threshold a field may be for its column to be copied out, in standard deviations
#: of what it has still to move.
ALONE_DEVIATIONS = 3.0

#: Iterations after which the precisions are kept, and the damping from then on.
VAMP_FREEZE_AFTER, VAMP_DAMPING = 30, 0.5
#: Iterations after which the exact solve takes over in any case, and those between two looks for
#: a certificate or a ray.
VAMP_PATIENCE, VAMP_LOOK = 60, 10
#: Size of θ, relative to that of the first one, beyond which the iteration has diverged.
VAMP_FAR = 1e8

# ---- Working sets -------------------------------------------------------------------------------

#: Most rounds, and those that may gain nothing.
GROWTH_ROUNDS, GROWTH_PATIENCE = 100, 3
#: Largest and smallest factor from one λ to the next,
DESCENT, JUMP = 0.6, 0.05
#: and the accuracy that is enough at those before the last.
ROUGHLY = 0.1
#: Violation at the next λ, relative to it, that is not worth a stop before.
SLIGHT = 1e-3
#: Part of the last violation to which a large sparse set is solved before all columns are checked.
GAIN = 1e-3
#: Sets of so many columns are solved exactly at once.
SMALL_SET = 96
#: Fewest columns by which a set may grow.
FIRST_COLUMNS = 48
#: Largest |c|/λ at the minimiser of the problem before, times the support over M, from which the
#: next problem starts. From further away, the way from a large λ is shorter.
FAR = 2.0
#: Columns with |c|/λ above this stay in the set when another problem begins. They are only looked
#: for if others are this part of the set.
CLOSE = 0.8
MANY_LESS = 0.9
#: Part of the memory that a set may take, because something else is there too; it weighs more if
#: the numbers of F take half the memory of others.
SHARE, SHARE_OF_SINGLE = 0.75, 0.68
#: Part of the support that may be missing in the set when it is solved exactly.
MISSING = 0.1

#: Part of the columns from which on F itself is used, rather than copies of its columns,
MOST_COPIED = 0.75
#: if F has at least so many entries; copies of fewer take no memory worth mentioning.
LARGE_F = 1 << 17
#: Columns that are copied at once to compute their Gram matrix.
COPIED_AT_ONCE = 128

# ---- The LASSO on a few columns -----------------------------------------------------------------

#: Epochs of coordinate descent before each factorisation.
EPOCHS = 10
#: Newton steps with one factor.
STEPS_OF_A_FACTOR = 4

#: Rounds of descent and Newton steps before the proximal-point iteration takes over,
GRAM_ROUNDS = 30
#: and where they are all that is done.
GRAM_ROUGH_ROUNDS = 3
#: Newton iterations that start again from independent columns.
VERTICES = 4
#: Most columns of which independent ones are chosen, by a factorisation with pivoting.
MOST_DEPENDENT = 800
#: On fewer columns than this, coordinate descent ends after a few hundredths of a second.
SHORT_DESCENT = 1000
#: Proximal points without a halving of the violation before giving up.
GRAM_PATIENCE = 12
#: Corrections of an exact solution by its residual.
GRAM_REFINEMENTS = 2
#: A column of unit norm that is this close to the span of the columns before it depends on them.
LEAST_PIVOT = 1e-7
#: Largest violation on the support, relative to its weight, that passes as a rounding error. It
#: only ends the iteration on a working set; what is a minimiser, the certificate decides.
GRAM_ROUNDING = 1e-3

#: σ of the first proximal point, the factor to the next, and the largest and smallest one.
FIRST_SIGMA, SIGMA_GROWTH, LAST_SIGMA = 1.0, 5.0, 1e12
LEAST_SIGMA = FIRST_SIGMA / SIGMA_GROWTH**4
#: Points at the largest σ that works before the next larger one, which has failed, is tried again.
SIGMA_TRUST = 4
#: Most proximal points, and most Newton steps for one.
PROXIMAL_POINTS, PROXIMAL_NEWTON = 60, 50
#: A step that should lower ψ by less than this part of ψ cannot be told from rounding,
INVISIBLE = 1e-14
#: and after so many of these a point is as accurate as it can become.
MOST_INVISIBLE = 3
#: A column of unit norm whose squared distance from the span of others is at most this depends on
#: them, and a slope of this part of the largest one is zero.
NULL = 1e-12
#: Rows that are changed at once.
NULL_ROWS = 64

#: Most sparse columns for which the Gram matrix is formed.
SPARSE_SMALL = 300
#: Rounds of descent and one Newton step each; fewer on the way to another λ.
SPARSE_ROUNDS, SPARSE_ROUGH_ROUNDS = 60, 2
#: Most conjugate-gradient steps for a Newton step, its accuracy while the support still changes,
SPARSE_STEPS, SPARSE_FORCING = 400, 1e-2
#: while it changes by less than this part,
STEADY, SPARSE_FINER = 0.003, 1e-4
#: and once it does not.
SPARSE_ACCURACY = 1e-11
#: Newton steps in a row without coordinate descent, if each only leaves a few columns out.
SKIPS = 4
#: Entries with which a compiled call takes less than a tenth of a second.
SHORT_CALL = 100_000

#: Largest M·N·min(M, N): a step takes less than a second.
INTERIOR_LIMIT = 4e9
#: Most steps, exchanges of columns of the support, and corrections of an exact solution.
INTERIOR_STEPS, EXCHANGES, INTERIOR_REFINEMENTS = 100, 60, 3
#: Steps between two looks for a ray, which take about as long as one of them.
INTERIOR_LOOK = 5
#: Part of the way to the boundary that is taken.
INTERIOR_SHORT = 0.99
#: Mean product of slack and multiplier, relative to its first value, at which the support is clear.
INTERIOR_CLEAR = (1e-7, 1e-10, 1e-13)
#: What is added to a diagonal, relative to its largest entry, one after another until it helps.
INTERIOR_RIDGES = (0.0, 1e-15, 1e-14, 1e-13, 1e-12)

# ---- Many problems on one F ---------------------------------------------------------------------

#: Most columns for which the Gram matrix of all of F is formed and shared.
GRAM_COLUMNS = 4096
#: Fewest problems for which batched AMP is tried.
BATCH_FEWEST = 8
#: Columns with |c|/λ above this after batched AMP may be in the support.
BATCH_CANDIDATE = 0.8
#: Most rounds in which columns join the set of a problem.
WHOLE_GRAM_ROUNDS = 12
#: Newton steps from where batched AMP ends. Nearly all problems need one, and further ones of a few
#: problems take less time than single solves.
NEWTON_ROUNDS = 6
#: Most columns, for each problem, of a Gram matrix that all problems share.
COLUMNS_PER_PROBLEM = 40
#: Columns with |c|/λ above this at the minimiser of the problem before are in the working set,
STRONG_RULE = 0.9
#: of which at most this many, and as many as the support has, are outside of the support.
FIRST_OUTSIDE = 50

#: A problem leaves the batch once an iteration changes less than this part of its support
BATCH_TURNOVER = 0.03
#: and its coefficients are closer than this to where they will come to rest, relative to their
#: size. If it left earlier, more columns would have to change in the exact solve. An iteration
#: makes the distance smaller by a factor of about √(s/M), where s coefficients are not zero.
BATCH_DISTANCE = 0.05
#: Most iterations.
BATCH_ITERATIONS = 100
#: A problem whose iterates still move by more than this at the end has not been solved.
BATCH_RESTLESS = 0.3
#: Multiplications of one product, which takes a tenth of a second; until then Ctrl-C waits.
#: Products with fewer problems than this would be slow.
LONGEST_CALL = 6e9
SHORTEST_SHARE = 32

#: Factorisations for one problem, and how many columns may change with one of them: this many, or
#: this part of the support.
BORDER_FACTORS = 4
LEAST_BORDER = 12
BORDER_PART = 6
#: Columns with |γ| above this part of w may join the support.
BORDER_NEAR = 0.9
#: If more than this part of the columns is used, all are.
BORDER_ALL = 0.9

#: Rounds of changes of the support with one factor,
BORDER_ROUNDS = 40
#: and those after which the number of columns that want to change must have become smaller.
BORDER_PATIENCE = 3
#: Smallest pivot of the bordered system: of a column of length one, what no other column explains.
DEPENDENT = 1e-5
#: Residuals of the last system are made smaller than this part of w, in at most so many steps. One
#: step is enough for residuals that are nearly as small.
BORDER_SMALL = 1e-10
BORDER_NEARLY = 1e-6
BORDER_REFINEMENTS = 3

# ---- Clipped residuals and ridges ---------------------------------------------------------------

#: Entries of the rows that are copied at once to form FᵀDF.
CLIPPED_CHUNK = 1 << 19
#: Rows that change curvature, relative to those that count, beyond which FᵀDF is formed afresh.
CLIPPED_REFORM = 0.5
#: After a step shorter than this the parabola above the loss is the better model.
CLIPPED_SHORT = 0.25
#: Most steps on a face.
CLIPPED_STEPS = 200
#: Accuracy of a step relative to the present violation.
CLIPPED_FORCING = 1e-4

#: Most rounds of descent and one Newton step.
QUADRATIC_ROUNDS = 60
#: Proximal points without a halving of the violation before giving up.
QUADRATIC_PATIENCE = 5

#: Most rounds of a working set, and solves that follow where the certificate proves too little.
CLIPPED_ROUNDS, CLIPPED_RETRIES = 60, 2
#: Violation, relative to the gradient, that needs no correction.
CLIPPED_ENOUGH = 1e-15
#: Most columns for which the curvature of the rows is used in the bound (a second at 3000).
SHARPEN_COLUMNS = 2000
#: Corrections of x by the gradient in twice the working precision.
CLIPPED_CORRECTIONS = 4

#: Most columns for which the matrices of many problems are small.
MOST_TOGETHER = 48
#: Numbers that are worked on at a time, rows that are summed at a time, and most steps.
TOGETHER_NUMBERS, TOGETHER_ROWS, TOGETHER_STEPS = 1 << 20, 256, 40
#: How often a step is halved, and what counts as no increase of the objective.
TOGETHER_HALVINGS, TOGETHER_SAME = 12, 1e-13

#: Accuracy of a step, and most passes over the rows.
EXACT_STEP, EXACT_PASSES = 1e-10, 60
#: Rounding in units of the distance to reach, beyond which the distance is given up.
EXACT_HOPELESS = 4.0
#: Least part of the rows that is taken to count at the first step.
EXACT_LEAST_FREE = 0.1
#: Most a slope may have turned up at the end of a step, relative to its start.
EXACT_TURNED = 0.5

#: Far more points than were ever needed (a few dozen, at most 150 on the hardest tables).
LONG_POINTS = 3000
#: The first share of the matrix above in the mean, and the factor by which it changes.
LONG_FIRST, LONG_CHANGE = 1e-3, 8.0
#: Gains, relative to what the slope promises: a step with less is not taken, and beyond two others
#: the share of the matrix above grows or falls.
LONG_LEAST, LONG_POOR, LONG_GOOD = 1e-4, 0.25, 0.7

# ---- Algorithm 1 of the paper, many times -------------------------------------------------------

#: How far g may move, in units of its last step, before all of u is computed again.
PAPER_REACH = 4.0
#: A run has blown up if s_θ exceeds this number and 1000 M. At a fixed point with k < M active
#: columns s_θ is k/(M − k) < M.
PAPER_LOST = 1e6
