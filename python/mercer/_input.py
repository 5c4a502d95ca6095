"""What users pass as X, y and sample_weight: arrays, sparse matrices, data frames, dicts of views, stacks of Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.utils import check_array, check_consistent_length, check_X_y
from sklearn.utils.validation import validate_data

from mercer._admit import admit, matrices, targets

#: C order, because the core reads rows; NaN and infinities in a table are left to the core, which names the column.
_TABLE: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
_SPARSE: dict[str, Any] = {"dtype": np.float64, "accept_sparse": "csr"}
_STACK: dict[str, Any] = {"dtype": np.float64, "order": "C", "allow_nd": True}


#: Columns of texts: their names and a text per row.
Texts = list[tuple[str, list[str]]]


@dataclass(frozen=True)
class GramView:
    """A view of ready-made kernel values, for a dict of views: (n, n) in `fit`, (n_new, n) later, read by ``precomputed(name)``.

    >>> X = {"age": ages, "alignment": GramView(scores)}       # doctest: +SKIP
    >>> GMKLClassifier("rbf(auto) on view(age); precomputed(alignment)").fit(X, y)   # doctest: +SKIP
    """

    values: Any


@dataclass
class Rows:
    """Rows of features, as the native half reads them."""

    numbers: np.ndarray
    #: Names of the columns of numbers, or None for an array.
    columns: list[str] | None = None
    #: (name, first column, one past the last).
    views: list[tuple[str, int, int]] = field(default_factory=list)
    #: Sequences beside the numbers.
    texts: Texts = field(default_factory=list)
    #: Views of ready-made kernel values.
    grams: list[str] = field(default_factory=list)
    #: Views with the rows that have nothing in them.
    absent: list[tuple[str, list[int]]] = field(default_factory=list)
    #: Sparse columns after the others: number of columns, row starts, columns, values.
    sparse: tuple[int, list[int], list[int], list[float]] | None = None

    def text_names(self) -> list[str]:
        """Names of the columns of text."""
        return [name for name, _ in self.texts]


@dataclass
class Answers:
    """What is to be learned, as the native half reads it: codes of classes with their names, or values."""

    codes: np.ndarray | None = None
    class_names: list[str] = field(default_factory=list)
    values: np.ndarray | None = None

    @classmethod
    def classes(cls, codes: np.ndarray, labels: Any) -> Answers:
        """Classes, by their positions among the labels."""
        return cls(codes=codes.astype(np.int64), class_names=[str(label) for label in labels])

    @classmethod
    def numbers(cls, y: np.ndarray) -> Answers:
        """Values."""
        return cls(values=np.ascontiguousarray(y, dtype=np.float64))


@dataclass
class Training:
    """Checked training data."""

    #: Rows, or kernel values with the kernel axis last.
    X: Rows | np.ndarray
    y: np.ndarray
    #: One per row, or None.
    weight: np.ndarray | None


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any, *, precomputed: bool, numeric: bool) -> Training:
    """Checks X and y together and sets `n_features_in_` and `feature_names_in_` on the estimator."""
    X, y = _grouped(matrices(X) if precomputed else admit(X)), targets(y, numeric=numeric)
    rules: dict[str, Any] = {"y_numeric": numeric, "ensure_min_samples": 2}
    if precomputed:
        # Whether all numbers are finite is seen when they are read.
        X, y = validate_data(estimator, X, y, **rules, **_STACK, ensure_all_finite=False)
        X = stack(X)
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed kernels must be square, shape (n, n) or (n, n, M), got {X.shape}")
        return Training(X, y, _weights(sample_weight, X.shape[0]))
    if _is_views(X) or _has_text(X):
        rows = _join(X) if _is_views(X) else _split(X)
        rows.numbers, y = check_X_y(
            rows.numbers, y, estimator=estimator, **rules, **_TABLE, ensure_min_features=0 if rows.texts or rows.sparse else 1
        )
        names = [*(rows.columns or []), *rows.text_names()]
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif issparse(X):
        X, y = validate_data(estimator, X, y, **rules, **_SPARSE)
        rows = _sparse(X)
    else:
        _refuse_odd_columns(X)
        X, y = validate_data(estimator, X, y, **rules, **_TABLE)
        rows = Rows(X)
        if hasattr(estimator, "feature_names_in_"):
            rows.columns = [str(name) for name in estimator.feature_names_in_]
    names = [*(rows.columns or []), *rows.text_names()]
    if len(set(names)) < len(names):
        raise ValueError(f"column `{next(c for c in names if names.count(c) > 1)}` is there more than once")
    return Training(rows, y, _weights(sample_weight, rows.numbers.shape[0]))


def read_computed(estimator: Any, X: Any, values: np.ndarray, y: Any, sample_weight: Any, *, numeric: bool) -> Training:
    """Training data whose kernel values are at hand: X itself is checked by the functions that computed them."""
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"kernels of the training rows must be square, got {values.shape[:2]}")
    y = targets(y, numeric=numeric)
    _, y = check_X_y(np.zeros((values.shape[0], 1)), y, estimator=estimator, y_numeric=numeric, ensure_min_samples=2)
    shape = getattr(X, "shape", (values.shape[0], 1))
    estimator.n_features_in_ = shape[1] if len(shape) > 1 else 1
    return Training(finite(values), y, _weights(sample_weight, values.shape[0]))


def finite(values: np.ndarray) -> np.ndarray:
    """Kernel values without NaN or infinity."""
    if not np.isfinite(values).all():
        raise ValueError("kernel values must be finite numbers")
    return values


def read_features(estimator: Any, X: Any) -> Rows:
    """Checks new rows; numeric columns come back in the order of the training data, texts with their names."""
    X = _grouped(admit(X))
    views = _is_views(X)
    count = len(estimator._columns) - estimator._n_texts
    numbers, wanted = estimator._columns[:count], estimator._columns[count:]
    if issparse(X):
        rows = _sparse(validate_data(estimator, X, reset=False, **_SPARSE))
        rows.columns = numbers
        return rows
    if not views and not estimator._n_texts:
        _refuse_odd_columns(X)
        return Rows(validate_data(estimator, X, reset=False, **_TABLE), numbers)
    rows = _join(X) if views else _split(X)
    columns, given = rows.columns or [], dict(rows.texts)
    if len(wanted) == len(rows.texts) == 1 and not columns and not numbers:
        given = {wanted[0]: rows.texts[0][1]}
    if set(columns) != set(numbers) or set(given) != set(wanted):
        kind = "views" if views else "a frame"
        expected = f"{kind} with columns {numbers}" + (f" and columns of text {wanted}" if wanted else "")
        raise ValueError(f"{expected} expected, got {columns}" + (f" and of text {list(given)}" if given else ""))
    rows.texts = [(name, given[name]) for name in wanted]
    if rows.sparse:
        # The model finds its columns by name; a frame or an array has none that are sparse.
        return rows
    place = {name: at for at, name in enumerate(columns)}
    rows.numbers = np.ascontiguousarray(rows.numbers[:, [place[name] for name in numbers]])
    at = {name: k for k, name in enumerate(numbers)}
    # Views may have come in another order.
    rows.views = [(view, at[columns[start]], at[columns[start]] + end - start) for view, start, end in rows.views]
    rows.columns = numbers
    return rows


def read_table(X: Any) -> Rows:
    """Checks a table that belongs to no estimator."""
    X = _grouped(admit(X))
    if _is_views(X):
        rows = _join(X)
        if rows.grams or rows.absent:
            raise ValueError("views must hold features, without missing rows and without ready-made kernel values")
        return rows
    if _has_text(X):
        return _split(X)
    _refuse_odd_columns(X)
    names = list(getattr(X, "columns", []))
    columns = names if names and all(isinstance(name, str) for name in names) else None
    return Rows(check_array(X, input_name="X", **_TABLE), columns)


def read_block(estimator: Any, X: Any) -> np.ndarray:
    """Checks kernel values between new rows and the training rows."""
    X = matrices(X, estimator.n_features_in_, len(estimator.kernel_names_))
    # Whether all numbers are finite is seen when they are read.
    return stack(validate_data(estimator, X, reset=False, **_STACK, ensure_all_finite=False))


def stack(X: np.ndarray) -> np.ndarray:
    """Kernel values with the kernel axis last."""
    if X.ndim == 2:
        X = X[:, :, np.newaxis]
    if X.ndim != 3 or X.shape[2] == 0:
        raise ValueError(f"precomputed kernels must have shape (rows, training rows, kernels), got {X.shape}")
    return np.ascontiguousarray(X)


def _is_views(X: Any) -> bool:
    # One of SciPy's sparse formats is a dict as well.
    return isinstance(X, Mapping) and not issparse(X)


def _grouped(X: Any) -> Any:
    """A data frame with two levels of columns is a dict of views: the upper level names them."""
    if hasattr(X, "iloc") and getattr(getattr(X, "columns", None), "nlevels", 1) == 2:
        return {str(name): X[name] for name in X.columns.get_level_values(0).unique()}
    return X


def _sparse(X: Any) -> Rows:
    """No dense columns, and the entries that are not zero."""
    return Rows(np.empty((X.shape[0], 0)), sparse=_entries(X))


def _entries(X: Any) -> tuple[int, list[int], list[int], list[float]]:
    X = X.copy()
    X.sum_duplicates()
    X.sort_indices()
    return X.shape[1], X.indptr.tolist(), X.indices.tolist(), X.data.tolist()


def _join(views: Mapping[Any, Any]) -> Rows:
    """Views side by side; a column is named after its view and its own name or number, a view of texts after itself."""
    joined = Rows(np.empty((0, 0)))
    blocks: list[Any] = []
    columns: list[str] = []
    names: Any
    #: Sparse views, which stand after all others.
    sparse: list[tuple[str, Any]] = []
    for view, block in views.items():
        if not isinstance(view, str) or not view:
            raise ValueError(f"names of views must be texts, got {view!r}")
        if isinstance(block, GramView):
            joined.grams.append(view)
            block = np.asarray(admit(block.values, f"view {view}"))
        block = admit(block, f"view {view}")
        if issparse(block):
            block = check_array(block, input_name=f"view {view}", **_SPARSE)
            sparse.append((view, block))
            blocks.append(np.empty((block.shape[0], 0)))
            continue
        if _has_text(block):
            split = _split(block)
            numbers, names = split.numbers, split.columns or []
            whole = not names and len(split.texts) == 1
            joined.texts += [(view if whole else f"{view}.{name}", column) for name, column in split.texts]
        else:
            _refuse_odd_columns(block)
            names = getattr(block, "columns", None)
            numbers = check_array(block, input_name=f"view {view}", **_TABLE)
            names = range(1, numbers.shape[1] + 1) if names is None else names
            absent = np.flatnonzero(np.isnan(numbers).all(axis=1))
            if len(absent):
                # A row without a number is a row without this view; what stands there is not read.
                numbers = numbers.copy()
                numbers[absent] = 0.0
                joined.absent.append((view, absent.tolist()))
        if numbers.shape[1]:
            joined.views.append((view, len(columns), len(columns) + numbers.shape[1]))
        columns += [f"{view}.{name}" for name in names]
        blocks.append(numbers)
    if not blocks:
        raise ValueError("a dict of views needs at least one view")
    check_consistent_length(*blocks)
    joined.numbers, joined.columns = np.hstack(blocks), columns
    for view, block in sparse:
        joined.views.append((view, len(columns), len(columns) + block.shape[1]))
        columns += [f"{view}.{j}" for j in range(1, block.shape[1] + 1)]
    if sparse:
        joined.sparse = _entries(hstack([block for _, block in sparse], format="csr"))
    return joined


def _columns_of(X: Any) -> list[tuple[str, Any]] | None:
    """Names and columns of a frame (pandas, polars, Arrow), of a list or array of texts; None for anything else."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        if not hasattr(X, "columns"):
            return [(str(X.name) if X.name is not None else "sequence", X)]
        return [(str(name), X.iloc[:, at]) for at, name in enumerate(X.columns)]
    if hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return [(name, X.column(at)) for at, name in enumerate(X.column_names)]
    if isinstance(X, (list, tuple)) and X and all(isinstance(v, str) for v in X):
        return [("sequence", X)]
    if hasattr(X, "to_list") and len(getattr(X, "shape", ())) == 1:
        return [(getattr(X, "name", None) or "sequence", X)]
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUT" and X.ndim in (1, 2):
        return [("sequence", X)] if X.ndim == 1 else [(f"x{j + 1}", X[:, j]) for j in range(X.shape[1])]
    return None


def _values(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return list(column)


def _is_text(column: Any) -> bool:
    """Are its values texts, or texts and missing ones?"""
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "biufcmM":
        return False
    values = _values(column)
    return any(isinstance(v, str) for v in values) and all(isinstance(v, str) or _is_missing(v) for v in values)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def _has_text(X: Any) -> bool:
    if hasattr(X, "dtypes") and hasattr(X, "columns") and all(getattr(t, "kind", "O") in "biuf" for t in X.dtypes):
        return False
    return any(_is_text(column) for _, column in _columns_of(X) or [])


def _split(X: Any) -> Rows:
    """Numbers and texts of what has named columns."""
    found = _columns_of(X) or []
    texts: Texts = []
    numbers: list[np.ndarray] = []
    names: list[str] = []
    for name, column in found:
        values = _values(column)
        if not _is_text(column):
            block = np.asarray(values, dtype=object).reshape(-1, 1)
            if not all(isinstance(v, Real) or _is_missing(v) for v in values):
                raise ValueError(f"column `{name}` holds neither numbers nor texts; encode it as numbers, or leave it out of X")
            numbers.append(check_array(block, input_name=f"column {name}", **_TABLE))
            names.append(name)
            continue
        missing = next((row for row, v in enumerate(values) if not isinstance(v, str)), None)
        if missing is not None:
            raise ValueError(f"column `{name}`: row {missing} has no text; fill it in or drop the row")
        texts.append((name, [str(v) for v in values]))
    rows = len(texts[0][1]) if texts else 0
    return Rows(np.hstack(numbers) if numbers else np.empty((rows, 0)), names, texts=texts)


def _refuse_odd_columns(X: Any) -> None:
    """A data frame's columns must be numbers; says which one is not."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "iloc")):
        return
    for position, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        kind = getattr(dtype, "kind", "O")
        if kind in "biuf" or (kind == "O" and all(isinstance(v, Real) for v in X.iloc[:, position])):
            continue
        raise ValueError(f"column `{name}` is not numeric ({dtype}); encode it as numbers, or leave it out of X")


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    sample_weight = targets(sample_weight, "sample_weight", numeric=True)
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min()} in row {int(weight.argmin())}")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    return weight
