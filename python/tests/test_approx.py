"""Declared approximations: what is reported, that it is the model's own kernel, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import mercer
from mercer import CLMKLClassifier, GMKLClassifier, GMKLRegressor

BANK = "rbf(0.5|2), laplace(1) on all; linear, rbf(1) on each"
FORMS = ["nystrom(20)", "rff(60)"]


def test_all_rows_as_landmarks_are_the_kernel(binary):
    X, y = binary
    exact = GMKLClassifier(BANK, tol=1e-6).fit(X, y)
    near = GMKLClassifier(BANK, tol=1e-6, approx=f"nystrom({len(X)})").fit(X, y)
    assert not hasattr(exact, "approximation_error_")
    assert near.approximation_error_["trace"].max() < 1e-9
    assert_allclose(near.primal_objective_, exact.primal_objective_, rtol=1e-5)
    assert_allclose(near.decision_function(X), exact.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("form", ["nystrom", "rff"])
def test_errors_fall_with_the_rank(form, binary):
    X, y = binary
    fits = [GMKLClassifier(BANK, approx=f"{form}({r})").fit(X, y) for r in (4, 16, 64)]
    name = {"nystrom": "trace", "rff": "rms"}[form]
    errors = np.array([fit.approximation_error_[name] for fit in fits])
    assert errors.shape == (3, len(fits[0].kernel_names_))
    linear = [k for k, name in enumerate(fits[0].kernel_names_) if name.startswith("linear")]
    assert (errors[:, linear] == 0).all()
    rest = np.delete(errors, linear, axis=1)
    assert (np.diff(rest, axis=0) < 0).all() and (rest[0] > 0.01).any()
    for fit in fits:
        assert fit.status_ == "optimal" and fit.duality_gap_ <= fit.tol


def test_the_reported_error_is_the_measured_one(binary):
    X, y = binary
    fit = GMKLClassifier("rbf(1) on all", approx="rff(40)", normalize=None, standardize=False).fit(X, y)
    told = fit.approximation_error_
    assert set(told) == {"rms", "standard_error", "largest"}
    # cos(wᵀ(x − z)) averaged over 20 draws: deviation at most √(1/2/20), and never above 2.
    assert 0 < told["standard_error"][0] < 0.1 * told["rms"][0] < told["rms"][0] < 0.16 and told["largest"][0] < 2


@pytest.mark.parametrize("approx", FORMS)
@pytest.mark.parametrize("Estimator", [GMKLClassifier, GMKLRegressor, CLMKLClassifier])
def test_saved_loaded_cloned(Estimator, approx, tmp_path, binary, regression):
    X, y = binary if Estimator.__name__.endswith("Classifier") else regression
    estimator = Estimator(BANK, approx=approx, random_state=3)
    assert estimator.get_params()["approx"] == clone(estimator).approx == approx
    estimator.fit(X, y).save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert_array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.approx == approx and loaded.random_state == 3
    for name, values in estimator.approximation_error_.items():
        assert_array_equal(loaded.approximation_error_[name], values)
    assert_array_equal(loaded.fit(X, y).predict(X), estimator.predict(X))


@pytest.mark.parametrize("approx", FORMS)
def test_the_seed_decides_and_threads_do_not(approx, binary):
    X, y = binary
    of = {
        (seed, jobs): GMKLClassifier(BANK, approx=approx, random_state=seed, n_jobs=jobs).fit(X, y).decision_function(X)
        for seed, jobs in [(0, 1), (0, 2), (1, 1)]
    }
    assert_array_equal(of[0, 1], of[0, 2])
    assert (of[0, 1] != of[1, 1]).any()


@pytest.mark.parametrize(
    ("kernels", "approx", "error", "words"),
    [
        (BANK, "nystrom(0)", ValueError, "at least 1"),
        (BANK, "rff(7)", ValueError, "even r"),
        (BANK, "nystrom", ValueError, r"`approx` must be \"nystrom\(r\)\""),
        (BANK, 200, TypeError, "`approx` must be a text or None"),
        ("gauss(l2, 1) on all", "rff(4)", ValueError, "nystrom"),
        ("poly(3) on all", "rff(4)", ValueError, "nystrom"),
    ],
)
def test_what_cannot_be_is_refused(kernels, approx, error, words, binary):
    X, y = binary
    with pytest.raises(error, match=words):
        GMKLClassifier(kernels, approx=approx).fit(X, y)


def test_sequences_have_landmarks_and_no_waves():
    texts = ["ACGTACGT", "ACGTTCGT", "TTTTACGA", "TTTAACGA", "ACGAACGT", "TTTTAGGA"] * 3
    y = [0, 0, 1, 1, 0, 1] * 3
    fit = GMKLClassifier("spectrum(1..3)", approx="nystrom(3)").fit(texts, y)
    assert fit.approximation_error_["trace"].shape == (3,)
    with pytest.raises(ValueError, match="spectrum"):
        GMKLClassifier("spectrum(3)", approx="rff(10)").fit(texts, y)


def test_ready_made_kernels_are_not_approximated(binary):
    X, y = binary
    K = (X @ X.T)[:, :, None]
    with pytest.raises(ValueError, match="ready-made"):
        GMKLClassifier("precomputed", approx="nystrom(5)").fit(K, y)
