"""Veto–consensus rules from Python."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import UniformMKLClassifier, VCMKLClassifier


def polygon(n, sides, seed):
    """Labels "in" and "out" of a regular polygon with inner radius 1, in equal numbers."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, size=(20 * n, 2))
    angles = 2 * np.pi * np.arange(sides) / sides
    inside = (1 - points @ np.array([np.cos(angles), np.sin(angles)])).min(axis=1) > 0
    rows = np.concatenate([np.flatnonzero(inside)[: n // 2], np.flatnonzero(~inside)[: n // 2]])
    return points[rows], np.where(inside[rows], "in", "out")


@pytest.mark.parametrize("sides", [3, 4])
def test_linear_rules_describe_a_polygon(sides):
    X, y = polygon(200, sides, 0)
    X_new, y_new = polygon(1000, sides, 1)
    rules = VCMKLClassifier("linear", n_rules=sides, consensus="in", C=10).fit(X, y)
    assert rules.score(X_new, y_new) >= 0.9
    assert UniformMKLClassifier("linear", C=10).fit(X, y).score(X_new, y_new) <= 0.62
    assert rules.status_ == "stationary" and np.isnan(rules.duality_gap_) and rules.n_rules_ == sides
    assert rules.kernel_weights_.shape == (sides, 1) and rules.intercept_.shape == (sides,)
    assert list(rules.weights_frame().columns) == [f"rule {m}" for m in range(1, sides + 1)]


def test_a_veto_names_the_rule_and_the_amount():
    X, y = polygon(200, 4, 0)
    clf = VCMKLClassifier("linear", n_rules=4, consensus="in", C=10).fit(X, y)
    values, veto = clf.rule_values(X), clf.veto(X)
    rejected = clf.predict(X) == "out"
    assert values.shape == (200, 4)
    np.testing.assert_array_equal(rejected, veto["rule"] >= 0)
    np.testing.assert_array_equal(veto["rule"][rejected], values[rejected].argmin(axis=1))
    np.testing.assert_allclose(veto["amount"], -values.min(axis=1))
    # "in" is the first class, so that the decision value, positive for the second, is −g.
    np.testing.assert_allclose(clf.decision_function(X), veto["amount"])
    # A point far to the right breaks the rule of the right-hand wall, and no other.
    far = clf.rule_values([[5.0, 0.0]])[0]
    assert (far < 0).sum() == 1


def test_which_class_is_the_consensus():
    X, y = polygon(200, 3, 0)
    inside = VCMKLClassifier("linear", consensus="in", C=10).fit(X, y)
    outside = VCMKLClassifier("linear", consensus="out", C=10).fit(X, y)
    assert inside.rules_[0]["consensus"] == "in" and outside.rules_[0]["consensus"] == "out"
    assert inside.score(X, y) > 0.9 > outside.score(X, y)
    np.testing.assert_array_equal(outside.predict(X), VCMKLClassifier("linear", C=10).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="consensus"):
        VCMKLClassifier("linear", consensus="between").fit(X, y)


def test_shares_of_proposition_2():
    X, y = polygon(200, 4, 0)
    for nu in (None, 0.05, [0.05, 0.04, 0.03, 0.05]):
        clf = VCMKLClassifier("linear", n_rules=4, consensus="in", nu=nu, C=1).fit(X, y)
        machine = clf.rules_[0]
        for share in [rule["negative"] for rule in machine["rules"]] + [machine["positive"]]:
            assert share["bounded"] <= share["nu"] + 1e-6 <= share["support"] + 2e-6
    with pytest.raises(ValueError, match="nu"):
        VCMKLClassifier("linear", nu=5.0).fit(X, y)


def test_all_solvers_and_both_signs_of_pddp():
    X, y = polygon(40, 3, 0)
    fits = {
        solver: VCMKLClassifier("linear", n_rules=2, consensus="in", solver=solver, max_iter=100, tol=1e-2).fit(X, y)
        for solver in ("ccp", "am", "sgd", "pddp", "exact")
    }
    proven = fits["exact"]
    assert proven.status_ == "optimal" and proven.duality_gap_ <= 1e-2
    for clf in fits.values():
        assert clf.primal_objective_ >= proven.dual_objective_
    assert fits["ccp"].rules_[0]["qp_calls"] >= 3
    printed = VCMKLClassifier("linear", n_rules=2, consensus="in", solver="pddp", objective="as-printed").fit(X, y)
    # Every rule must reject everything: the rules become one.
    values = printed.rule_values(X)
    np.testing.assert_allclose(values[:, 0], values[:, 1], atol=0.05)
    assert printed.score(X, y) < fits["ccp"].score(X, y)


# With so small a ν the three classes overlap for a linear rule, which is said.
@pytest.mark.filterwarnings("ignore:.*has no margin:UserWarning")
def test_a_model_file_brings_everything_back(tmp_path, ternary):
    X, y = ternary
    for params in (
        {"kernels": "rbf(0.5|1|2) on all"},
        {"kernels": "rbf(1), linear on all", "p": np.inf, "n_rules": 2},
        {"kernels": "linear", "nu": 0.05, "gamma": 0.5, "solver": "pddp", "objective": "as-printed", "n_rules": 2},
    ):
        clf = VCMKLClassifier(C=2, random_state=3, **params).fit(X, y)
        clf.save(tmp_path / "model.mercer")
        back = mercer.load(tmp_path / "model.mercer")
        np.testing.assert_array_equal(back.rule_values(X), clf.rule_values(X))
        np.testing.assert_array_equal(back.predict(X), clf.predict(X))
        assert back.rules_ == clf.rules_ and back.kernel_weights_.shape == (3, clf.n_rules, len(clf.kernel_names_))
        same = {key: value for key, value in clf.get_params().items() if key not in ("memory", "epsilon")}
        assert same.items() <= back.get_params().items()
        np.testing.assert_array_equal(clone(clf).fit(X, y).rule_values(X), clf.rule_values(X))


def test_ready_made_kernels_and_grid_search(binary):
    X, y = binary
    K = mercer.gram(X, "rbf(1|2) on all")
    clf = VCMKLClassifier("precomputed", n_rules=2, C=10).fit(K, y)
    table = VCMKLClassifier("rbf(1|2) on all", n_rules=2, C=10, standardize=False).fit(X, y)
    np.testing.assert_allclose(clf.rule_values(K), table.rule_values(X), atol=1e-6)
    assert clf.veto(K).shape == (80,)
    search = GridSearchCV(VCMKLClassifier("precomputed", n_init=1), {"n_rules": [1, 2]}, cv=3).fit(K, y)
    assert search.best_score_ > 0.6
    auto = VCMKLClassifier("precomputed", n_rules="auto", n_init=1, folds=3).fit(K, y)
    assert 1 <= auto.n_rules_ <= 10


def test_dearer_false_positives_make_for_fewer(binary):
    X, y = binary
    accepted = [(VCMKLClassifier("rbf(1)", cost_ratio=r, C=0.3).fit(X, y).predict(X) == 1).sum() for r in (0.1, 1.0, 10.0)]
    assert accepted[0] > accepted[1] > accepted[2]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"n_rules": 0}, ValueError),
        ({"n_rules": 2.5}, TypeError),
        ({"n_rules": "many"}, TypeError),
        ({"gamma": 1.5}, ValueError),
        ({"solver": "level"}, ValueError),
        ({"objective": "printed"}, ValueError),
        ({"loss": "logistic"}, ValueError),
        ({"shared_weights": True}, ValueError),
        ({"fit_intercept": False}, ValueError),
        ({"p": 0.5}, ValueError),
    ],
)
def test_wrong_parameters_are_named(params, error, binary):
    with pytest.raises(error, match=next(iter(params))):
        VCMKLClassifier("linear", **params).fit(*binary)


def test_frames_of_weights_say_that_they_need_pandas(monkeypatch):
    X, y = polygon(80, 4, 0)
    clf = VCMKLClassifier("rbf(1)", n_rules=2).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"weights_frame\(\) needs pandas"):
        clf.weights_frame()
