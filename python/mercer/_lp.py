"""ℓp-norm MKL: ‖θ‖_p ≤ 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mercer import _params
from mercer._base import MKLClassifier, MKLRegressor

_SOLVERS = ("auto", "level", "alternating", "interior", "reduced_gradient", "silp")


@dataclass(eq=False, repr=False, kw_only=True)
class _Lp:
    p: float = 4 / 3
    solver: str = "auto"

    def _method(self) -> dict[str, Any]:
        # JSON has no infinity.
        endless = isinstance(self.p, float) and self.p == math.inf
        return {
            "name": "lp",
            "p": "inf" if endless else _params.number("p", self.p),
            "solver": _params.choice("solver", self.solver, _SOLVERS),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class LpMKLClassifier(_Lp, MKLClassifier):
    """Classifier that learns kernel weights θ ≥ 0 with ‖θ‖_p ≤ 1.

    The other parameters and the attributes are those of `GMKLClassifier`.

    Parameters
    ----------
    p : float, default=4/3
        At least 1. 1 keeps few kernels; the larger, the more alike the weights; ``math.inf`` gives every kernel the
        weight 1, which is `UniformMKLClassifier` with C M times larger.
    solver : {"auto", "level", "alternating", "interior", "reduced_gradient", "silp"}, default="auto"
        Roads to the same optimum: the level method, or machine and closed-form weights in turn; for p = 1 also the
        reduced gradient (SimpleMKL) and cutting planes alone (SILP). "auto" takes the level method for small p and
        alternation above.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class LpMKLRegressor(_Lp, MKLRegressor):
    """Regressor that learns kernel weights θ ≥ 0 with ‖θ‖_p ≤ 1.

    `p` and `solver` are those of `LpMKLClassifier`; the other parameters and the attributes those of `GMKLRegressor`.
    """
