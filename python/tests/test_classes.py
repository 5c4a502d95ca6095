"""More than two classes: machines per class and per pair, weights per machine and shared."""

import numpy as np
import pytest
from conftest import BANK, ONE_FUNCTION, multiplicative, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

from mercer import GMKLClassifier, LpMKLClassifier

PAIRS = [(0, 1), (0, 2), (1, 2)]


#: Methods whose fits end at rest, without a duality gap.
AT_REST = ("SMKL", "LMKL", "GLMKL", "GSMKL")


@pytest.fixture
def four():
    """Four classes: six pairs, so that machines and classes differ in number."""
    rng = np.random.default_rng(12)
    y = np.arange(120) % 4
    return np.array([[0, 0], [3, 0], [0, 3], [3, 3]])[y] + rng.normal(size=(120, 2)), y


@pytest.mark.parametrize("Estimator", ONE_FUNCTION)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("shared", [False, True])
def test_shapes(Estimator, multi_class, shared, four):
    X, y = four
    labels = np.array(["east", "north", "south", "west"])
    clf = Estimator(BANK, C=2, multi_class=multi_class, shared_weights=shared).fit(X, labels[y])
    machines = 4 if multi_class == "ovr" else 6
    regions = (3,) if getattr(clf, "_has_regions", lambda: False)() else ()
    assert clf.kernel_weights_.shape == ((*regions, 4) if shared else (machines, *regions, 4))
    assert clf.intercept_.shape == (machines,) and clf.dual_coef_.shape == (machines, len(clf.support_))
    scores = clf.decision_function(X)
    assert scores.shape == (120, 4)
    assert_array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])
    assert clf.score(X, labels[y]) > 0.8
    assert ("machine" in clf.trace_[0]) == (not shared) and len(clf.trace_) == clf.n_iter_
    assert clf.status_ == ("stationary" if Estimator.__name__.startswith(AT_REST) else "optimal")


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("shared", [False, True])
def test_iris(multi_class, shared):
    X, y = load_iris(return_X_y=True)
    clf = GMKLClassifier("rbf(0.5|1|2), linear on all, each", C=10, multi_class=multi_class, shared_weights=shared)
    assert cross_val_score(clf, X, y).mean() > 0.93


def test_frame_heads(ternary):
    pytest.importorskip("pandas")
    X, y = ternary
    heads = {"ovr": [10, 20, 30], "ovo": ["10 or 20", "10 or 30", "20 or 30"]}
    for multi_class, expected in heads.items():
        clf = GMKLClassifier(BANK, multi_class=multi_class).fit(X, np.array([10, 20, 30])[y])
        assert list(clf.weights_frame().columns) == expected
        shared = clf.set_params(shared_weights=True).fit(X, y)
        assert list(shared.weights_frame().columns) == ["weight"] and shared.weights_frame().shape == (4, 1)


def test_pairs_are_fits_of_two_classes(ternary):
    X, y = ternary
    # Scales computed from rows are left out: a pair has fewer rows.
    params = {"C": 2, "normalize": None, "standardize": False, "tol": 1e-8}
    clf = GMKLClassifier(BANK, multi_class="ovo", **params).fit(X, y)
    alone = [GMKLClassifier(BANK, **params).fit(X[np.isin(y, pair)], y[np.isin(y, pair)]) for pair in PAIRS]
    decisions = np.column_stack([pair.decision_function(X) for pair in alone])
    assert_allclose(clf.kernel_weights_, [pair.kernel_weights_ for pair in alone], atol=1e-3)
    assert_allclose(clf.primal_objective_, sum(pair.primal_objective_ for pair in alone), rtol=1e-7)
    expected = _ovr_decision_function((decisions > 0).astype(int), decisions, 3)
    assert_allclose(clf.decision_function(X), expected, atol=1e-3)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_shared_weights_are_one_optimum(multi_class, ternary):
    X, y = ternary
    params = {"C": 2, "multi_class": multi_class, "standardize": False, "tol": 1e-8, "max_iter": 5000}
    own = GMKLClassifier(BANK, **params).fit(X, y)
    shared = GMKLClassifier(BANK, shared_weights=True, **params).fit(X, y)
    theta = shared.kernel_weights_
    assert_allclose(0.5 * theta.sum() + 0.5 * (theta**2).sum(), 1, atol=1e-6)
    # Sharing is a constraint: the sum of objectives cannot fall below that of separate weights.
    assert shared.primal_objective_ >= own.dual_objective_
    # Nor above what any one machine's weights give all of them.
    K = multiplicative(numpy_bank(X, X), numpy_bank(X, X))
    candidates = [objective(K @ weights, y, multi_class) for weights in own.kernel_weights_]
    assert shared.primal_objective_ <= min(candidates) * (1 + 1e-6)
    assert_allclose(objective(K @ theta, y, multi_class), shared.primal_objective_, rtol=1e-6)


def objective(K, y, multi_class):
    """The sum of the machines' optima for one kernel."""
    total = 0.0
    for k, (i, j) in enumerate(PAIRS):
        rows = np.flatnonzero(np.isin(y, (i, j))) if multi_class == "ovo" else np.arange(len(y))
        sign = np.where(y[rows] == (j if multi_class == "ovo" else k), 1, -1)
        own = K[np.ix_(rows, rows)]
        svc = SVC(kernel="precomputed", C=2, tol=1e-10).fit(own, sign)
        a = np.zeros(len(rows))
        a[svc.support_] = svc.dual_coef_[0]
        total += 2 * np.maximum(0, 1 - sign * svc.decision_function(own)).sum() + a @ own @ a / 2
    return total


def test_two_classes_ignore_the_scheme(binary):
    X, y = binary
    first, *others = (LpMKLClassifier(BANK, multi_class=m, shared_weights=s).fit(X, y) for m in ("ovr", "ovo") for s in (False, True))
    for clf in others:
        assert clf.kernel_weights_.shape == (4,)
        assert_array_equal(clf.decision_function(X), first.decision_function(X))
