"""Every loss on one kernel, against scikit-learn's solvers and linear algebra written out; probabilities."""

import numpy as np
import pytest
from conftest import BANK, ONE_FUNCTION
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, LinearSVC

from mercer import GMKLClassifier, GMKLRegressor, LpMKLClassifier, LpMKLRegressor, UniformMKLClassifier

#: At a relative gap of 1e-9 a decision value is off by at most √(2·gap·objective·k(x,x)), below 1e-3 here.
CLOSE = {"atol": 1e-3, "rtol": 0}
C = 3.0


def rbf(X, width=1.5):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / (2 * width**2))


def features(K):
    """F with F Fᵀ = K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(values.clip(0))


def one_kernel(Estimator, K, y, **params):
    est = Estimator("precomputed", C=C, normalize=None, tol=1e-10, max_iter=5000, **params)
    return est.fit(K[:, :, None], y)


@pytest.mark.parametrize("Estimator", [LpMKLClassifier, GMKLClassifier, UniformMKLClassifier])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_is_logistic_regression(Estimator, fit_intercept, binary):
    X, y = binary
    K = rbf(X)
    clf = one_kernel(Estimator, K, y, loss="logistic", fit_intercept=fit_intercept)
    F = features(K)
    log = LogisticRegression(C=C, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    log.fit(F, y)
    margins = (2 * y - 1) * log.decision_function(F)
    optimum = C * np.logaddexp(0, -margins).sum() + (log.coef_**2).sum() / 2
    assert_allclose(clf.primal_objective_, optimum, rtol=1e-8)
    assert_allclose(clf.decision_function(K), log.decision_function(F), **CLOSE)
    assert_allclose(clf.predict_proba(K), log.predict_proba(F), **CLOSE)
    assert_allclose(clf.predict_log_proba(K), np.log(clf.predict_proba(K)))


def test_hinge_is_svc(binary):
    X, y = binary
    K = rbf(X)
    clf = one_kernel(LpMKLClassifier, K, y)
    assert_allclose(clf.decision_function(K), SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y).decision_function(K), **CLOSE)


def test_epsilon_insensitive_is_svr(regression):
    X, y = regression
    K = rbf(X)
    reg = one_kernel(LpMKLRegressor, K, y, epsilon=0.05, scale_target=False)
    svr = SVR(kernel="precomputed", C=C, epsilon=0.05, tol=1e-10).fit(K, y)
    assert_allclose(reg.predict(K), svr.predict(K), **CLOSE)


def test_huber_beats_the_squared_loss_where_there_are_outliers(regression):
    X, y = regression
    dirty = y.copy()
    dirty[::10] += 25
    K = rbf(X)
    # One kernel and v = 1 leave the weight 1; the optimum is where multipliers are slopes.
    reg = one_kernel(GMKLRegressor, K, dirty, loss="huber", epsilon=0.3, scale_target=False, v=1.0)
    a, b, f = np.zeros(len(y)), reg.intercept_, reg.predict(K)
    a[reg.support_] = reg.dual_coef_
    r = f - dirty
    assert_allclose(a, -C * np.clip(r, -0.3, 0.3), atol=1e-4)
    assert_allclose(f, K @ a + b, atol=1e-10)
    assert abs(a.sum()) < 1e-8
    squared = one_kernel(GMKLRegressor, K, dirty, loss="squared", scale_target=False, v=1.0)
    assert np.abs(f - y).mean() < 0.3 * np.abs(squared.predict(K) - y).mean()


def test_huber_has_a_default_and_a_search_for_its_price(regression):
    X, y = regression
    reg = GMKLRegressor(BANK, loss="huber").fit(X, y)
    assert reg.status_ == "optimal" and reg.score(X, y) > 0.8
    with pytest.raises(ValueError, match="epsilon"):
        GMKLRegressor(BANK, loss="huber", epsilon=0).fit(X, y)
    assert GMKLRegressor(BANK, loss="huber", C="auto").fit(X, y).score(X, y) > 0.8


def test_squared_hinge_is_a_hard_margin_on_a_ridged_kernel(binary):
    X, y = binary
    K = rbf(X)
    clf = one_kernel(LpMKLClassifier, K, y, loss="squared_hinge")
    svc = SVC(kernel="precomputed", C=1e8, tol=1e-10).fit(K + np.eye(len(y)) / C, y)
    expected = K[:, svc.support_] @ svc.dual_coef_[0] + svc.intercept_
    assert_allclose(clf.decision_function(K), expected, **CLOSE)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_without_intercept_it_is_linear_svc(loss, binary):
    X, y = binary
    K = rbf(X)
    clf = one_kernel(LpMKLClassifier, K, y, loss=loss, fit_intercept=False)
    F = features(K)
    # LIBLINEAR's squared hinge has no ½.
    svm = LinearSVC(loss=loss, C=C / 2 if loss == "squared_hinge" else C, fit_intercept=False, tol=1e-10, max_iter=10**6)
    svm.fit(F, y)
    assert clf.intercept_ == 0.0
    assert_allclose(clf.decision_function(K), svm.decision_function(F), **CLOSE)


def test_squared_without_intercept_is_one_linear_system(regression):
    X, y = regression
    K = rbf(X)
    reg = one_kernel(LpMKLRegressor, K, y, loss="squared", fit_intercept=False)
    assert reg.intercept_ == 0.0
    assert_allclose(reg.predict(K), K @ np.linalg.solve(K + np.eye(len(y)) / C, y), atol=1e-7)


@pytest.mark.parametrize("Estimator", ONE_FUNCTION)
def test_probabilities_exist_with_logistic_only(Estimator, binary):
    X, y = binary
    for loss in Estimator._losses:
        assert hasattr(Estimator(loss=loss), "predict_proba") == (loss == "logistic")
    with pytest.raises(AttributeError, match="predict_proba"):
        Estimator(BANK, loss="hinge").fit(X, y).predict_proba(X)


@pytest.mark.parametrize("Estimator", ONE_FUNCTION)
@pytest.mark.parametrize("kind", ["binary", "ternary"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_probabilities(Estimator, kind, multi_class, request):
    X, y = request.getfixturevalue(kind)
    names = np.array(["a", "b", "c"])
    clf = Estimator(BANK, C=3, loss="logistic", multi_class=multi_class).fit(X, names[y])
    probabilities = clf.predict_proba(X)
    assert probabilities.shape == (len(y), len(clf.classes_)) and (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1)
    assert (clf.classes_[probabilities.argmax(axis=1)] == clf.predict(X)).mean() > 0.95
    assert clf.score(X, names[y]) > 0.8
    if kind == "binary":
        assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-clf.decision_function(X))))
        assert_array_equal(clf.classes_[(probabilities[:, 1] > 0.5).astype(int)], clf.predict(X))
