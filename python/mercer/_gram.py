"""Kernel values without a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _input, _mercer, _params
from mercer._base import NORMALIZATIONS
from mercer.kernels import to_text


def gram(
    X: Any, kernels: Any = "auto", Z: Any = None, *, normalize: str | None = None, n_jobs: int | None = None
) -> np.ndarray:
    """Kernel values of the rows of X against the rows of Z, shape (n, m, M): what ``kernels="precomputed"`` takes.

    Parameters
    ----------
    X : array (n, d), data frame or dict of views
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
    told = to_text(kernels)
    scale = _params.choice("normalize", normalize, NORMALIZATIONS) or "none"
    rows, columns, views = _input.read_table(X)
    base = base_columns = None
    if Z is not None:
        base, base_columns, _ = _input.read_table(Z)
        if base.shape[1] != rows.shape[1] or (columns and base_columns and columns != base_columns):
            raise ValueError(
                f"X and Z must have the same columns, got {columns or rows.shape} and {base_columns or base.shape}"
            )
    threads = _params.n_threads(n_jobs)
    return _mercer.gram(
        rows, told, z=base, columns=columns or base_columns, views=views or [], normalize=scale, n_threads=threads
    )[1]
