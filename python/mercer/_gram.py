"""Kernel values without a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _input, _mercer, _params
from mercer.kernels import Callable, to_text


def gram(X: Any, kernels: Any = "auto", Z: Any = None, *, normalize: str | None = None, n_jobs: int | None = None) -> np.ndarray:
    """Kernel values of the rows of X against the rows of Z, shape (n, m, M): what ``kernels="precomputed"`` takes.

    Parameters
    ----------
    X : array (n, d), data frame, list of str or dict of views
    kernels : str or list, default="auto"
        A bank in the kernel language, or a list of `mercer.kernels` objects.
    Z : like X, optional
        The training rows: automatic widths and the constants of `normalize` come from them. X itself where left out.
    normalize : {"multiplicative", "trace", "spherical", "center", None}, default=None
        How kernels are scaled.
    n_jobs : int or None, default=None
        Threads; None is one per core.

    Columns are taken as they are: nothing is standardised here.
    """
    return values(X, to_text(kernels), Z, normalize, n_jobs)[1]


def values(X: Any, told: str, Z: Any, normalize: str | None, n_jobs: int | None) -> tuple[list[str], np.ndarray]:
    """Kernel names and values, (n, m, M)."""
    scale = _params.choice("normalize", normalize, _params.NORMALIZATIONS) or "none"
    rows = _input.read_table(X)
    base = None if Z is None else _input.read_table(Z)
    if base is not None:
        columns, others = rows.columns, base.columns
        same_texts = rows.text_names() == base.text_names()
        same_columns = not columns or not others or columns == others
        width = [r.numbers.shape[1] + (r.sparse[0] if r.sparse else 0) for r in (rows, base)]
        if width[0] != width[1] or not same_columns or not same_texts:
            raise ValueError(f"X and Z must have the same columns, got {columns or rows.numbers.shape} and {others or base.numbers.shape}")
        rows.columns = base.columns = columns or others
        base.views = rows.views
    return _mercer.gram(rows, told, z=base, normalize=scale, n_threads=_params.n_threads(n_jobs))


def computed(parts: list[str | Callable], X: Any, Z: Any, n_jobs: int | None) -> tuple[list[str], np.ndarray]:
    """Names and values of texts and functions in turn, (n, m, M), not normalised."""
    names: list[str] = []
    blocks: list[np.ndarray] = []
    for part in parts:
        if isinstance(part, Callable):
            block = np.asarray(part(X, Z), dtype=np.float64)
            if block.ndim != 2:
                raise ValueError(f"kernel `{part.label}` must give an array (rows, rows), got shape {block.shape}")
            names.append(part.label)
            blocks.append(block[:, :, np.newaxis])
        else:
            found, block = values(X, part, None if X is Z else Z, None, n_jobs)
            names += found
            blocks.append(block)
    # Functions without a name of their own, such as two lambdas, are told apart by a number.
    names = [name if name not in names[:at] else f"{name} {names[: at + 1].count(name)}" for at, name in enumerate(names)]
    shapes = {block.shape[:2] for block in blocks}
    if len(shapes) > 1:
        raise ValueError(f"kernels must give values for the same rows, got shapes {sorted(shapes)}")
    return names, np.ascontiguousarray(np.concatenate(blocks, axis=2))
