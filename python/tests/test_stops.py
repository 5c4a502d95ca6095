"""Clocks, callbacks and Ctrl-C: how a fit is watched and ended."""

import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import CLASSIFIERS, REGRESSORS
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from test_runtime import ENDLESS

from mercer import (
    CLMKLClassifier,
    GMKLClassifier,
    GMKLRegressor,
    LMKLClassifier,
    SingleKernelClassifier,
    SMKLClassifier,
    UniformMKLClassifier,
    VCMKLClassifier,
)

IRIS = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
#: Two classes that a machine cannot tell apart: fits take long.
HARD = RNG.normal(size=(600, 8))
NOISE = RNG.integers(0, 2, size=600)
BANK = "rbf(2^-3..2^6), poly(1..3) on all, each"
KEYS = {"iteration", "objective", "dual", "gap", "active", "seconds", "machine", "name", "fold"}

stopped = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("Estimator", CLASSIFIERS + REGRESSORS, ids=lambda e: e.__name__)
@stopped
def test_a_callback_sees_every_iteration(Estimator):
    X, y = IRIS
    records = []
    est = Estimator("linear, rbf(1)", callback=records.append, max_iter=5).fit(X, y)
    assert records and all(r.keys() == KEYS for r in records)
    told = [{key: r[key] for key in ("iteration", "objective", "active", "seconds")} for r in records]
    kept = [{key: r[key] for key in told[0]} for r in est.trace_]
    # Starts that were not the best, and settings that were not chosen, are seen but not kept.
    assert len(told) >= len(kept) and all(record in told for record in kept)


@pytest.mark.parametrize(("scheme", "names"), [("ovr", ["0", "1", "2"]), ("ovo", ["0 or 1", "0 or 2", "1 or 2"])])
@pytest.mark.parametrize(
    "estimator",
    [GMKLClassifier("linear, rbf(1)"), CLMKLClassifier("linear, rbf(1)"), LMKLClassifier("linear, rbf(1)"), VCMKLClassifier("rbf(1)")],
    ids=lambda e: type(e).__name__,
)
@stopped
def test_a_record_says_which_class_it_belongs_to(estimator, scheme, names):
    records = []
    est = clone(estimator).set_params(multi_class=scheme, callback=records.append, max_iter=3)
    if isinstance(est, CLMKLClassifier) and scheme == "ovo":
        pytest.skip("regions are for machines on all rows")
    est.fit(*IRIS)
    assert list(dict.fromkeys((r["machine"], r["name"]) for r in records)) == list(enumerate(names))


def test_one_machine_has_no_name():
    records = []
    GMKLClassifier("linear", shared_weights=True, callback=records.append).fit(*IRIS)
    GMKLRegressor("linear", callback=records.append).fit(*IRIS)
    assert {(r["machine"], r["name"], r["fold"]) for r in records} == {(0, None, None)}


def test_folds_of_a_search_are_named():
    records = []
    GMKLClassifier("linear", C="auto", callback=records.append).fit(*IRIS)
    assert list(dict.fromkeys(r["fold"] for r in records)) == [*((k, 5) for k in range(1, 6)), None]


def test_verbose_names_the_class(capfd):
    GMKLClassifier("linear", verbose=1).fit(IRIS[0], np.array(["setosa", "versicolor", "virginica"])[IRIS[1]])
    lines = capfd.readouterr().out.splitlines()
    for name in ("setosa", "versicolor", "virginica"):
        assert any(f"class {name}  iteration    1" in line for line in lines)


@pytest.mark.parametrize("at", [1, 3])
def test_true_ends_the_fit_at_that_iteration(at):
    clf = GMKLClassifier(BANK, C=100, tol=1e-12, callback=lambda record: record["iteration"] >= at)
    with pytest.warns(ConvergenceWarning, match="the callback ended it"):
        clf.fit(HARD[:200], NOISE[:200])
    assert clf.status_ == "stopped" and clf.n_iter_ == at
    assert clf.predict(HARD).shape == (600,)
    assert clf.dual_objective_ <= clf.primal_objective_


def test_only_true_ends_a_fit():
    for answer in (None, 0.5, "yes", 1):
        assert GMKLClassifier("linear, rbf(1)", callback=lambda record, answer=answer: answer).fit(*IRIS).status_ == "optimal"


def test_an_exception_of_the_callback_is_the_fits():
    class Enough(Exception):
        pass

    def fail(record):
        raise Enough

    with pytest.raises(Enough):
        GMKLClassifier("linear", callback=fail).fit(*IRIS)


#: Each takes longer than the time it is given, which is over before the first iteration is.
LONG = {
    "gmkl": GMKLClassifier(BANK, C=1000, tol=1e-13, max_iter=10**6),
    "regression": GMKLRegressor(BANK, C=1000, tol=1e-13, max_iter=10**6),
    "classes": GMKLClassifier(BANK, C=1000, tol=1e-13, max_iter=10**6, multi_class="ovo"),
    "auto": GMKLClassifier(BANK, C="auto", v="auto", tol=1e-13, max_iter=10**6),
    "smkl": SMKLClassifier("rbf(2^-3..2^6)", C=30, tol=1e-15, max_iter=10**6),
    "clmkl": CLMKLClassifier(BANK, C=1000, tol=1e-13, max_iter=10**6),
    "lmkl": LMKLClassifier("rbf(2^-1..2^2)", C=100, tol=1e-13, max_iter=10**6),
    "vcmkl": VCMKLClassifier("rbf(1)", n_rules="auto", n_init=200, C=100, tol=1e-13, max_iter=10**6),
    "single": SingleKernelClassifier(BANK, C=1000, folds=200),
}
#: Ended in a search, a fit also says that the best of what was tried was used.
searched = pytest.mark.filterwarnings("ignore:the search for:UserWarning")


@searched
@pytest.mark.parametrize("name", LONG)
def test_time_is_up(name):
    clf = clone(LONG[name]).set_params(max_time=0.01)
    X, y = HARD, np.arange(600) % 4 if name == "classes" else NOISE
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf.fit(X, y)
    # What a fit does at least: its kernels, an iteration per machine, a fold of a search; on a busy machine.
    assert time.perf_counter() - began < 60
    assert clf.status_ == "stopped" and len(clf.predict(X)) == 600


def test_a_search_that_was_ended_says_so():
    """Also where the fit itself needs a single iteration, which is certified."""
    clf = UniformMKLClassifier("linear", C="auto", callback=lambda record: record["fold"] == (2, 5))
    with pytest.warns(UserWarning, match="search for settings was stopped"), pytest.warns(ConvergenceWarning, match="callback"):
        clf.fit(*IRIS)
    assert clf.status_ == "stopped" and clf.C_ in (0.1, 1, 10, 100, 1000)


def test_enough_time_changes_nothing():
    clf, plain = (GMKLClassifier("linear, rbf(1)", max_time=seconds).fit(*IRIS) for seconds in (1e6, None))
    np.testing.assert_array_equal(clf.decision_function(IRIS[0]), plain.decision_function(IRIS[0]))
    assert clf.status_ == "optimal"


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"max_time": 0}, ValueError, "max_time"),
        ({"max_time": -1.0}, ValueError, "max_time"),
        ({"max_time": "1 h"}, TypeError, "max_time"),
        ({"max_time": np.inf}, ValueError, "max_time"),
        ({"callback": "print"}, TypeError, "callback"),
        ({"on_interrupt": "save"}, ValueError, "'raise', 'keep'"),
    ],
    ids=str,
)
def test_bad_wishes(params, error, message):
    with pytest.raises(error, match=message):
        GMKLClassifier("linear", **params).fit(*IRIS)


class Counter:
    """A callback that cannot be copied."""

    def __init__(self):
        self.calls = 0

    def __call__(self, record):
        self.calls += 1

    def __deepcopy__(self, memo):
        raise TypeError("not to be copied")


def test_clones_and_searches_call_the_same_function():
    counter = Counter()
    clf = GMKLClassifier("linear", callback=counter, max_time=100, on_interrupt="keep")
    copied = clone(clf)
    assert copied.callback is counter and clf.callback is counter and copied.get_params() == clf.get_params()
    search = GridSearchCV(clf, {"C": [0.1, 1]}, cv=2).fit(*IRIS)
    assert search.best_estimator_.callback is counter and counter.calls > 5
    GridSearchCV(GMKLClassifier("linear", callback=print, max_time=100), {"C": [0.1, 1]}, cv=2, n_jobs=2).fit(*IRIS)


def test_a_fitted_estimator_with_wishes_is_pickled():
    clf = GMKLClassifier("linear", callback=print, max_time=100.0, on_interrupt="keep").fit(*IRIS)
    again = pickle.loads(pickle.dumps(clf))
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.decision_function(IRIS[0]), clf.decision_function(IRIS[0]))


INTERRUPT = """
import os, signal, threading, time, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("always")
def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
@pytest.mark.parametrize("where", ["outside", "in the callback"])
def test_ctrl_c_can_keep_the_model(where):
    how = (
        "threading.Timer(1.5, interrupt).start()"
        if where == "outside"
        else ("clf.set_params(callback=lambda r: r['iteration'] == 2 and interrupt() or time.sleep(0.01))")
    )
    script = (
        ENDLESS
        + INTERRUPT
        + how
        + """
clf.set_params(on_interrupt="keep").fit(X, y)
print(clf.status_, clf.n_iter_ > 0, len(clf.predict(X)))
"""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["stopped", "True", "1500"], done.stderr
    assert "Ctrl-C ended it" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_a_second_ctrl_c_is_raised():
    script = (
        ENDLESS
        + INTERRUPT
        + """
def twice():
    interrupt()
    time.sleep(0.3)
    interrupt()
# One kernel matrix after another, before the first iteration: the first Ctrl-C has to wait.
X = np.random.default_rng(0).normal(size=(3000, 50))
threading.Timer(0.7, twice).start()
try:
    clf.set_params(on_interrupt="keep", n_jobs=1).fit(X, X[:, 0] > 0)
except KeyboardInterrupt:
    print("raised", flush=True)
    os._exit(0)
"""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["raised"], done.stderr
