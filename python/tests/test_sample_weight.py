"""A weight counts rows: zero is absence, two is a copy."""

import warnings

import numpy as np
import pytest
from conftest import BANK, CLASSIFIERS, REGRESSORS, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    GMKLClassifier,
    GMKLRegressor,
    LMKLRegressor,
    LpMKLClassifier,
    LpMKLRegressor,
    UniformMKLClassifier,
    UniformMKLRegressor,
)

ALL = CLASSIFIERS + REGRESSORS
#: Where the optimum is one and folds do not count rows.
CONVEX = [GMKLClassifier, LpMKLClassifier, UniformMKLClassifier, GMKLRegressor, LpMKLRegressor, UniformMKLRegressor]


def output(estimator, X):
    return getattr(estimator, "decision_function", estimator.predict)(X)


def problem(Estimator, binary, regression):
    return binary if Estimator.__name__.endswith("Classifier") else regression


@pytest.mark.parametrize("Estimator", ALL)
def test_zero_is_absence(Estimator, binary, regression):
    X, y = problem(Estimator, binary, regression)
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = np.flatnonzero(weight)
    if Estimator is LMKLRegressor:
        # It may run out of iterations on these targets; both fits do so alike.
        warnings.filterwarnings("ignore", "the relative change", ConvergenceWarning)
    weighted, dropped = Estimator().fit(X, y, sample_weight=weight), Estimator().fit(X[kept], y[kept])
    assert_array_equal(output(weighted, X), output(dropped, X))
    assert_array_equal(weighted.support_, kept[dropped.support_])


@pytest.mark.parametrize(("Estimator", "loss"), [(E, loss) for E in CONVEX for loss in E._losses])
def test_two_is_a_copy(Estimator, loss, binary, regression):
    X, y = problem(Estimator, binary, regression)
    times = np.arange(len(y)) % 3
    # Scales computed from rows are left out: they count rows, not weights.
    est = Estimator(BANK, C=2, loss=loss, normalize=None, standardize=False, tol=1e-9, max_iter=5000)
    if Estimator.__name__.endswith("Regressor"):
        est.set_params(scale_target=False, epsilon=0.1)
    weighted = output(est.fit(X, y, sample_weight=times), X)
    repeated = output(est.fit(np.repeat(X, times, axis=0), np.repeat(y, times)), X)
    assert_allclose(weighted, repeated, atol=1e-3)


def test_zero_is_absence_in_a_stack(binary):
    X, y = binary
    stack = numpy_bank(X, X)
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = np.flatnonzero(weight)
    clf = GMKLClassifier("precomputed", normalize=None, tol=1e-9, max_iter=5000)
    weighted = clf.fit(stack, y, sample_weight=weight).decision_function(stack)
    dropped = clf.fit(stack[np.ix_(kept, kept)], y[kept]).decision_function(stack[:, kept])
    assert_allclose(weighted, dropped, atol=1e-3)


def test_a_class_without_weight_is_no_class(ternary):
    X, y = ternary
    clf = GMKLClassifier().fit(X, y, sample_weight=y != 2)
    assert_array_equal(clf.classes_, [0, 1])
    with pytest.raises(ValueError, match="one class"):
        GMKLClassifier().fit(X, y, sample_weight=y == 2)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda n: -np.ones(n), "negative"),
        (lambda n: np.zeros(n), "zero for every row"),
        (lambda n: np.ones(n + 1), "shape"),
        (lambda n: np.ones((n, 2)), "shape"),
        (lambda n: np.full(n, np.nan), "NaN"),
    ],
)
def test_bad_weights(weight, message, binary):
    X, y = binary
    with pytest.raises(ValueError, match=message):
        GMKLClassifier().fit(X, y, sample_weight=weight(len(y)))
