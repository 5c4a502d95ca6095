"""Equal weights: the baseline every other method has to beat."""

from __future__ import annotations

from typing import Any

from mercer._base import MKLClassifier, MKLRegressor
from mercer.kernels import Kernel


class _Uniform:
    def _method(self) -> dict[str, Any]:
        return {"name": "uniform"}


class UniformMKLClassifier(_Uniform, MKLClassifier):
    """One support vector machine on the average of all kernels.

    Parameters and attributes are those of `GMKLClassifier`, less `v`, `p` and `solver`; every weight is 1/M.
    """

    def __init__(
        self,
        kernels: str | Kernel | list[str | Kernel] = "auto",
        *,
        C: float = 1.0,
        loss: str = "hinge",
        normalize: str | None = "multiplicative",
        multi_class: str = "ovr",
        shared_weights: bool = False,
        class_weight: str | dict[Any, float] | None = None,
        standardize: bool = True,
        tol: float = 1e-3,
        max_iter: int = 500,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        memory: int | str | None = None,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.loss = loss
        self.normalize = normalize
        self.multi_class = multi_class
        self.shared_weights = shared_weights
        self.class_weight = class_weight
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.memory = memory


class UniformMKLRegressor(_Uniform, MKLRegressor):
    """One support vector or ridge regression on the average of all kernels.

    Parameters and attributes are those of `GMKLRegressor`, less `v`, `p` and `solver`; every weight is 1/M.
    """

    def __init__(
        self,
        kernels: str | Kernel | list[str | Kernel] = "auto",
        *,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        epsilon: float | None = None,
        normalize: str | None = "multiplicative",
        standardize: bool = True,
        tol: float = 1e-3,
        max_iter: int = 500,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        memory: int | str | None = None,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.normalize = normalize
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.memory = memory
