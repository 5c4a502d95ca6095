"""Native half of the Python package `mercer`."""

import os
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Model",
    "compare",
    "compare_precomputed",
    "comparison_page",
    "diagnose",
    "diagnose_precomputed",
    "fit",
    "fit_precomputed",
    "gram",
    "methods",
    "parse_kernels",
    "version",
]

_Callback = Callable[[int, float, float, float, int, float], object]

@final
class Model:
    def __new__(cls, data: bytes) -> Model: ...
    @staticmethod
    def from_bytes(data: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def __reduce__(self) -> tuple[type[Model], tuple[bytes]]: ...
    def decision(
        self,
        x: NDArray[np.float64],
        columns: Sequence[str] | None = None,
        n_threads: int | None = None,
        texts: Sequence[tuple[str, Sequence[str]]] = ...,
        views: Sequence[tuple[str, int, int]] = ...,
        extras: dict[str, Any] | None = None,
        memberships: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]: ...
    def decision_precomputed(
        self,
        block: NDArray[np.float64],
        n_threads: int | None = None,
        memberships: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]: ...
    def places(
        self,
        x: NDArray[np.float64] | None = None,
        block: NDArray[np.float64] | None = None,
        columns: Sequence[str] | None = None,
        n_threads: int | None = None,
        texts: Sequence[tuple[str, Sequence[str]]] = ...,
        views: Sequence[tuple[str, int, int]] = ...,
        extras: dict[str, Any] | None = None,
        memberships: NDArray[np.float64] | None = None,
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]: ...
    def rule_values(
        self,
        x: NDArray[np.float64],
        columns: Sequence[str] | None = None,
        n_threads: int | None = None,
        texts: Sequence[tuple[str, Sequence[str]]] = ...,
        views: Sequence[tuple[str, int, int]] = ...,
        extras: dict[str, Any] | None = None,
    ) -> NDArray[np.float64]: ...
    def rule_values_precomputed(
        self, block: NDArray[np.float64], n_threads: int | None = None
    ) -> NDArray[np.float64]: ...
    def decide(self, decision: NDArray[np.float64]) -> NDArray[Any]: ...
    def class_scores(self, decision: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def probabilities(self, decision: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def weights(self) -> NDArray[np.float64]: ...
    def support(self) -> list[NDArray[np.int64]]: ...
    def dual_coef(self) -> list[NDArray[np.float64]]: ...
    def intercepts(self) -> NDArray[np.float64]: ...
    def info(self) -> str: ...

def fit(
    x: NDArray[np.float64],
    *,
    spec: str,
    columns: Sequence[str] | None = None,
    views: Sequence[tuple[str, int, int]] = ...,
    texts: Sequence[tuple[str, Sequence[str]]] = ...,
    extras: dict[str, Any] | None = None,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    region_labels: Sequence[int] | None = None,
    memberships: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
    callback: _Callback | None = None,
) -> Model: ...
def fit_precomputed(
    stack: NDArray[np.float64],
    *,
    spec: str,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    region_labels: Sequence[int] | None = None,
    memberships: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
    callback: _Callback | None = None,
) -> Model: ...
def diagnose(
    x: NDArray[np.float64],
    *,
    spec: str,
    columns: Sequence[str] | None = None,
    views: Sequence[tuple[str, int, int]] = ...,
    texts: Sequence[tuple[str, Sequence[str]]] = ...,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> str: ...
def diagnose_precomputed(
    stack: NDArray[np.float64],
    *,
    spec: str,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> str: ...
def compare(
    x: NDArray[np.float64],
    *,
    request: str,
    columns: Sequence[str] | None = None,
    views: Sequence[tuple[str, int, int]] = ...,
    texts: Sequence[tuple[str, Sequence[str]]] = ...,
    extras: dict[str, Any] | None = None,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
    callback: Callable[[str, float], object] | None = None,
) -> str: ...
def compare_precomputed(
    stack: NDArray[np.float64],
    *,
    request: str,
    codes: NDArray[np.int64] | None = None,
    class_names: Sequence[str] = ...,
    values: NDArray[np.float64] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
    callback: Callable[[str, float], object] | None = None,
) -> str: ...
def comparison_page(comparison: str, *, title: str, command: str, data: Sequence[tuple[str, str]]) -> str: ...
def gram(
    x: NDArray[np.float64],
    kernels: str,
    *,
    z: NDArray[np.float64] | None = None,
    columns: Sequence[str] | None = None,
    views: Sequence[tuple[str, int, int]] = ...,
    texts: Sequence[tuple[str, Sequence[str]]] = ...,
    z_texts: Sequence[tuple[str, Sequence[str]]] = ...,
    normalize: str = "none",
    n_threads: int | None = None,
) -> tuple[list[str], NDArray[np.float64]]: ...
def methods() -> str: ...
def parse_kernels(text: str) -> str: ...
def version() -> str: ...
