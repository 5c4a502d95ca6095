"""What users pass as X, y and sample_weight: arrays, data frames, dicts of views, stacks of Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, check_X_y
from sklearn.utils.validation import validate_data

#: C order, because the core reads rows; NaN and infinities in a table are left to the core, which names the column.
_TABLE: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
_STACK: dict[str, Any] = {"dtype": np.float64, "order": "C", "allow_nd": True}


@dataclass
class Training:
    """Checked training data."""

    X: np.ndarray
    y: np.ndarray
    #: One per row, or None.
    weight: np.ndarray | None
    #: Column names, or None for an array.
    columns: list[str] | None = None
    #: (name, first column, one past the last).
    views: list[tuple[str, int, int]] | None = None


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any, *, precomputed: bool, numeric: bool) -> Training:
    """Checks X and y together and sets `n_features_in_` and `feature_names_in_` on the estimator."""
    columns = views = None
    rules: dict[str, Any] = {"y_numeric": numeric, "ensure_min_samples": 2}
    if precomputed:
        X, y = validate_data(estimator, X, y, **rules, **_STACK)
        X = _stack(X)
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed kernels must be square, shape (n, n) or (n, n, M), got {X.shape}")
    elif _is_views(X):
        X, columns, views = _join(X)
        X, y = check_X_y(X, y, estimator=estimator, **rules, **_TABLE)
        estimator.n_features_in_ = X.shape[1]
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    else:
        _refuse_text_columns(X)
        X, y = validate_data(estimator, X, y, **rules, **_TABLE)
        if hasattr(estimator, "feature_names_in_"):
            columns = [str(name) for name in estimator.feature_names_in_]
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError(f"column `{next(c for c in columns if columns.count(c) > 1)}` is there more than once")
    weight = _weights(sample_weight, X.shape[0])
    return Training(X, y, weight, columns, views)


def read_features(estimator: Any, X: Any) -> np.ndarray:
    """Checks new rows; columns come back in the order of the training data."""
    if not _is_views(X):
        _refuse_text_columns(X)
        return validate_data(estimator, X, reset=False, **_TABLE)
    X, columns, _ = _join(X)
    expected = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    missing = [name for name in expected if name not in columns]
    if missing or not expected or len(columns) != len(expected):
        raise ValueError(f"views with columns {expected} are expected, got {columns}")
    return np.ascontiguousarray(X[:, [columns.index(name) for name in expected]])


def read_table(X: Any) -> tuple[np.ndarray, list[str] | None, list[tuple[str, int, int]] | None]:
    """Checks a table that belongs to no estimator: numbers, column names and views."""
    if _is_views(X):
        return _join(X)
    _refuse_text_columns(X)
    names = list(getattr(X, "columns", []))
    columns = names if names and all(isinstance(name, str) for name in names) else None
    return check_array(X, input_name="X", **_TABLE), columns, None


def read_block(estimator: Any, X: Any) -> np.ndarray:
    """Checks kernel values between new rows and the training rows."""
    return _stack(validate_data(estimator, X, reset=False, **_STACK))


def _stack(X: np.ndarray) -> np.ndarray:
    if X.ndim == 2:
        X = X[:, :, np.newaxis]
    if X.ndim != 3 or X.shape[2] == 0:
        raise ValueError(f"precomputed kernels must have shape (rows, training rows, kernels), got {X.shape}")
    return np.ascontiguousarray(X)


def _is_views(X: Any) -> bool:
    # One of SciPy's sparse formats is a dict as well.
    return isinstance(X, Mapping) and not issparse(X)


def _join(views: Mapping[Any, Any]) -> tuple[np.ndarray, list[str], list[tuple[str, int, int]]]:
    """Views side by side; a column is named after its view and its own name or number."""
    blocks: list[np.ndarray] = []
    columns: list[str] = []
    ranges: list[tuple[str, int, int]] = []
    for view, block in views.items():
        if not isinstance(view, str) or not view:
            raise ValueError(f"names of views must be texts, got {view!r}")
        _refuse_text_columns(block)
        names = getattr(block, "columns", None)
        block = check_array(block, input_name=f"view {view}", **_TABLE)
        names = range(1, block.shape[1] + 1) if names is None else names
        ranges.append((view, len(columns), len(columns) + block.shape[1]))
        columns += [f"{view}.{name}" for name in names]
        blocks.append(block)
    if not blocks:
        raise ValueError("a dict of views needs at least one view")
    check_consistent_length(*blocks)
    return np.hstack(blocks), columns, ranges


def _refuse_text_columns(X: Any) -> None:
    """A data frame's columns must be numbers; says which one is not."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "iloc")):
        return
    for position, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        kind = getattr(dtype, "kind", "O")
        if kind in "biuf" or (kind == "O" and all(isinstance(v, Real) for v in X.iloc[:, position])):
            continue
        raise ValueError(f"column `{name}` is not numeric ({dtype}); encode it, or leave it out of X")


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} at row {int(weight.argmin())}")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    return weight
