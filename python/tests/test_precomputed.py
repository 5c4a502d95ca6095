"""Ready-made Gram matrices, kernel axis last."""

import numpy as np
import pytest
from conftest import BANK, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from mercer import GMKLClassifier, GMKLRegressor, UniformMKLClassifier

TIGHT = {"C": 3, "tol": 1e-9, "max_iter": 5000}


@pytest.mark.parametrize("normalize", ["multiplicative", "trace", "center", None])
@pytest.mark.parametrize("Estimator", [GMKLClassifier, GMKLRegressor])
def test_equals_raw(Estimator, normalize, binary, regression):
    X, y = binary if Estimator is GMKLClassifier else regression
    options = TIGHT | {"normalize": normalize} | ({"C": 300} if normalize == "trace" else {})
    raw = Estimator(BANK, standardize=False, **options).fit(X[:50], y[:50])
    ready = Estimator("precomputed", **options).fit(numpy_bank(X[:50], X[:50]), y[:50])
    assert_allclose(ready.primal_objective_, raw.primal_objective_, rtol=1e-6)
    assert_allclose(ready.kernel_weights_, raw.kernel_weights_, atol=1e-3)
    output = "decision_function" if Estimator is GMKLClassifier else "predict"
    block = numpy_bank(X[50:], X[:50])
    assert_allclose(getattr(ready, output)(block), getattr(raw, output)(X[50:]), atol=1e-3)


def test_one_matrix_may_be_flat(binary):
    X, y = binary
    K = X @ X.T
    flat = UniformMKLClassifier("precomputed").fit(K, y)
    deep = UniformMKLClassifier("precomputed").fit(K[:, :, None], y)
    assert flat.kernel_weights_.shape == (1,) and flat.n_features_in_ == 80
    assert_array_equal(flat.decision_function(K), deep.decision_function(K[:, :, None]))


def test_any_memory_layout(binary):
    X, y = binary
    stack = numpy_bank(X, X)
    clf = GMKLClassifier("precomputed").fit(stack, y)
    other = GMKLClassifier("precomputed").fit(np.asfortranarray(stack), y)
    assert_array_equal(clf.decision_function(stack), other.decision_function(stack.astype(">f8")))


@pytest.mark.parametrize("raw", [True, False])
def test_grid_search(raw, binary):
    X, y = binary
    clf = GMKLClassifier(BANK if raw else "precomputed", standardize=False)
    search = GridSearchCV(clf, {"C": [0.1, 10], "v": [0.0, 0.5, 1.0]}, cv=3)
    data = X if raw else numpy_bank(X, X)
    search.fit(data, y)
    assert search.best_score_ > 0.75
    assert search.predict(data).shape == y.shape
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


def test_cross_validation_slices_both_axes(binary):
    X, y = binary
    options = {"cv": 4, "method": "decision_function"}
    raw = cross_val_predict(GMKLClassifier(BANK, standardize=False, **TIGHT), X, y, **options)
    ready = cross_val_predict(GMKLClassifier("precomputed", **TIGHT), numpy_bank(X, X), y, **options)
    assert_allclose(ready, raw, atol=1e-3)


def test_cross_validation_in_processes(binary):
    X, y = binary
    clf = GMKLClassifier("precomputed")
    assert_array_equal(cross_val_score(clf, numpy_bank(X, X), y, n_jobs=2), cross_val_score(clf, numpy_bank(X, X), y))


def bent(stack, what):
    stack = stack.copy()
    if what == "asymmetric":
        stack[0, 1, 2] += 1
    elif what == "indefinite":
        stack[:, :, 1] -= 2 * np.eye(len(stack))
    elif what == "nan":
        stack[3, 3, 0] = np.nan
    elif what == "not square":
        stack = stack[:, :-1]
    elif what == "no kernels":
        stack = stack[:, :, :0]
    elif what == "four axes":
        stack = stack[..., None]
    elif what == "constant":
        stack[:, :, 0] = 1.0
    return stack


@pytest.mark.parametrize("what", ["asymmetric", "indefinite", "nan", "not square", "no kernels", "four axes", "constant"])
def test_bad_stacks(what, binary):
    X, y = binary
    with pytest.raises(ValueError):
        GMKLClassifier("precomputed").fit(bent(numpy_bank(X, X), what), y)


def test_bad_blocks(binary):
    X, y = binary
    stack = numpy_bank(X, X)
    clf = GMKLClassifier("precomputed").fit(stack, y)
    for block in (stack[:, :-1], stack[:, :, :-1], stack[:, :, 0], stack * np.nan):
        with pytest.raises(ValueError):
            clf.predict(block)


def test_spherical_needs_a_diagonal(binary):
    X, y = binary
    with pytest.raises(ValueError, match="spherical"):
        GMKLClassifier("precomputed", normalize="spherical").fit(numpy_bank(X, X), y)
