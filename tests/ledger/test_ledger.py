"""A budget that several fits share: charged before noise, composed tightly, never exceeded."""

import copy
import math
import multiprocessing
import os
import pickle
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledgers import DELTA, PRIVACY, data, mu_of, statement
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import privasso as pv
from privasso.accounting import ApproximateLoss, gaussian_epsilon, sensitivity_for
from privasso.accounting._composed import compose_losses
from privasso.fit import FitOptions, plan_fit, plan_for
from privasso.fit import _plan as inside
from privasso.ledger._book import Book, Entry
from privasso.privacy import Terms, compose
from privasso.queries import LABEL_REPLACED


def test_the_total_is_composed_and_the_budget_is_kept(ledger):
    assert ledger.spent() == 0.0
    assert ledger.remaining == 2.0
    parts = []
    for epsilon in (0.5, 0.25, 1.0):
        parts.append(statement(epsilon))
        ledger.charge(parts[-1], f"fit at {epsilon}")
    # Half of δ is kept for releases of other kinds.
    assert ledger.spent() == pytest.approx(gaussian_epsilon(DELTA / 2, mu_of(compose(parts))))
    assert ledger.spent(1e-9) > ledger.spent()
    assert [entry.what for entry in ledger.entries] == ["fit at 0.5", "fit at 0.25", "fit at 1.0"]
    assert [entry.guarantee for entry in ledger.entries] == parts
    left = ledger.remaining
    assert left > 2.0 - ledger.spent()
    before = ledger.entries
    with pytest.raises(pv.BudgetError, match="nothing was drawn") as caught:
        ledger.charge(statement(left * 1.001))
    assert ledger.entries == before
    assert str(caught.value).count("\n") == 0
    # What the message says would fit does fit.
    named = float(str(caught.value).split("ε up to ")[1].split(";")[0])
    assert 0.999 * left < named <= left
    assert ledger.after(statement(named)).spent() <= 2.0
    assert ledger.entries == before
    ledger.charge(statement(named))
    assert ledger.spent() <= 2.0
    with pytest.raises(pv.BudgetError):
        ledger.charge(statement(0.1))


def test_the_whole_budget_can_be_spent_at_once(ledger):
    ledger.charge(statement(2.0))
    assert ledger.remaining == pytest.approx(0.0, abs=1e-2)
    with pytest.raises(pv.BudgetError):
        ledger.charge(statement(0.1))


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize(
    ("bounds", "screen"), [("private", None), (((0, 1),) * 3, None), (((0, 1),) * 3, 1)]
)
def test_one_fit_of_several_questions_can_have_the_whole_budget(epsilon, bounds, screen):
    X, y = data()
    privacy = pv.RecordDP(epsilon, DELTA, bounds, (0, 1))
    ledger = pv.Ledger(epsilon, DELTA)
    est = pv.PrivateLasso(privacy=privacy, ledger=ledger, screen=screen).fit(X[:, :3], y)
    assert 0.99 * epsilon < ledger.spent() <= epsilon
    assert compose([est.guarantee_])["epsilon"] <= epsilon


def test_nothing_left():
    full = Book(2.0, DELTA, "", "0", (Entry("", "", statement(2.0)),))
    assert full.left() < 1e-2
    over = Book(2.0, DELTA, "", "0", (Entry("", "", statement(2.001)),))
    assert over.left() == 0.0
    with pytest.raises(pv.BudgetError, match="and nothing is left; nothing was drawn"):
        over.charged(Entry("", "", statement(0.01)))


@given(st.floats(0.01, 30.0), st.floats(-30.0, -3.0), st.floats(0.01, 0.99), st.floats(-30.0, -3.0))
def test_what_is_left_fits(epsilon, log_delta, share, log_other):
    delta, other = math.exp(log_delta), math.exp(log_other)
    book = Book(epsilon, delta, "", "0")
    mu = share * sensitivity_for(epsilon, delta)
    first = gaussian_epsilon(delta, mu)
    if first > 0.0:
        book = book.charged(Entry("", "", statement(first, delta)))
    left = book.left(other)
    if left > 0.0:
        book = book.charged(Entry("", "", statement(left, other)))
        assert book.spent() <= epsilon * (1 + 1e-6)


def test_losses_of_other_kinds(ledger):
    numbers = {"delta": 1e-7, "epsilon": 0.5, "n_rows": 1000, "y_low": 0.0, "y_high": 1.0}
    loss = ApproximateLoss(0.5, 1e-7)
    other = pv.Guarantee(LABEL_REPLACED, tuple(numbers.items()), (loss,), released=("counts",))
    ledger.charge(other, "counts by another program")
    assert ledger.spent() == pytest.approx(0.5, rel=1e-3)
    ledger.charge(statement())
    assert 1.4 < ledger.spent() < 1.7
    left = ledger.remaining
    assert 0.7 < left < 1.1
    ledger.charge(statement(0.99 * left))
    assert 1.9 < ledger.spent() <= 2.0
    assert "label-dp ε = 0.5" in str(ledger)
    # Of δ alone, a tenth is kept for what is lost with certainty.
    numbers |= {"epsilon": 1e-6}
    small = replace(other, parameters=tuple(numbers.items()), losses=(ApproximateLoss(1e-6, 1e-7),))
    with pytest.raises(pv.BudgetError):
        ledger.charge(small)


def test_what_cannot_be_charged(ledger):
    ledger.charge(statement(0.5))
    for guarantee, message in [
        (statement(0.1, bounds=(0.0, 2.0)), "different bounds"),
        (statement(0.1).group(2), "up to 2 entries"),
        (pv.OnAverage(1.0).guarantee(Terms(True, False, 5)), "bounds no loss"),
    ]:
        with pytest.raises(ValueError, match=message):
            ledger.charge(guarantee)
    assert len(ledger.entries) == 1


# Declared beforehand


def test_what_is_reserved_is_composed_tightly_and_used_in_any_order(ledger):
    fits = [statement(0.5), statement(1.0), statement(0.5)]
    ledger.reserve(fits, "a plan")
    tight = compose(fits)["epsilon"]
    assert ledger.spent() == pytest.approx(tight)
    assert "by 3 reserved fits, declared beforehand." in str(ledger)
    assert str(ledger).count("a plan (reserved)") == 3
    for fit in (fits[2], fits[1], fits[0]):
        ledger.charge(fit, "a fit")
        assert ledger.spent() == pytest.approx(tight)
    assert "a fit (as reserved)" in str(ledger)
    assert "by 3 releases, declared beforehand." in str(ledger)
    assert [entry.status for entry in ledger.entries] == ["reserved"] * 3 + ["used"] * 3
    # A fourth fit of the same kind is chosen later, whatever was reserved before.
    ledger.charge(fits[0])
    assert ledger.entries[-1].status == "charged"
    mu = math.hypot(mu_of(compose(fits)), mu_of(fits[0]))
    assert ledger.spent() == pytest.approx(gaussian_epsilon(DELTA / 2, mu))
    assert "4 releases together, whose settings may have been chosen as you went." in str(ledger)
    assert Book.from_document(ledger.book.to_document()) == ledger.book


def test_what_is_reserved_stays_spent(ledger):
    ledger.reserve([statement(1.0)])
    ledger.charge(statement(1.5), "another one, before anything was released")
    assert ledger.spent() == compose([statement(1.0), statement(1.5)])["epsilon"]
    assert "by 1 release and 1 reserved fit, declared beforehand." in str(ledger)
    with pytest.raises(pv.BudgetError):
        ledger.charge(statement(1.0001))
    ledger.charge(statement(1.0))
    assert ledger.spent() == compose([statement(1.0), statement(1.5)])["epsilon"]


def test_plans_are_reserved_and_fits_use_them(ledger):
    X, y = data()
    privacies = [PRIVACY, pv.LabelDP(0.3, DELTA, (0.0, 1.0), mechanism="objective")]
    ledger.reserve(plan_for(X, FitOptions(privacy)) for privacy in privacies)
    spent = ledger.spent()
    for privacy in reversed(privacies):
        pv.PrivateLasso(10.0, privacy, ledger=ledger).fit(X, y)
    assert [entry.status for entry in ledger.entries] == ["reserved"] * 2 + ["used"] * 2
    assert ledger.spent() == spent == compose_losses(ledger.book.declared).epsilon(DELTA)


def test_what_cannot_be_reserved(ledger):
    with pytest.raises(
        pv.BudgetError, match=r"2 fits together have ε = 2\.19 .* nothing was reserved"
    ):
        ledger.reserve([statement(1.5), statement(1.5)])
    with pytest.raises(ValueError, match="different bounds"):
        ledger.reserve([statement(0.1), statement(0.1, bounds=(0.0, 2.0))])
    ledger.reserve([])
    assert ledger.entries == ()
    ledger.charge(statement(0.5))
    with pytest.raises(ValueError, match="before the first release"):
        ledger.reserve([statement(0.5)])
    assert len(ledger.entries) == 1


def test_in_words(ledger):
    assert "Spent: nothing. One further fit at δ = 1e-06 may have ε up to 2." in str(ledger)
    ledger.charge(statement(1.0), "the first")
    text = str(ledger)
    assert "Budget" in text
    assert "label-dp ε = 1, δ = 1e-06, μ = 0.2368: the first" in text
    assert "by 1 release." in text
    if ledger.path is not None:
        assert "for a study" in text
        assert str(ledger.path) in repr(ledger)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, DELTA), "epsilon must be positive"),
        ((1.0, 0.0), "delta must be positive"),
        ((1.0, 1.0), "probability below 1"),
        ((1.0, DELTA, 3), "data must be a text"),
    ],
)
def test_bad_budgets(arguments, message):
    with pytest.raises(ValueError, match=message):
        pv.Ledger(*arguments)


# With the estimator


def test_a_fit_is_charged_before_noise_is_drawn(ledger, monkeypatch):
    X, y = data()
    real, counts = inside.bit_source, []

    def watched(rng):
        bits = real(rng)
        return lambda n: (counts.append(len(ledger.entries)), bits(n))[1]

    monkeypatch.setattr(inside, "bit_source", watched)
    est = pv.PrivateLasso(10.0, PRIVACY, ledger=ledger).fit(X, y)
    assert set(counts) == {1}
    est.refit(X, 20.0)
    est.path(X, [10.0, 20.0])
    assert len(ledger.entries) == 1
    (entry,) = ledger.entries
    assert entry.guarantee == est.guarantee_
    assert entry.what == f"fit on 200 rows and 3 columns, privasso {pv.__version__}"
    pv.PrivateLasso(10.0, PRIVACY, random_state=0, ledger=ledger).fit(X, y)
    assert "fixed seed" in ledger.entries[1].what


def test_nothing_is_drawn_beyond_the_budget(ledger, monkeypatch):
    X, y = data()
    monkeypatch.setattr("os.urandom", lambda n: pytest.fail("noise drawn"))
    privacy = pv.LabelDP(2.1, DELTA, (0.0, 1.0), mechanism="release")
    with pytest.raises(pv.BudgetError, match="ε up to 2;"):
        pv.PrivateLasso(10.0, privacy, ledger=ledger).fit(X, y)
    assert ledger.entries == ()


def test_labels_that_are_refused_cost_nothing(ledger):
    X, y = data()
    plan = plan_fit(X, FitOptions(PRIVACY, lam=1.0, ledger=ledger))
    with pytest.raises(ValueError, match="finite numbers"):
        plan.release(["secret"] * len(y))
    with pytest.raises(ValueError, match="one label for each"):
        plan.release(y[:5])
    assert ledger.entries == ()


def test_settings_of_the_estimator(ledger):
    X, y = data()
    with pytest.raises(ValueError, match="OnAverage bounds no privacy loss"):
        pv.PrivateLasso(1.0, pv.OnAverage(1.0), ledger=ledger).fit(X, y)
    with pytest.raises(ValueError, match="ledger must be a Ledger"):
        pv.PrivateLasso(1.0, PRIVACY, ledger="budget.json").fit(X, y)  # pyright: ignore[reportArgumentType]


def test_copies_share_the_budget(ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy([ledger])[0] is ledger
    est = pv.PrivateLasso(10.0, pv.LabelDP(0.1, DELTA, (0.0, 1.0), "release"), ledger=ledger)
    assert clone(est).get_params()["ledger"] is ledger  # pyright: ignore[reportAttributeAccessIssue]
    assert "Ledger(epsilon=2.0" in repr(est)
    search = GridSearchCV(est, {"lam": [10.0, 20.0]}, cv=2).fit(*data())  # counted, so no warning
    assert len(ledger.entries) == 5
    assert search.best_estimator_.ledger is ledger


def test_pickles(ledger):
    if ledger.path is None:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(ledger)
        return
    other = pickle.loads(pickle.dumps(ledger))
    other.charge(statement(0.5))
    assert len(ledger.entries) == 1


def charge_in_child(ledger, answer):
    try:
        ledger.charge(statement(0.5))
        answer.put("charged")
    except ValueError as error:
        answer.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_ledger_in_memory_is_of_no_use_in_a_fork():
    context, ledger = multiprocessing.get_context("fork"), pv.Ledger(1.0, DELTA)
    answer = context.Queue()
    child = context.Process(target=charge_in_child, args=(ledger, answer))
    child.start()
    assert "belongs to the process that made it" in answer.get(timeout=60)
    child.join()
    assert ledger.entries == ()


# Files


def test_reading_while_others_charge(ledger):
    problems = []

    def read():
        try:
            for _ in range(60):
                _ = ledger.entries
        except ValueError as error:
            problems.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        ledger.charge(statement(0.1))
    for reader in readers:
        reader.join()
    assert problems == []


def test_threads(ledger):
    """As many threads as like: exactly so many fits as the budget has room for."""
    small, refused = statement(0.4), []
    room = math.floor((sensitivity_for(2.0, DELTA / 2) / mu_of(small)) ** 2)

    def work():
        for _ in range(room // 4):
            try:
                ledger.charge(small)
            except pv.BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries) == room
    assert len(refused) == 6 * (room // 4) - room
    assert ledger.spent() <= 2.0
