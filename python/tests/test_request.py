"""Everything that a request can ask for can be asked from Python, or stands here with the reason why not."""

import inspect
import json

import numpy as np
import pytest
from conftest import METHODS

import mercer
from mercer import _mercer, _request
from mercer._io import estimators

SAME_OPTIMUM = "the optimum is the same either way: a switch for tests and benchmarks"
CHOSEN = "`grid`, or a method's own settings, say which values are tried"
NOT_LEARNED = "kernels are shown before anything is learned"
CLASSES_ONLY = "a regressor has no classes"
VALUES_ONLY = "a classifier has no values"

#: Fields of the request that cannot be asked for there, and why.
EXCEPTIONS = {
    "estimators": {"working_set": SAME_OPTIMUM, "screening": SAME_OPTIMUM},
    "classification": {"epsilon": VALUES_ONLY, "scale_target": VALUES_ONLY},
    "regression": {"class_weight": CLASSES_ONLY, "multi_class": CLASSES_ONLY, "shared_weights": CLASSES_ONLY},
    "compare": {
        "working_set": SAME_OPTIMUM,
        "screening": SAME_OPTIMUM,
        "c": CHOSEN,
        "choose": CHOSEN,
    },
    "diagnose": dict.fromkeys(
        (
            *("working_set", "screening", "method", "c", "choose", "loss", "epsilon", "scale_target", "class_weight"),
            *("multi_class", "shared_weights", "fit_intercept", "group_by", "penalties", "tol", "max_iter"),
        ),
        NOT_LEARNED,
    ),
}
#: Parameters of estimators that are not of the request: what is watched, on how many threads.
AROUND = {"n_jobs", "verbose", "max_time", "callback", "on_interrupt"}


def fields_of(names):
    """Fields of the request that parameters of these names say."""
    told = {_request.FIELDS[name][0] for name in names if name in _request.FIELDS}
    return told | {field for name in names for field in _request.OTHERS.get(name, ())}


def test_the_core_says_what_a_request_has():
    fields = set(_mercer.request_fields())
    assert {"method", "kernels", "storage", "group_by"} <= fields
    table = fields_of([*_request.FIELDS, *_request.OTHERS]) | {"method"}
    assert table | EXCEPTIONS["estimators"].keys() == fields


@pytest.mark.parametrize(("name", "task"), [(name, task) for name, tasks in estimators().items() for task in tasks])
def test_every_field_and_every_parameter_of_a_method_is_one_of_its_estimator(name, task):
    estimator = estimators()[name][task]()
    params = estimator.get_params()
    excepted = EXCEPTIONS["estimators"].keys() | EXCEPTIONS[task].keys()
    assert fields_of(params) | {"method"} == set(_mercer.request_fields()) - excepted
    # What is sent says all that is not about y.
    assert estimator._request().keys() | {"class_weight"} >= fields_of(params)
    own = {option["name"] for option in METHODS[name]["info"]["options"]}
    here = {"seed": "random_state"}
    assert {here.get(option, option) for option in own} <= params.keys()
    assert estimator._method().keys() - {"name", "evenness"} == own - {"evenness"}
    assert params.keys() >= AROUND


def test_every_field_is_one_of_compare_and_of_diagnose():
    for function in (mercer.compare, mercer.diagnose):
        names = inspect.signature(function).parameters
        said = fields_of(names) | ({"method"} if "methods" in names else set())
        # The seed of a comparison is that of its splits: no search inside a fit draws folds.
        excepted = EXCEPTIONS[function.__name__].keys()
        assert said - excepted == set(_mercer.request_fields()) - excepted, function.__name__
        documented = function.__doc__ or ""
        assert all(name in documented for name in names if name not in ("X", "y")), function.__name__


def test_parameters_of_methods_can_be_compared(binary):
    pytest.importorskip("pandas")
    X, y = binary
    values = {"solver": "am", "gate": "sigmoid", "objective": "as_printed", "penalty": "mkl", "n_rules": 2, "p": 2}
    for name in ("gmkl", "clmkl", "lmkl", "smkl"):
        options = [o["name"] for o in METHODS[name]["info"]["options"]]
        told = {o: values[o] for o in options if o in values and o != "solver"} | {"C": 1}
        text = f"{name}({'; '.join(f'{k}={v}' for k, v in told.items())})"
        found = mercer.compare(X, y, [text], kernels="rbf(1), linear", repeats=1, grid="C=1", tol=1e-1)
        assert text.replace(" ", "") in found.index


def test_comparisons_ask_for_the_same_as_fits(binary):
    pytest.importorskip("pandas")
    X, y = binary
    asked = {"kernels": "rbf(1|2), linear on all, each", "grid": "C=1", "repeats": 2, "tol": 1e-2}
    plain = mercer.compare(X, y, ["gmkl"], **asked)
    grouped = mercer.compare(X, y, ["gmkl"], group_by="scope", **asked)
    weights = grouped.weights()
    assert not plain.weights().equals(weights)
    own = weights[weights["method"] == "gmkl"]
    assert (own["frequency"].groupby(own["kernel"].str.split(" on ").str[1]).nunique() == 1).all()
    for options in (
        {"fit_intercept": False},
        {"approx": "nystrom(5)"},
        {"class_weight": {0: 5.0}},
        {"penalties": [9.0] * 4 + [1.0] * 8},
        {"preprocess": "snv"},
    ):
        other = mercer.compare(X, y, ["gmkl"], **asked, **options)
        assert not other.weights().equals(plain.weights()), options
    for options in ({"storage": "dense"}, {"memory": "1G"}, {"missing": "mean"}, {"indefinite": "clip"}):
        other = mercer.compare(X, y, ["gmkl"], **asked, **options)
        assert list(other["mean"]) == list(plain["mean"]), options
    with pytest.raises(ValueError, match="storage"):
        mercer.compare(X, y, storage="disk")
    with pytest.raises(ValueError, match="class_weight"):
        mercer.compare(X, y, class_weight={"no such class": 2.0})


def test_several_classes_are_compared_as_they_are_fitted():
    pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    X[:, 0] += y
    asked = {"kernels": "rbf(1), linear", "grid": "C=1", "repeats": 1}
    plain, pairs, shared = (mercer.compare(X, y, ["gmkl"], **asked, **options) for options in ({}, {"multi_class": "ovo"}, {"shared_weights": True}))
    assert not plain.weights().equals(pairs.weights()) and not plain.weights().equals(shared.weights())


def test_all_leaves_out_what_cannot_serve_the_request(binary):
    pytest.importorskip("pandas")
    X, y = binary
    asked = {"kernels": "rbf(1), linear", "grid": "C=1", "repeats": 1, "tol": 1e-1, "max_iter": 3}
    found = mercer.compare(X, y, group_by="scope", **asked)
    assert {"single", "uniform", "gmkl", "smkl"} <= set(found.index) and not {"lmkl", "vcmkl"} & set(found.index)
    with pytest.raises(ValueError, match="group_by"):
        mercer.compare(X, y, ["lmkl"], group_by="scope", **asked)


def test_a_comparison_ends_on_time_and_goes_on_from_its_journal(binary, tmp_path):
    pytest.importorskip("pandas")
    X, y = binary
    asked = {"kernels": "rbf(1), linear", "grid": "C=1", "repeats": 2, "journal": tmp_path / "runs"}
    with pytest.raises(TimeoutError, match="max_time"):
        mercer.compare(X, y, ["gmkl"], max_time=1e-9, **asked)
    assert "gmkl" in mercer.compare(X, y, ["gmkl"], max_time=600, **asked).index
    with pytest.raises(ValueError, match="max_time"):
        mercer.compare(X, y, max_time=0)


def test_storage_is_kept_in_the_file(binary, tmp_path):
    X, y = binary
    fitted = mercer.GMKLClassifier("rbf(1), linear", storage="low-rank").fit(X, y)
    assert json.loads(fitted._model.info())["spec"]["storage"] == "low_rank"
    fitted.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.storage == "low-rank"
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ValueError, match="storage"):
        mercer.GMKLClassifier(storage="disk").fit(X, y)


def test_a_bank_is_shown_as_a_fit_prepares_it(binary):
    X, _ = binary
    y = (X[:, 0] > 0).astype(int)
    plain = mercer.diagnose(X, y, "rbf(1)")
    assert mercer.diagnose(X, y, "rbf(1)", preprocess="snv").alignment != plain.alignment
    rough = mercer.diagnose(X, y, "rbf(1)", approx="nystrom(3)", random_state=1)
    assert rough.effective_rank < plain.effective_rank
