"""Equal weights: the baseline every other method has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._base import MKLClassifier, MKLRegressor


class _Uniform:
    def _method(self) -> dict[str, Any]:
        return {"name": "uniform"}


@dataclass(eq=False, repr=False, kw_only=True)
class UniformMKLClassifier(_Uniform, MKLClassifier):
    """One machine on the average of all kernels.

    Parameters and attributes are those of `GMKLClassifier`, less `v`, `p` and `solver`; every weight is 1/M.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class UniformMKLRegressor(_Uniform, MKLRegressor):
    """One support vector or ridge regression on the average of all kernels.

    Parameters and attributes are those of `GMKLRegressor`, less `v`, `p` and `solver`; every weight is 1/M.
    """
