"""Sparse MKL by concave group selection terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer import _params
from mercer._base import MKLClassifier, MKLRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class _SMKL:
    # The scaling the method was made for, and the price that goes with it.
    C: float | str = "scale"
    normalize: str | None = "trace"
    penalty: str = "log+gl"
    eps: float = 1e-4

    def _method(self) -> dict[str, Any]:
        if not isinstance(self.penalty, str):
            raise TypeError(f"parameter `penalty` must be a text such as 'log+gl', got {self.penalty!r}")
        return {"name": "smkl", "penalty": self.penalty, "eps": _params.number("eps", self.eps)}


@dataclass(eq=False, repr=False, kw_only=True)
class SMKLClassifier(_SMKL, MKLClassifier):
    """Classifier that keeps fewer kernels than an L1 constraint does.

    Minimises C Σ loss(f(x_i) + b, y_i) + g(‖f_1‖², …, ‖f_M‖²) with a concave g, by solving a machine and updating the
    weights in turn. The problem is not convex: `status_` is "stationary" where the weights have settled (relative
    change at most `tol`), `dual_objective_` and `duality_gap_` are NaN, and `primal_objective_` is the value reached.

    Unlike the other methods this one has no scale law: kernels and C cannot be rescaled against each other, so that
    `normalize` is part of the model. Its default is the paper's, unit trace, with C as large as the number of rows
    (``C="scale"``). Below a threshold of C, which falls as rows are added, the best answer is to use no kernel at all:
    a warning then says what C to use.

    The other parameters and the attributes are those of `GMKLClassifier`. Weights need not add up to 1.

    Parameters
    ----------
    C : float, "auto" or "scale", default="scale"
        Price of the sum of losses. "scale": the number of rows with ``normalize="trace"``, else 1; `C_` tells which.
    normalize : {"multiplicative", "trace", "spherical", "center", None}, default="trace"
    penalty : str, default="log+gl"
        g as a sum of terms, each with an optional factor, such as ``"0.5*log + mf(0.5)"``: "log", "gl" (group lasso),
        "mf(p)" with 0 < p ≤ 1 (M-FOCUSS), "mkl" (alone, the L1 problem).
    eps : float, default=1e-4
        Added inside the logarithm of "log".
    """


@dataclass(eq=False, repr=False, kw_only=True)
class SMKLRegressor(_SMKL, MKLRegressor):
    """Regressor that keeps fewer kernels than an L1 constraint does.

    `C`, `normalize`, `penalty`, `eps` and what is said of the scale of C are as in `SMKLClassifier`; the other parameters and the
    attributes are those of `GMKLRegressor`.
    """
