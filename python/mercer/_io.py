"""From a model file back to an estimator."""

from __future__ import annotations

import errno
import json
import os
from itertools import pairwise
from typing import Any

import numpy as np

from mercer import _mercer
from mercer._base import MKLBase
from mercer._gmkl import GMKLClassifier, GMKLRegressor
from mercer._uniform import UniformMKLClassifier, UniformMKLRegressor

_ESTIMATORS: dict[tuple[str, str], type[MKLBase]] = {
    ("gmkl", "classification"): GMKLClassifier,
    ("gmkl", "regression"): GMKLRegressor,
    ("uniform", "classification"): UniformMKLClassifier,
    ("uniform", "regression"): UniformMKLRegressor,
}


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
    method = dict(spec["method"])
    key = (method.pop("name"), info["task"])
    if key not in _ESTIMATORS:
        raise ValueError(f"{os.fspath(path)}: no estimator here for method {key[0]!r} and {key[1]}")
    kind = _ESTIMATORS[key]
    stored = method | _parameters(spec) | ({"kernels": "precomputed"} if info["input"] == "precomputed" else {})
    if info["task"] == "classification":
        stored["class_weight"] = None  # filled in below, where the labels are known
    estimator = kind(**{name: value for name, value in stored.items() if name in kind._get_param_names()})
    estimator._adopt(model)
    if info["task"] == "classification":
        estimator.classes_ = labels(info["classes"])
        estimator.class_weight = _class_weight(spec.get("class_weight"), info["classes"], estimator.classes_)
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


def _parameters(spec: dict[str, Any]) -> dict[str, Any]:
    """Constructor parameters from the core's words."""
    names = {"c": "C"} | {n: n for n in ("kernels", "standardize", "loss", "epsilon", "tol", "max_iter", "memory")}
    found = {ours: spec[theirs] for theirs, ours in names.items() if theirs in spec}
    if "normalize" in spec:
        found["normalize"] = None if spec["normalize"] == "none" else spec["normalize"]
    # A null is a default of ours, unless None is a value users can give.
    optional = ("epsilon", "normalize", "memory")
    return {name: value for name, value in found.items() if value is not None or name in optional}


def _class_weight(value: Any, names: list[str], classes: np.ndarray) -> Any:
    if isinstance(value, dict):
        by_name = dict(zip(names, classes.tolist(), strict=True))
        return {by_name.get(name, name): factor for name, factor in value["given"]}
    return None if value == "none" else value
