"""What is learned, and that it is right: against scikit-learn and against linear algebra written out."""

import numpy as np
import pytest
from conftest import BANK, multiplicative, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercer import GMKLClassifier, GMKLRegressor, UniformMKLClassifier, UniformMKLRegressor

#: At a relative gap of 1e-9 a decision value is off by at most √(2·gap·objective·k(x,x)), below 1e-3 here.
TIGHT = {"tol": 1e-9, "max_iter": 5000, "standardize": False}
CLOSE = {"atol": 1e-3, "rtol": 0}

CLASSIFIERS = [GMKLClassifier, UniformMKLClassifier]
REGRESSORS = [GMKLRegressor, UniformMKLRegressor]


def uniform_kernel(X, Z):
    return multiplicative(numpy_bank(X, Z), numpy_bank(Z, Z)).mean(axis=-1)


def ridge(K, y, C):
    """min C Σ ½(f − y)² + ½ aᵀKa: one linear system in (b, a)."""
    n = len(y)
    system = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + np.eye(n) / C]])
    solution = np.linalg.solve(system, np.concatenate([[0.0], y]))
    return solution[1:], solution[0]


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_binary_attributes(Estimator, loss, binary):
    X, y = binary
    clf = Estimator(BANK, C=3, loss=loss).fit(X, y)
    assert clf.kernel_weights_.shape == (4,) and (clf.kernel_weights_ >= 0).all()
    assert len(clf.kernel_names_) == 4 and len(set(clf.kernel_names_)) == 4
    assert clf.support_.ndim == 1 and clf.dual_coef_.shape == clf.support_.shape
    assert isinstance(clf.intercept_, float)
    assert_allclose(clf.dual_coef_.sum(), 0, atol=1e-6)
    assert clf.status_ == "optimal" and 0 <= clf.duality_gap_ <= clf.tol
    # Up to rounding: one linear solve may leave the bounds equal to the last digits.
    assert clf.dual_objective_ <= clf.primal_objective_ * (1 + 1e-12)
    assert len(clf.trace_) == clf.n_iter_ >= 1
    assert {"iteration", "objective", "dual", "gap", "seconds"} <= clf.trace_[-1].keys()
    assert_array_equal(clf.classes_, [0, 1])
    assert clf.n_features_in_ == 3 and not hasattr(clf, "feature_names_in_")
    assert clf.decision_function(X).shape == (80,)
    assert_array_equal(clf.predict(X), (clf.decision_function(X) > 0).astype(int))
    assert clf.score(X, y) > 0.85


@pytest.mark.parametrize("Estimator", REGRESSORS)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber"])
def test_regression_attributes(Estimator, loss, regression):
    X, y = regression
    reg = Estimator(BANK, C=10, loss=loss).fit(X, y)
    assert reg.kernel_weights_.shape == (4,) and reg.dual_coef_.shape == reg.support_.shape
    assert reg.status_ == "optimal" and 0 <= reg.duality_gap_ <= reg.tol
    assert reg.predict(X).shape == (70,) and reg.score(X, y) > 0.8


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
def test_several_classes_are_one_machine_each(Estimator, ternary):
    X, y = ternary
    clf = Estimator(BANK, C=2, tol=1e-6).fit(X, y)
    n_support = len(clf.support_)
    assert clf.kernel_weights_.shape == (3, 4) and clf.intercept_.shape == (3,)
    assert clf.dual_coef_.shape == (3, n_support) and (clf.dual_coef_ != 0).any(axis=0).all()
    assert clf.duality_gap_ <= clf.tol and clf.decision_function(X).shape == (90, 3)
    assert {record["machine"] for record in clf.trace_} == {0, 1, 2}
    assert_array_equal(clf.predict(X), clf.classes_[clf.decision_function(X).argmax(axis=1)])
    for k in range(3):
        alone = Estimator(BANK, C=2, tol=1e-6).fit(X, y == k)
        assert_allclose(clf.decision_function(X)[:, k], alone.decision_function(X), atol=1e-6)
        assert_allclose(clf.kernel_weights_[k], alone.kernel_weights_, atol=1e-9)


def test_uniform_equals_svc(binary):
    X, y = binary
    clf = UniformMKLClassifier(BANK, C=5, **TIGHT).fit(X[:60], y[:60])
    svc = SVC(kernel="precomputed", C=5, tol=1e-10).fit(uniform_kernel(X[:60], X[:60]), y[:60])
    assert_allclose(clf.kernel_weights_, 0.25)
    assert_allclose(clf.decision_function(X), svc.decision_function(uniform_kernel(X, X[:60])), **CLOSE)


def test_uniform_equals_svr(regression):
    X, y = regression
    reg = UniformMKLRegressor(BANK, C=5, epsilon=0.1, scale_target=False, **TIGHT).fit(X[:50], y[:50])
    svr = SVR(kernel="precomputed", C=5, epsilon=0.1, tol=1e-10).fit(uniform_kernel(X[:50], X[:50]), y[:50])
    assert_allclose(reg.predict(X), svr.predict(uniform_kernel(X, X[:50])), **CLOSE)


def test_uniform_squared_is_one_linear_system(regression, binary):
    X, y = regression
    reg = UniformMKLRegressor(BANK, C=5, loss="squared", **TIGHT).fit(X[:50], y[:50])
    a, b = ridge(uniform_kernel(X[:50], X[:50]), y[:50], 5)
    assert_allclose(reg.predict(X), uniform_kernel(X, X[:50]) @ a + b, atol=1e-7)
    X, y = binary
    clf = UniformMKLClassifier(BANK, C=5, loss="squared", **TIGHT).fit(X, y)
    a, b = ridge(uniform_kernel(X, X), 2.0 * y - 1, 5)
    assert_allclose(clf.decision_function(X), uniform_kernel(X, X) @ a + b, atol=1e-7)


@pytest.mark.parametrize("v", [0.0, 0.5, 1.0])
def test_gmkl_is_the_machine_on_its_own_weights(v, binary):
    X, y = binary
    clf = GMKLClassifier(BANK, C=5, v=v, **TIGHT).fit(X, y)
    weights = clf.kernel_weights_
    assert_allclose(v * weights.sum() + (1 - v) * (weights**2).sum(), 1, atol=1e-6)
    K = multiplicative(numpy_bank(X, X), numpy_bank(X, X)) @ weights
    svc = SVC(kernel="precomputed", C=5, tol=1e-10).fit(K, y)
    assert_allclose(clf.decision_function(X), svc.decision_function(K), **CLOSE)
    # The objective, written out at the returned solution.
    a = np.zeros(len(y))
    a[clf.support_] = clf.dual_coef_
    slack = np.maximum(0, 1 - (2 * y - 1) * (K @ a + clf.intercept_))
    assert_allclose(clf.primal_objective_, 5 * slack.sum() + a @ K @ a / 2, rtol=1e-6)


def test_both_solvers_reach_the_same_optimum(binary):
    X, y = binary
    fits = [GMKLClassifier(BANK, solver=s, tol=1e-6, max_iter=5000).fit(X, y) for s in ("level", "alternating")]
    assert_allclose(fits[0].primal_objective_, fits[1].primal_objective_, rtol=2e-6)


def test_standardize_is_standard_scaler(binary):
    X, y = binary
    X = X * [1, 100, 0.01] + [5, 0, -3]
    scaled = StandardScaler().fit_transform(X)
    inside = GMKLClassifier(BANK, tol=1e-6).fit(X, y)
    outside = GMKLClassifier(BANK, tol=1e-6, standardize=False).fit(scaled, y)
    assert_allclose(inside.decision_function(X), outside.decision_function(scaled), atol=1e-6)


def test_epsilon_defaults_to_a_tenth_of_the_deviation(regression):
    X, y = regression
    by_default = UniformMKLRegressor(BANK, tol=1e-6).fit(X, y)
    explicit = UniformMKLRegressor(BANK, tol=1e-6, epsilon=0.1 * y.std()).fit(X, y)
    assert_allclose(by_default.predict(X), explicit.predict(X), atol=1e-6)


def test_not_converging_is_a_warning_and_a_usable_fit(binary):
    X, y = binary
    clf = GMKLClassifier(BANK, C=100, tol=1e-12, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        clf.fit(X, y)
    assert clf.status_ == "max_iterations" and clf.n_iter_ == 1 and clf.duality_gap_ > clf.tol
    assert clf.score(X, y) > 0.7


def test_defaults_work_untuned(binary, ternary, regression):
    for clf, (X, y) in [(GMKLClassifier(), binary), (UniformMKLClassifier(), ternary)]:
        assert clf.fit(X, y).score(X, y) > 0.85
    X, y = regression
    assert GMKLRegressor().fit(X, y).score(X, y) > 0.8


def test_class_weight(binary):
    X, y = binary
    share = np.bincount(y) / len(y)
    options = {"tol": 1e-8, "max_iter": 5000}
    balanced = UniformMKLClassifier(BANK, class_weight="balanced", **options).fit(X, y)
    given = UniformMKLClassifier(BANK, class_weight={0: 0.5 / share[0], 1: 0.5 / share[1]}, **options).fit(X, y)
    weighted = UniformMKLClassifier(BANK, **options).fit(X, y, sample_weight=(0.5 / share)[y])
    assert_allclose(balanced.decision_function(X), given.decision_function(X), **CLOSE)
    assert_allclose(balanced.decision_function(X), weighted.decision_function(X), **CLOSE)
    with pytest.raises(ValueError, match=r"class_weight.*\[3\].*classes are"):
        UniformMKLClassifier(class_weight={3: 1.0}).fit(X, y)


def test_weights_frame(binary, ternary):
    pd = pytest.importorskip("pandas")
    frame = GMKLClassifier(BANK).fit(*binary).weights_frame()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["weight"] and frame.shape == (4, 1)
    X, y = ternary
    clf = GMKLClassifier(BANK).fit(X, np.array(["a", "b", "c"])[y])
    frame = clf.weights_frame()
    assert list(frame.columns) == ["a", "b", "c"] and list(frame.index) == clf.kernel_names_
    assert_array_equal(frame.to_numpy().T, clf.kernel_weights_)
