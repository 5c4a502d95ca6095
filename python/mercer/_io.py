"""From a model file back to an estimator."""

from __future__ import annotations

import errno
import json
import math
import os
from functools import cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier

import mercer
from mercer import _mercer
from mercer._base import MKLBase


@cache
def estimators() -> dict[str, dict[str, type[MKLBase]]]:
    """The estimators of the package by the core's name of their method, and by what they predict."""
    found: dict[str, dict[str, type[MKLBase]]] = {}
    for name in mercer.__all__:
        kind: Any = getattr(mercer, name)
        if isinstance(kind, type) and issubclass(kind, MKLBase):
            default = cast(Any, kind)()
            task = "classification" if is_classifier(default) else "regression"
            found.setdefault(_name(default._method()), {})[task] = kind
    return found


def _name(method: dict[str, Any]) -> str:
    """The name in the catalogue of a method with its parameters."""
    return "hlmkl" if method.get("evenness") == "hard" else str(method["name"])


def load(path: str | os.PathLike[str]) -> Any:
    """Reads a model file written by `save` or by the program `mercer`.

    Returns the estimator that made it, fitted and ready to predict. Class labels are stored as texts; they come back as
    integers, floats or booleans where all of them read so and stay in order, else as texts.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    model = _mercer.Model.load(path)
    info = json.loads(model.info())
    spec = info["spec"]
    method = _name(spec["method"])
    kind = estimators().get(method, {}).get(info["task"])
    if kind is None:
        raise ValueError(f"{os.fspath(path)}: no estimator here for method {method!r} and {info['task']}")
    stored = parameters(spec) | ({"kernels": "precomputed"} if info["input"] == "precomputed" else {})
    estimator = kind(**{name: value for name, value in stored.items() if name in kind._get_param_names()})
    estimator._adopt(model)
    if info["task"] == "classification":
        estimator.classes_ = labels(info["classes"])
        estimator.class_weight = _class_weight(estimator.class_weight, info["classes"], estimator.classes_)
    columns = info["columns"]
    estimator.n_features_in_ = info["n_train"] if columns is None else len(columns)
    if columns is not None and columns != [f"x{j}" for j in range(1, len(columns) + 1)]:
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    return estimator


def labels(names: list[str]) -> np.ndarray:
    """Class labels from their texts."""
    if set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    for kind in (int, float):
        try:
            numbers = [kind(name) for name in names]
        except ValueError:
            continue
        # Out of order they were texts when they were sorted, and distinct texts must not become one number.
        if all(a < b for a, b in pairwise(numbers)):
            return np.array(numbers)
    return np.array(names)


#: Where the core has another word than the constructors.
_WORDS = {"c": "C", "seed": "random_state", "approx_seed": "random_state"}
_VALUES: dict[str, dict[Any, Any]] = {
    "normalize": {"none": None},
    "multi_class": {"one_vs_rest": "ovr", "one_vs_one": "ovo"},
    "p": {"inf": math.inf},
    "class_weight": {"none": None},
    "group_by": {"none": None},
    "missing": {"refuse": None},
    "indefinite": {"refuse": None},
    "preprocess": {"": None},
    "approx": {"none": None},
    "objective": {"as_printed": "as-printed"},
    "storage": {"dense_f32": "dense-f32", "low_rank": "low-rank"},
}
#: A null is a default of ours, unless None is a value users can give.
_OPTIONAL = (
    *("epsilon", "memory", "evenness", "v", "cluster_kernel", "gate_kernel", "regions", "groups"),
    *("nu", "gamma", "consensus", "p"),
)


def parameters(spec: dict[str, Any]) -> dict[str, Any]:
    """Constructor parameters from a request in the core's words; `class_weight` still has the core's class names."""
    told = {key: value for key, value in (spec | spec["method"]).items() if value is not None or key in _OPTIONAL}
    choose = spec.get("choose", {})
    told |= {key: "auto" for key in ("c", "v") if choose.get(key)} | ({"c": "scale"} if choose.get("scale") else {})
    left_out = {"name", "method", "choose"} | ({"approx_seed"} if told.get("approx") == "none" else set())
    plain = {key: value for key, value in told.items() if key not in left_out}
    return {_WORDS.get(key, key): _VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value for key, value in plain.items()}


def _class_weight(value: Any, names: list[str], classes: np.ndarray) -> Any:
    if isinstance(value, dict):
        by_name = dict(zip(names, classes.tolist(), strict=True))
        return {by_name.get(name, name): factor for name, factor in value["given"]}
    return value
