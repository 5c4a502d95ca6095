"""What a bank of kernels looks like before anything is learned from it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from mercer import _admit, _input, _mercer, _params, _request
from mercer._gram import computed
from mercer.kernels import Precomputed, to_parts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; an entry per kernel, in the order of `kernel_names`."""

    kernel_names: list[str]
    #: Centred alignment with the target, from 0 to 1.
    alignment: np.ndarray
    #: Centred alignment of every two kernels, (M, M).
    between: np.ndarray
    #: Sum of the diagonal, after normalisation.
    trace: np.ndarray
    #: (Σ λ)² / Σ λ² over the eigenvalues of the centred matrix.
    effective_rank: np.ndarray
    #: Largest over smallest eigenvalue; inf where the smallest is lost in rounding.
    condition: np.ndarray
    warnings: list[str]

    def frame(self) -> pd.DataFrame:
        """One row per kernel, as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError as e:
            raise ImportError("frame() needs pandas: pip install pandas") from e
        columns = ("alignment", "trace", "effective_rank", "condition")
        index = pd.Index(self.kernel_names, name="kernel")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, index=index)


def diagnose(
    X: Any,
    y: Any,
    kernels: Any = "auto",
    *,
    normalize: str | None = "multiplicative",
    standardize: bool = True,
    preprocess: str | None = None,
    missing: str | None = None,
    indefinite: str | None = None,
    memory: int | str | None = None,
    approx: str | None = None,
    storage: str = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Diagnosis:
    """How each kernel aligns with y and with the others, its trace, effective rank and conditioning.

    Parameters
    ----------
    X : array (n, d), data frame, list of str, dict of views, or array (n, n, M) with ``kernels="precomputed"``
    y : array (n,)
        Classes (texts, booleans, or integers) or values.
    kernels : str, kernel object, function, or a list of these, default="auto"
    normalize : {"multiplicative", "trace", "spherical", "center", None}, default="multiplicative"
        How kernels are scaled; alignment and effective rank do not depend on the scale.
    standardize : bool, default=True
        Bring numeric columns to mean 0 and deviation 1, as a fit does.
    preprocess, missing, indefinite, memory, approx, storage, random_state
        As for `GMKLClassifier`: what a fit does with columns, views and matrices before it learns, and how kernels are stored.
    n_jobs : int or None, default=None
        Threads; None is one per core.
    """
    parts = to_parts(kernels)
    ready = isinstance(kernels, Precomputed) or (isinstance(kernels, str) and kernels == "precomputed")
    asked = {
        "kernels": "auto" if ready or parts else kernels,
        "normalize": normalize,
        "standardize": standardize,
        "preprocess": preprocess,
        "missing": missing,
        "indefinite": indefinite,
        "memory": memory,
        "approx": approx,
        "storage": storage,
        "random_state": random_state,
    }
    spec = json.dumps(_request.request(asked))
    y = np.asarray(y)
    names = None
    if type_of_target(y) == "continuous":
        answers = _input.Answers.numbers(y)
    else:
        classes, codes = np.unique(y, return_inverse=True)
        answers = _input.Answers.classes(codes, classes)
    if ready or parts:
        if parts:
            names, X = computed(parts, X, X, n_jobs)
        rows: Any = _input.finite(_input.stack(np.asarray(_admit.matrices(X), dtype=np.float64)))
    else:
        rows = _input.read_table(X)
    told = _mercer.diagnose(rows, answers, spec=spec, n_threads=_params.n_threads(n_jobs))
    found = json.loads(told)
    columns_of = {key: [kernel[key] for kernel in found["kernels"]] for key in found["kernels"][0]}
    return Diagnosis(
        kernel_names=names or columns_of["name"],
        alignment=np.array(columns_of["alignment"]),
        between=np.array(found["between"]),
        trace=np.array(columns_of["trace"]),
        effective_rank=np.array(columns_of["effective_rank"]),
        condition=np.array([math.inf if c is None else c for c in columns_of["condition"]]),
        warnings=found["warnings"],
    )
