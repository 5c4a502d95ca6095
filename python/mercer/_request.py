"""Parameters in Python's words to the request in the core's words: one table for estimators, `compare` and `diagnose`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mercer import _params
from mercer._mercer import losses
from mercer.kernels import to_parts, to_text

LOSSES = tuple(name for name, _, _ in losses())
LOSSES_OF_CLASSES = tuple(name for name, classes, _ in losses() if classes)
LOSSES_OF_VALUES = tuple(name for name, _, values in losses() if values)
STORAGES = ("auto", "dense", "dense-f32", "low-rank")


def _bank(_: str, value: Any) -> str:
    return "precomputed" if to_parts(value) else to_text(value)


def _one_of(*words: Any, none: str) -> Callable[[str, Any], Any]:
    """One of `words`, or None, which the core calls `none`."""
    return lambda name, value: _params.choice(name, value, (*words, None)) or none


def _or_none(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else read(name, value)


#: Parameters that say one field of the request: the field, and what reads the value.
FIELDS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "kernels": ("kernels", _bank),
    "normalize": ("normalize", _one_of(*(n for n in _params.NORMALIZATIONS if n), none="none")),
    "standardize": ("standardize", _params.flag),
    "fit_intercept": ("fit_intercept", _params.flag),
    "group_by": ("group_by", _one_of("scope", none="none")),
    "penalties": ("penalties", _params.numbers),
    "preprocess": ("preprocess", _params.text),
    "missing": ("missing", _one_of("zero", "mean", none="refuse")),
    "indefinite": ("indefinite", _one_of("shift", "clip", "flip", none="refuse")),
    "epsilon": ("epsilon", _or_none(_params.number)),
    "scale_target": ("scale_target", _params.flag),
    "multi_class": ("multi_class", lambda name, value: _params.choice(name, value, ("ovr", "ovo"))),
    "shared_weights": ("shared_weights", _params.flag),
    "tol": ("tol", _params.number),
    "max_iter": ("max_iter", _params.count),
    "memory": ("memory", lambda _, value: _params.memory_bytes(value)),
    "approx": ("approx", lambda _, value: _params.approximation(value)),
    "storage": ("storage", lambda name, value: _params.choice(name, value, STORAGES).replace("-", "_")),
}

#: Parameters that say several fields, or need to know the rows.
OTHERS: dict[str, tuple[str, ...]] = {
    "C": ("c", "choose"),
    "loss": ("loss",),
    "class_weight": ("class_weight",),
    "random_state": ("approx_seed", "choose"),
}


def request(
    params: Mapping[str, Any], *, losses: Sequence[Any] = (*LOSSES, None), chooses_v: bool = False
) -> dict[str, Any]:
    """The core's `TrainSpec` from parameters by their names, less the method and what depends on y.

    Names that say nothing of the request (`n_jobs`, `verbose`, a method's own) are passed over, and fields that no name says keep the
    core's defaults.
    """
    told = {field: read(name, params[name]) for name, (field, read) in FIELDS.items() if name in params}
    if "loss" in params:
        told["loss"] = _params.choice("loss", params["loss"], losses)
    if "C" in params:
        told["c"], chosen = _params.price(params["C"])
        told["choose"] = chosen | {"v": chooses_v, "seed": _params.seed(params.get("random_state"))}
    if "random_state" in params:
        told["approx_seed"] = _params.seed(params["random_state"])
    return told


def class_weight(value: Any, classes: Iterable[Any]) -> dict[str, Any]:
    """What the request says of classes, once they are known."""
    return {"class_weight": _params.class_weights(value, list(classes))}
