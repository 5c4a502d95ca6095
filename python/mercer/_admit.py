"""What is refused before anything is read, with a word on what to pass instead: containers, dates, categories, masked cells."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
#: How the names of types begin, in pandas, polars and Arrow.
_CATEGORICAL = ("category", "categorical", "enum", "dictionary")
_TEMPORAL = ("date", "time", "duration", "period", "interval", "month_day")

_ENCODE = (
    "make it numbers first, one column of 0 and 1 per category, with sklearn.preprocessing.OneHotEncoder or "
    "pandas.get_dummies; categories that are themselves numbers or sequences are read after a conversion "
    "(in pandas .astype(float) or .astype(str))"
)
_COUNT = "convert to numbers first, such as days since a fixed day, (t - t.min()) / np.timedelta64(1, 'D'), or leave it out"


def admit(X: Any, what: str = "X") -> Any:
    """X itself, or an error that says what to pass instead. Of a masked array without masked cells, its data."""
    _refuse_containers(X, what)
    if isinstance(X, Mapping) or issparse(X):
        return X
    if isinstance(X, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(X)
        if masked.any():
            first = int(np.argwhere(masked)[0][0])
            raise ValueError(
                f"{what} has {int(masked.sum())} masked cells, the first in row {first}; masks are not read: fill the "
                "cells in with .filled(value), or leave those rows out"
            )
        X = X.data
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("m", "M") and not hasattr(X, "iloc"):
        raise ValueError(f"{what} holds dates or times ({X.dtype}), which are not numbers: {_COUNT}")
    for name, told, kind, column in _columns(X):
        _refuse_column(name, told, kind, column)
    return X


def targets(y: Any, what: str = "y", *, numeric: bool) -> Any:
    """y itself, refused where cells are masked, or where dates would be taken as numbers."""
    if isinstance(y, np.ma.MaskedArray):
        return admit(y, what) if numeric or y.dtype.kind not in "mM" or np.ma.getmaskarray(y).any() else y.data
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if numeric and kind in ("m", "M"):
        raise ValueError(f"{what} holds dates or times ({y.dtype}), which are not numbers: {_COUNT}")
    return y


def matrices(X: Any, n_train: int | None = None, kernels: int | None = None) -> Any:
    """Ready-made kernel values, refused where the kernels are a list or the first axis."""
    X = admit(X)
    listed = isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(one, "ndim", 0) == 2 for one in X)
    if listed:
        raise ValueError(
            f"precomputed kernels are one array with the kernels on the last axis, and X is a list of {len(X)} matrices: pass np.stack(X, axis=-1)"
        )
    shape = np.shape(X) if isinstance(X, np.ndarray) else ()
    if len(shape) != 3:
        return X
    training = shape[0] != shape[1] and shape[1] == shape[2]
    later = shape[1] != n_train and shape[2] == n_train and shape[0] == kernels
    if training if n_train is None else later:
        raise ValueError(
            f"precomputed kernels have the kernels on the last axis, and X of shape {shape} has them on the first: pass np.moveaxis(X, 0, -1)"
        )
    return X


def _refuse_containers(X: Any, what: str) -> None:
    # Looked up without asking the object: a data frame has its columns as attributes, and MuData walks its rows when NumPy does.
    has = {name: inspect.getattr_static(X, name, None) is not None for name in ("obs", "X", "mod")}
    kind = type(X).__name__
    if has["obs"] and has["mod"]:
        raise TypeError(f"{what} is of type {kind}, a container of views: pass them by name, {{name: a.X for name, a in data.mod.items()}}")
    if has["obs"] and has["X"]:
        raise TypeError(
            f"{what} is of type {kind}, a container: pass its matrix, data.X, or several of its parts as views by name, such "
            'as {"genes": data.X, "pca": data.obsm["X_pca"]}'
        )
    if kind == "LazyFrame":
        raise TypeError(f"{what} is of type LazyFrame, whose values are not computed yet: pass what its .collect() returns")


def _columns(X: Any) -> Iterator[tuple[str, str, str, Callable[[], Sequence[Any]]]]:
    """Name, type in words, NumPy's letter for it and values of the columns of a frame that are not plain numbers."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        series = not hasattr(X, "columns")
        names, types = ([X.name], [X.dtype]) if series else (X.columns, X.dtypes)
        for at, (name, dtype) in enumerate(zip(names, types, strict=True)):
            kind = getattr(dtype, "kind", "O")
            if kind not in "biuf" or str(dtype).startswith(_CATEGORICAL):
                yield str(name), str(dtype), kind, partial(list, X if series else X.iloc[:, at])
    elif hasattr(X, "get_columns"):
        for column in X.get_columns():
            yield column.name, str(column.dtype), "", column.to_list
    elif hasattr(X, "column_names") and hasattr(X, "column"):
        for at, name in enumerate(X.column_names):
            yield name, str(X.column(at).type), "", X.column(at).to_pylist
    elif isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2:
        for at in range(X.shape[1]):
            yield f"x{at + 1}", "object", "O", X[:, at].tolist


def _refuse_column(name: str, told: str, kind: str, values: Callable[[], Sequence[Any]]) -> None:
    word = told.lower()
    if word.startswith(_CATEGORICAL):
        raise ValueError(f"column `{name}` is categorical ({told}): {_ENCODE}")
    if kind in ("m", "M") or word.startswith(_TEMPORAL):
        raise ValueError(f"column `{name}` holds dates or times ({told}), which are not numbers: {_COUNT}")
    if kind != "O" or word != "object":
        return
    # Texts are read as sequences, or refused where no kernel reads them; numbers are numbers whatever the column's type.
    others = [v for v in values() if not isinstance(v, str)]
    if any(isinstance(v, _TIMES) for v in others):
        raise ValueError(f"column `{name}` holds dates or times, which are not numbers: {_COUNT}")
    present = [v for v in others if isinstance(v, Real) and v == v]
    if present and len(present) < len(others) and all(isinstance(v, (bool, np.bool_)) for v in present):
        raise ValueError(
            f"column `{name}` holds True, False and missing values: fill those in and convert it to numbers, in pandas "
            ".astype(float), or leave it out"
        )
