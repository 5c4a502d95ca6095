"""No silent constant: regressions do not depend on the units of y, and a fit that learned nothing says so."""

import warnings

import numpy as np
import pytest
from conftest import REGRESSORS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification

from mercer import (
    GMKLClassifier,
    GMKLRegressor,
    SMKLClassifier,
    UniformMKLClassifier,
    UniformMKLRegressor,
    compare,
    load,
)

BANK = "rbf(0.5|1|2), poly(1..2) on all; linear on each"


@pytest.fixture(scope="module")
def unequal():
    return make_classification(400, 10, weights=[0.95], flip_y=0, random_state=1)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared"])
@pytest.mark.parametrize("Estimator", REGRESSORS)
def test_y_in_other_units_gives_the_same_fit_in_those_units(Estimator, loss, regression):
    X, y = regression
    base = Estimator(BANK, loss=loss, tol=1e-5, max_iter=3000).fit(X, y)
    for unit in (1e-6, 1e6):
        other = Estimator(BANK, loss=loss, tol=1e-5, max_iter=3000).fit(X, unit * y)
        assert_allclose(other.predict(X) / unit, base.predict(X), atol=5e-3 * y.std())
        assert_allclose(other.primal_objective_, base.primal_objective_, rtol=1e-3)


def test_units_with_ready_made_kernels_weights_and_c_left_open(regression):
    X, y = regression
    stack = np.stack([X @ X.T, (1 + X @ X.T) ** 2], axis=2)
    weight = np.linspace(0.1, 2, len(y))
    for C in (1.0, "auto"):
        base = GMKLRegressor("precomputed", C=C, tol=1e-6).fit(stack, y, sample_weight=weight)
        other = GMKLRegressor("precomputed", C=C, tol=1e-6).fit(stack, 1e6 * y, sample_weight=weight)
        assert other.C_ == base.C_
        assert_allclose(other.predict(stack) / 1e6, base.predict(stack), atol=1e-3 * y.std())


def test_the_plain_problem_can_be_had(regression):
    X, y = regression
    y = 50 * y
    scaled = UniformMKLRegressor(BANK, C=2, tol=1e-8).fit(X, y)
    plain = UniformMKLRegressor(BANK, C=2 * y.std(), tol=1e-8, scale_target=False).fit(X, y)
    assert_allclose(scaled.predict(X), plain.predict(X), atol=1e-2 * y.std())
    assert_allclose(scaled.primal_objective_ * y.std() ** 2, plain.primal_objective_, rtol=1e-6)
    with pytest.raises(TypeError, match="scale_target"):
        GMKLRegressor(scale_target="yes").fit(X, y)


def test_constants_are_told(regression, unequal):
    X, y = regression
    with pytest.warns(UserWarning, match="a constant on the training rows: predictions vary by"):
        flat = GMKLRegressor(BANK, C=1e-6).fit(X, y)
    assert any("a constant" in text for text in flat.warnings_) and flat.status_ == "optimal"
    A, b = unequal
    with pytest.warns(UserWarning, match="a constant on the training rows: all 400 are predicted to be `0`"):
        UniformMKLClassifier(BANK, C=1e-4).fit(A, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GMKLRegressor(BANK).fit(X, y)
        GMKLRegressor(BANK).fit(X, np.full(len(y), 0.1))
        GMKLClassifier(BANK, C=10).fit(A, b)


@pytest.mark.parametrize("params", [{}, {"C": "auto"}, {"C": "auto", "normalize": "multiplicative"}])
def test_smkl_does_not_end_in_a_constant_on_unequal_classes(params, unequal):
    X, y = unequal
    clf = SMKLClassifier(**params).fit(X, y)
    assert_array_equal(np.unique(clf.predict(X)), [0, 1])
    assert clf.score(X, y) > 0.96 and not any("constant" in text for text in clf.warnings_)


def test_the_price_of_the_scale(tmp_path, binary):
    X, y = binary
    clf = SMKLClassifier(BANK).fit(X, y)
    assert clf.C == "scale" and len(y) == clf.C_
    clf.save(tmp_path / "m.mercer")
    loaded = load(tmp_path / "m.mercer")
    assert (loaded.C, loaded.C_, loaded.normalize) == ("scale", len(y), "trace")
    assert SMKLClassifier(BANK, normalize="multiplicative").fit(X, y).C_ == 1
    # Rows of weight zero are absent.
    weight = np.where(np.arange(len(y)) < 10, 0.0, 1.0)
    assert len(y) - 10 == SMKLClassifier(BANK).fit(X, y, sample_weight=weight).C_
    trace = GMKLClassifier(BANK, C="scale", normalize="trace").fit(X, y)
    assert trace.score(X, y) > 0.8
    with pytest.raises(ValueError, match='`C` must be a number, "auto" or "scale"'):
        GMKLClassifier(BANK, C="rows").fit(X, y)


def test_the_edge_of_the_values_tried_is_told(regression):
    X, _ = regression
    noise = np.random.default_rng(0).normal(size=len(X))
    with pytest.warns(UserWarning, match=r"C = 0\.1 is the smallest value that was tried"):
        GMKLRegressor(BANK, C="auto").fit(X, noise)


def test_comparisons_do_not_depend_on_units(regression):
    X, y = regression
    runs = {
        (unit, scale): compare(X, unit * y, "gmkl(C=1;v=0.5)", kernels=BANK, repeats=2, metric="r2", scale_target=scale).runs()
        for unit, scale in ((1.0, True), (1e5, True), (1e5, False))
    }
    scores = {key: run[run["method"] == "gmkl(C=1;v=0.5)"]["score"].to_numpy() for key, run in runs.items()}
    assert_allclose(scores[1.0, True], scores[1e5, True], atol=0.02)
    assert scores[1e5, False].max() < 0.5 < scores[1e5, True].min()
