"""One-shot weights from alignments with the target: baselines that cost no outer loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer._base import MKLClassifier, MKLRegressor


class _Align:
    def _method(self) -> dict[str, Any]:
        return {"name": "align"}


class _AlignF:
    def _method(self) -> dict[str, Any]:
        return {"name": "alignf"}


@dataclass(eq=False, repr=False, kw_only=True)
class AlignMKLClassifier(_Align, MKLClassifier):
    """Each kernel weighted by its own centred alignment with the classes, then one machine.

    Parameters and attributes are those of `GMKLClassifier`, less `v`, `p` and `solver`; weights sum to 1.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class AlignMKLRegressor(_Align, MKLRegressor):
    """Each kernel weighted by its own centred alignment with y yᵀ, then one support vector or ridge regression.

    Parameters and attributes are those of `GMKLRegressor`, less `v`, `p` and `solver`; weights sum to 1.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class AlignFMKLClassifier(_AlignF, MKLClassifier):
    """The non-negative combination of kernels with the largest centred alignment with the classes, then one machine.

    Parameters and attributes are those of `GMKLClassifier`, less `v`, `p` and `solver`; weights sum to 1.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class AlignFMKLRegressor(_AlignF, MKLRegressor):
    """The non-negative combination of kernels with the largest centred alignment with y yᵀ, then one regression.

    Parameters and attributes are those of `GMKLRegressor`, less `v`, `p` and `solver`; weights sum to 1.
    """
