"""scikit-learn's own checks."""

import warnings

import pytest
from conftest import CLASSIFIERS, METHODS, REGRESSORS
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import GMKLClassifier, LMKLRegressor
from mercer._io import estimators, parameters

#: scikit-learn declares the same for its SVC and SVR. Ours at a tight tolerance: test_sample_weight.py.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "standardisation and kernel scales count rows, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "kernel scales count rows, not weights",
}

ESTIMATORS = [Estimator() for Estimator in CLASSIFIERS + REGRESSORS]
# Probabilities bring checks of their own.
ESTIMATORS.append(GMKLClassifier(loss="logistic"))


#: On random targets the objective of a gated ε-insensitive fit falls for thousands of steps; few will do here.
UNENDING = LMKLRegressor
CHECKED = [UNENDING(max_iter=50) if isinstance(estimator, UNENDING) else estimator for estimator in ESTIMATORS]


# Some of the checks are on twenty rows of noise, where SMKL keeps no kernel and says so.
@pytest.mark.filterwarnings("ignore:.*collapsed to a constant:UserWarning")
@parametrize_with_checks(CHECKED, expected_failed_checks=lambda estimator: EXPECTED)
def test_check_estimator(estimator, check):
    if isinstance(estimator, UNENDING):
        warnings.filterwarnings("ignore", "the relative change", ConvergenceWarning)
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: type(e).__name__)
def test_constructor_contract(estimator):
    params = estimator.get_params()
    common = {"kernels": "auto", "C": 1.0, "normalize": "multiplicative", "standardize": True, "tol": 1e-3}
    common |= {"max_iter": 500, "random_state": None, "n_jobs": None, "verbose": 0, "memory": None, "approx": None}
    common |= {"fit_intercept": True, "group_by": None, "penalties": None}
    if type(estimator).__name__.startswith("SMKL"):
        common |= {"C": "scale", "normalize": "trace"}
    assert common.items() <= params.items()
    if estimator.__sklearn_tags__().estimator_type == "classifier":
        own = {"loss": "hinge", "class_weight": None, "multi_class": "ovr", "shared_weights": False}
        assert own.items() <= params.items()
    else:
        assert params["loss"] == "epsilon_insensitive" and params["epsilon"] is None and params["scale_target"] is True
    assert type(estimator).__name__ in mercer.__all__


@pytest.mark.parametrize(("name", "task"), [(name, task) for name in METHODS for task in estimators()[name]])
def test_every_method_has_an_estimator_with_the_same_defaults(name, task):
    params = estimators()[name][task]().get_params()
    own = parameters({"method": METHODS[name]["defaults"]})
    # None is the seed 0.
    assert own.pop("random_state", 0) == 0
    assert own.items() <= params.items()
    assert own.keys() | estimators()["uniform"][task]().get_params().keys() == params.keys()


def test_tags_follow_the_kernels():
    raw, ready = GMKLClassifier().__sklearn_tags__(), GMKLClassifier("precomputed").__sklearn_tags__()
    assert not raw.input_tags.pairwise and not raw.input_tags.three_d_array and raw.input_tags.dict
    assert ready.input_tags.pairwise and ready.input_tags.three_d_array and not ready.input_tags.dict
    for tags in (raw, ready):
        assert tags.target_tags.required and not tags.input_tags.allow_nan
    assert raw.input_tags.sparse and not ready.input_tags.sparse
