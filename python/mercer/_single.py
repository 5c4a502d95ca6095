"""The best single kernel by cross-validation: the support vector machine as most people use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer import _params
from mercer._base import Mixin, MKLClassifier, MKLRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class _Single(Mixin):
    folds: int = 5

    def _method(self) -> dict[str, Any]:
        seed = _params.seed(self.random_state)
        return {"name": "single", "folds": _params.count("folds", self.folds), "seed": seed}


@dataclass(eq=False, repr=False, kw_only=True)
class SingleKernelClassifier(_Single, MKLClassifier):
    """One machine on the kernel that does best in cross-validation on the training rows.

    The kernel chosen has weight 1, all others 0. The other parameters and the attributes are those of
    `GMKLClassifier`; the certificate is the machine's own.

    Parameters
    ----------
    folds : int, default=5
        Folds of the cross-validation.
    random_state : int, RandomState or None, default=None
        Seed of the folds; None is 0, so that a fit repeated is the same fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class SingleKernelRegressor(_Single, MKLRegressor):
    """One regression on the kernel that does best in cross-validation on the training rows.

    `folds` and `random_state` are those of `SingleKernelClassifier`; the rest is as in `GMKLRegressor`.
    """
