"""The methods against each other: equal problems have equal optima, sparse ones are sparse."""

import math
from itertools import pairwise

import numpy as np
import pytest
from conftest import BANK, multiplicative, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from mercer import (
    GMKLClassifier,
    GMKLRegressor,
    LpMKLClassifier,
    LpMKLRegressor,
    SingleKernelClassifier,
    SingleKernelRegressor,
    SMKLClassifier,
    SMKLRegressor,
    UniformMKLClassifier,
    UniformMKLRegressor,
    load,
)

TIGHT = {"tol": 1e-7, "max_iter": 5000}
PAIRED = [(LpMKLClassifier, GMKLClassifier, UniformMKLClassifier), (LpMKLRegressor, GMKLRegressor, UniformMKLRegressor)]


@pytest.fixture
def noisy():
    """The class depends on the first two of ten columns."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(150, 10))
    return X, (X[:, 0] ** 2 + X[:, 1] + 0.2 * rng.normal(size=150) > 1).astype(int)


def data(Estimator, binary, regression):
    return binary if Estimator.__name__.endswith("Classifier") else regression


@pytest.mark.parametrize(("Lp", "GMKL", "Uniform"), PAIRED)
def test_lp_meets_its_neighbours(Lp, GMKL, Uniform, binary, regression):
    X, y = data(Lp, binary, regression)
    for p, v in [(2.0, 0.0), (1.0, 1.0)]:
        lp, gmkl = Lp(BANK, p=p, C=4, **TIGHT).fit(X, y), GMKL(BANK, v=v, C=4, **TIGHT).fit(X, y)
        assert_allclose(lp.primal_objective_, gmkl.primal_objective_, rtol=3e-7)
        assert_allclose((lp.kernel_weights_**p).sum(), 1, atol=1e-6)
    lp, uniform = Lp(BANK, p=math.inf, C=4, **TIGHT).fit(X, y), Uniform(BANK, C=16, **TIGHT).fit(X, y)
    assert_array_equal(lp.kernel_weights_, 1)
    assert_allclose(4 * lp.primal_objective_, uniform.primal_objective_, rtol=3e-7)


@pytest.mark.parametrize("solver", ["auto", "alternating", "reduced_gradient", "silp"])
def test_roads_to_l1_meet(solver, binary):
    X, y = binary
    level = LpMKLClassifier(BANK, p=1, C=4, solver="level", **TIGHT).fit(X, y)
    other = LpMKLClassifier(BANK, p=1, C=4, solver=solver, tol=1e-5, max_iter=5000).fit(X, y)
    assert_allclose(other.primal_objective_, level.primal_objective_, rtol=1e-5)


def test_weights_even_out_as_p_grows(binary):
    X, y = binary
    spread = [np.ptp(LpMKLClassifier(BANK, p=p, C=4, tol=1e-5).fit(X, y).kernel_weights_) for p in (1, 1.5, 4, math.inf)]
    assert spread == sorted(spread, reverse=True) and spread[-1] == 0


@pytest.mark.parametrize("Estimator", [GMKLClassifier, LpMKLClassifier, SMKLClassifier, UniformMKLClassifier])
def test_kernels_of_a_scope_share_a_weight(Estimator, noisy):
    X, y = noisy
    clf = Estimator("rbf(0.5|1|2) on each", C=5, group_by="scope").fit(X, y)
    weights = clf.kernel_weights_.reshape(10, 3)
    assert_array_equal(weights, weights[:, :1] * np.ones(3))
    assert weights[0, 0] > 0 and clf.score(X, y) > 0.75
    with pytest.raises(ValueError, match="columns"):
        Estimator("precomputed", group_by="scope").fit(numpy_bank(X, X), y)


def test_penalties_make_kernels_dear(binary):
    X, y = binary
    eta = np.array([1.0, 2.0, 0.5, 10.0])
    clf = LpMKLClassifier(BANK, p=2, C=4, penalties=eta, **TIGHT).fit(X, y)
    assert_allclose(np.linalg.norm(eta * clf.kernel_weights_), 1, atol=1e-6)
    # Weights of K are weights of K/η, divided by η.
    stack = numpy_bank(X, X) / eta
    options = {"p": 2, "C": 4, "normalize": None, "standardize": False, **TIGHT}
    scaled = LpMKLClassifier("precomputed", **options).fit(stack, y)
    plain = LpMKLClassifier("precomputed", penalties=list(eta), **options).fit(numpy_bank(X, X), y)
    assert_allclose(plain.primal_objective_, scaled.primal_objective_, rtol=3e-7)
    for wrong, error in [([1, 2], ValueError), ([1, 1, 1, 0], ValueError), ("abcd", TypeError), (3, TypeError)]:
        with pytest.raises(error, match="penalties"):
            LpMKLClassifier(BANK, penalties=wrong).fit(X, y)


def test_grid_search_over_p(binary):
    X, y = binary
    search = GridSearchCV(LpMKLClassifier(BANK), {"p": [1, 1.5, 2, math.inf], "C": [1, 10]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.75 and not np.isnan(search.cv_results_["mean_test_score"]).any()


def test_single_is_svc_on_one_kernel(binary):
    X, y = binary
    clf = SingleKernelClassifier(BANK, C=4, standardize=False, tol=1e-9).fit(X, y)
    assert sorted(clf.kernel_weights_) == [0, 0, 0, 1]
    K = (multiplicative(numpy_bank(X, X), numpy_bank(X, X)) * clf.kernel_weights_).sum(axis=-1)
    svc = SVC(kernel="precomputed", C=4, tol=1e-10).fit(K, y)
    assert_allclose(clf.decision_function(X), svc.decision_function(K), atol=1e-3)


def test_single_finds_the_kernel_that_matters(binary, regression):
    X, y = regression
    reg = SingleKernelRegressor("rbf(0.5) on each", C=10).fit(np.column_stack([X[:, 1], X[:, 0]]), np.sin(2 * X[:, 0]))
    assert_array_equal(reg.kernel_weights_, [0, 1])
    X, y = binary
    same = [SingleKernelClassifier(BANK, random_state=r).fit(X, y) for r in (None, 0, np.random.RandomState(3), 5)]
    assert_array_equal(same[0].decision_function(X), same[1].decision_function(X))
    assert all(clf.score(X, y) > 0.8 for clf in same)
    stack = numpy_bank(X, X)
    ready = SingleKernelClassifier("precomputed").fit(stack, y)
    assert sorted(ready.kernel_weights_) == [0, 0, 0, 1] and ready.score(stack, y) > 0.8


def test_smkl_is_stationary_and_sparser_than_l1(noisy):
    X, y = noisy
    bank = "rbf(0.5|1|2), poly(1..2) on each"
    smkl = SMKLClassifier(bank, C=10, normalize="multiplicative").fit(X, y)
    l1 = LpMKLClassifier(bank, p=1, C=10).fit(X, y)
    assert smkl.status_ == "stationary"
    assert math.isnan(smkl.duality_gap_) and math.isnan(smkl.dual_objective_) and math.isfinite(smkl.primal_objective_)
    assert 0 < (smkl.kernel_weights_ > 0).sum() < (l1.kernel_weights_ > 0).sum()
    assert smkl.score(X, y) > 0.9
    objectives = [record["objective"] for record in smkl.trace_]
    # "Never rises" means up to the accuracy of the machine, a tenth of tol.
    assert all(b <= a + 1e-4 * abs(a) for a, b in pairwise(objectives))


def test_smkl_with_the_mkl_term_alone_is_l1(binary):
    X, y = binary
    smkl = SMKLClassifier(BANK, penalty="mkl", C=4, normalize="multiplicative", tol=1e-6, max_iter=5000).fit(X, y)
    l1 = LpMKLClassifier(BANK, p=1, C=4, **TIGHT).fit(X, y)
    assert_allclose(smkl.primal_objective_, l1.primal_objective_, rtol=1e-4)


def test_smkl_below_the_threshold_is_a_constant_and_a_warning(binary):
    X, y = binary
    clf = SMKLClassifier(BANK, C=1e-3)
    with pytest.warns(UserWarning, match=r"collapsed to a constant at C = 0.0010.*use C of at least"):
        clf.fit(X, y)
    assert clf.status_ == "stationary" and not clf.kernel_weights_.any()
    # The C advised is in the units of C, whatever weights it is multiplied with.
    weighted = SMKLClassifier(BANK, C=1e-6, class_weight={0: 1000, 1: 1000})
    with pytest.warns(UserWarning, match="at C = 0.0000"):
        weighted.fit(X, y)
    assert_array_equal(clf.decision_function(X), clf.intercept_)


@pytest.mark.parametrize("Estimator", [SMKLClassifier, SMKLRegressor, SingleKernelClassifier, SingleKernelRegressor])
def test_defaults_work_untuned(Estimator, binary, regression):
    X, y = data(Estimator, binary, regression)
    assert Estimator().fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("weight", [None, "given"])
def test_settings_left_to_the_fit_are_found_on_its_rows(weight, noisy):
    X, y = noisy
    sample_weight = None if weight is None else np.linspace(0.5, 2, len(y))
    auto = GMKLClassifier(BANK, C="auto", v="auto", random_state=3).fit(X, y, sample_weight=sample_weight)
    assert auto.C_ in (0.1, 1, 10, 100, 1000) and auto.v_ in (0.1, 0.3, 0.5, 0.7, 0.9)
    told = GMKLClassifier(BANK, C=auto.C_, v=auto.v_).fit(X, y, sample_weight=sample_weight)
    assert np.array_equal(auto.kernel_weights_, told.kernel_weights_)
    assert told.C_ == auto.C_
    assert auto.get_params()["C"] == "auto"


def test_settings_left_to_the_fit_for_ready_made_kernels(tmp_path, binary):
    X, y = binary
    regressor = SMKLRegressor("precomputed", C="auto").fit(numpy_bank(X, X), X[:, 0])
    assert regressor.C_ > 0 and regressor.status_ == "stationary"
    regressor.save(tmp_path / "m.mercer")
    loaded = load(tmp_path / "m.mercer")
    assert loaded.C == "auto" and loaded.C_ == regressor.C_
    for wrong in ({"C": "best"}, {"v": "best"}, {"C": None}):
        with pytest.raises((TypeError, ValueError), match=f"`{next(iter(wrong))}`"):
            GMKLClassifier(BANK, **wrong).fit(X, y)
