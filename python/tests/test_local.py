"""Weights that depend on where a row lies: shapes, regions that users give, files, model selection."""

import numpy as np
import pandas as pd
import pytest
from conftest import BANK, numpy_bank
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import (
    CLMKLClassifier,
    CLMKLRegressor,
    GLMKLClassifier,
    GLMKLRegressor,
    GSMKLClassifier,
    HLMKLClassifier,
    LMKLClassifier,
    LMKLRegressor,
    LpMKLClassifier,
)

CLASSIFIERS = [CLMKLClassifier, HLMKLClassifier, LMKLClassifier, GLMKLClassifier, GSMKLClassifier]


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
def test_shapes_of_what_is_learned(Estimator, binary):
    X, y = binary
    clf = Estimator(BANK).fit(X, y)
    regions = 4 if Estimator is LMKLClassifier else 3
    memberships, weights = clf.memberships(X), clf.local_weights(X)
    assert memberships.shape == (80, regions) and weights.shape == (80, 4)
    np.testing.assert_allclose(memberships.sum(axis=1), 1)
    if Estimator is LMKLClassifier:
        assert clf.kernel_weights_.shape == (4,)
        np.testing.assert_allclose(clf.kernel_weights_, weights.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(weights, memberships)
    else:
        assert clf.kernel_weights_.shape == (3, 4)
        np.testing.assert_allclose(weights, memberships @ clf.kernel_weights_)
    convex = Estimator in (CLMKLClassifier, HLMKLClassifier)
    assert clf.status_ == ("optimal" if convex else "stationary") and np.isnan(clf.duality_gap_) != convex
    frame = clf.weights_frame()
    assert frame.shape == (4, 1 if Estimator is LMKLClassifier else 3)
    assert clf.score(X, y) > 0.8


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
@pytest.mark.parametrize("shared", [False, True])
def test_several_classes(Estimator, shared, ternary, tmp_path):
    X, y = ternary
    clf = Estimator("rbf(0.5|2), linear on all", shared_weights=shared).fit(X, y)
    assert clf.score(X, y) > 0.8
    own_gates = not shared and Estimator not in (CLMKLClassifier, HLMKLClassifier)
    assert clf.memberships(X).shape == ((3, 90, 3) if own_gates else (90, 3))
    assert clf.local_weights(X).shape == ((90, 3) if shared else (3, 90, 3))
    vectors = 1 if Estimator is LMKLClassifier else 3
    assert clf.weights_frame().shape == (3, vectors if shared else 3 * vectors)
    clf.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert type(loaded) is Estimator
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(loaded.kernel_weights_, clf.kernel_weights_)


@pytest.mark.parametrize("Estimator", [CLMKLRegressor, LMKLRegressor, GLMKLRegressor])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared"])
def test_values(Estimator, loss, regression):
    X, y = regression
    reg = Estimator(BANK, C=10, loss=loss).fit(X, y)
    assert reg.score(X, y) > 0.9 and reg.local_weights(X).shape == (70, 4)


def test_hard_is_a_word_for_evenness_and_one_cluster_is_global(binary):
    X, y = binary
    hard, also = HLMKLClassifier(BANK).fit(X, y), CLMKLClassifier(BANK, evenness="hard").fit(X, y)
    np.testing.assert_array_equal(hard.decision_function(X), also.decision_function(X))
    assert set(np.unique(hard.memberships(X))) == {0.0, 1.0}
    one = CLMKLClassifier(BANK, n_clusters=1, tol=1e-6).fit(X, y)
    lp = LpMKLClassifier(BANK, p=2.0, tol=1e-6).fit(X, y)
    assert one.primal_objective_ == pytest.approx(lp.primal_objective_, rel=2e-6)
    even = CLMKLClassifier(BANK, evenness=0.9).fit(X, y).memberships(X)
    assert (even / even.max(axis=1, keepdims=True)).mean() == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("Estimator", [HLMKLClassifier, GLMKLClassifier, GSMKLClassifier])
def test_regions_by_column_labels_and_callable(Estimator, binary):
    X, y = binary
    X = np.column_stack([X, np.where(X[:, 2] > 0, 5.0, -3.0)])
    name = Estimator._region_parameter
    bank = "rbf(0.5|2), poly(2), linear on cols(1-3)"
    by_number = Estimator(bank, **{name: 3}).fit(X, y)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "side"])
    by_name = Estimator(bank, **{name: "side"}).fit(frame, y)
    by_labels = Estimator(bank, **{name: np.where(X[:, 3] > 0, "right", "left")}).fit(X, y)
    by_rule = Estimator(bank, **{name: lambda Z: np.where(Z[:, 3] > 0, "right", "left")}).fit(X, y)
    wanted = np.column_stack([X[:, 3] < 0, X[:, 3] > 0]).astype(float)
    for clf, data in ((by_number, X), (by_name, frame), (by_rule, X)):
        np.testing.assert_array_equal(clf.memberships(data), wanted)
        np.testing.assert_allclose(clf.decision_function(data), by_number.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(by_labels.kernel_weights_, by_number.kernel_weights_)
    assert list(by_labels.region_labels_) == list(by_rule.region_labels_) == ["left", "right"]
    with pytest.raises(ValueError, match=r"x4.*names no region"):
        by_number.predict(X + 1)
    with pytest.raises(ValueError, match="one label per row"):
        Estimator(bank, **{name: [1, 2]}).fit(X, y)


def test_a_callable_may_give_soft_regions(binary, tmp_path):
    X, y = binary

    def side(Z):
        right = 1 / (1 + np.exp(-2 * Z[:, 0]))
        return np.column_stack([right, 1 - right])

    clf = CLMKLClassifier(BANK, regions=side).fit(X, y)
    np.testing.assert_array_equal(clf.memberships(X), side(X))
    assert clf.kernel_weights_.shape == (2, 4) and clf.status_ == "optimal"
    clf.save(tmp_path / "m.mercer")
    with pytest.raises(ValueError, match="memberships of the new rows"):
        mercer.load(tmp_path / "m.mercer").predict(X)
    with pytest.raises(ValueError, match="hard"):
        GLMKLClassifier(BANK, groups=side).fit(X, y)


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
def test_ready_made_kernels_place_rows_too(Estimator, binary):
    X, y = binary
    stack = numpy_bank(X, X)
    ready = Estimator("precomputed").fit(stack, y)
    table = Estimator(BANK, standardize=False).fit(X, y)
    block = numpy_bank(X[:20], X)
    if Estimator in (CLMKLClassifier, HLMKLClassifier):
        # Learned gates depend on rounding too much to compare.
        np.testing.assert_allclose(ready.memberships(block), table.memberships(X[:20]), atol=1e-6)
    assert ready.local_weights(block).shape == (20, 4)
    search = GridSearchCV(Estimator("precomputed"), {"C": [0.1, 1]}, cv=3).fit(stack, y)
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("Estimator", CLASSIFIERS)
def test_same_seed_same_answer(Estimator, binary):
    X, y = binary
    first = Estimator(BANK, random_state=3, n_jobs=1).fit(X, y)
    second = clone(first).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_gates(binary):
    X, y = binary
    linear = LMKLClassifier(BANK, gate_kernel="linear on all").fit(X, y)
    # A kernel whose gate is all but shut everywhere is shut: its weight is exactly zero, and its odds are infinite.
    open_gates = linear.local_weights(X)[:, linear.kernel_weights_ > 0]
    assert open_gates.shape[1] > 1
    odds = np.log(open_gates[:, :1] / open_gates[:, 1:])
    design = np.column_stack([X, np.ones(80)])
    fitted = design @ np.linalg.lstsq(design, odds, rcond=None)[0]
    np.testing.assert_allclose(odds, fitted, atol=1e-6 * np.abs(odds).max())
    loose = LMKLClassifier(BANK, gate="sigmoid", gate_kernel=0).fit(X, y)
    assert loose.local_weights(X).max() <= 1 and loose.status_ == "stationary"
    several = GLMKLClassifier(BANK, p=2.0, n_init=4).fit(X, y)
    assert several.primal_objective_ <= GLMKLClassifier(BANK, p=2.0).fit(X, y).primal_objective_
    np.testing.assert_allclose(several.effective_weights_, several.kernel_weights_**2)
    np.testing.assert_allclose((several.kernel_weights_**2).sum(axis=1), 1)


def test_what_cannot_be_is_refused(binary):
    X, y = binary
    for params, match in (
        ({"n_clusters": 81}, "n_clusters"),
        ({"evenness": 0.2}, "evenness"),
        ({"evenness": "soft"}, "evenness"),
        ({"p": 0.5}, "`p`"),
        ({"regions": "nowhere"}, "nowhere"),
        ({"cluster_kernel": 17}, "cluster_kernel"),
    ):
        with pytest.raises(ValueError, match=match):
            CLMKLClassifier(BANK, **params).fit(X, y)
    with pytest.raises(TypeError, match="n_clusters"):
        CLMKLClassifier(BANK, n_clusters=2.5).fit(X, y)
    with pytest.raises(TypeError, match="gate_kernel"):
        LMKLClassifier(BANK, gate_kernel=2.5).fit(X, y)
    with pytest.raises(NotFittedError):
        CLMKLClassifier(BANK).memberships(X)
