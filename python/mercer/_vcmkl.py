"""Veto–consensus: the smallest of several rules decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from mercer import _mercer, _params
from mercer._base import MKLClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class VCMKLClassifier(MKLClassifier):
    """Classifier whose consensus class is the intersection of several rules: g(x) = min_m f_m(x).

    A sample belongs to the consensus class only if every rule agrees; one veto rejects it. With linear kernels the class is a
    convex polyhedron. `veto` tells which rule rejected a sample, and by how much.

    Minimises ½ Σ ‖w_m‖² + Σ c_i loss, where a sample of the consensus class pays its worst rule and any other sample only its
    cheapest. The problem is not convex: `status_` is "stationary" where no sample would change its rule, and
    `duality_gap_` is NaN, except for ``solver="exact"``, which proves the minimum of small problems ("optimal").

    One kernel serves all rules; as many kernels as rules give one each; any other bank is shared by all rules, with equal weights or
    with weights learned for each rule (`p`). More than two classes: one against the rest, each the consensus class in its turn.

    The other parameters are those of `GMKLClassifier`; `loss` is "hinge", and `fit_intercept`, `shared_weights`, `group_by` and
    `penalties` keep their defaults.

    Parameters
    ----------
    n_rules : int or "auto", default=3
        Rules; "auto" adds rules as long as cross-validation on the training rows gains by it.
    nu : float, list of float or None, default=None
        None: fixed margins, price C. Numbers: the paper's multi-ν form, one reward for all rules or one each; C is then without effect.
    gamma : float or None, default=None
        Share of the price for errors on the consensus class. None weighs both classes alike, errors at their costs:
        γ = n₋ / (n₋ + r n₊) with r = `cost_ratio`.
    cost_ratio : float, default=1.0
        Cost of a false positive (wrongly accepted into the consensus class) over that of a false negative.
    solver : {"ccp", "am", "sgd", "pddp", "exact"}, default="ccp"
        Descent over reassignments from several starts; one rule at a time; stochastic subgradients; the paper's parametric dual
        descent; branch and bound.
    objective : {"opt1", "as-printed"}, default="opt1"
        pddp: down the learning objective, or the paper's algorithm as printed, which climbs it.
    consensus : class label or None, default=None
        The consensus class of two; None is ``classes_[1]``.
    p : float or None, default=None
        Every rule learns weights of the whole bank with ‖θ_m‖_p ≤ 1; None learns none.
    n_init : int, default=3
        Starts of "ccp".
    folds : int, default=5
        Folds of ``n_rules="auto"``.

    Attributes
    ----------
    kernel_weights_ : array (rules, M), or (classes, rules, M)
        Weights of the kernels in every rule.
    intercept_, dual_coef_ : arrays over rules, one after another
    n_rules_ : int
        Rules per machine.
    rules_ : list of dict
        For every machine: its consensus class, quadratic programs solved, and for every rule its margin, the share of rejected samples it
        owns, and the shares between which ν lies: margin errors (`bounded`) and support vectors (`support`).
    """

    n_rules: int | str = 3
    nu: float | Sequence[float] | None = None
    gamma: float | None = None
    cost_ratio: float = 1.0
    solver: str = "ccp"
    objective: str = "opt1"
    consensus: Any = None
    p: float | None = None
    n_init: int = 3
    folds: int = 5

    def _method(self) -> dict[str, Any]:
        nu = self.nu
        if nu is not None:
            nu = _params.number("nu", nu) if np.isscalar(nu) else _params.numbers("nu", nu)
        rules = self.n_rules if self.n_rules == "auto" else self._count_of_rules()
        p: float | str | None = self.p
        if p is not None:
            p = "inf" if p == np.inf else _params.number("p", p)
        return {
            "name": "vcmkl",
            "n_rules": rules,
            "nu": nu,
            "gamma": None if self.gamma is None else _params.number("gamma", self.gamma),
            "cost_ratio": _params.number("cost_ratio", self.cost_ratio),
            "solver": _params.choice("solver", self.solver, ("ccp", "am", "sgd", "pddp", "exact")),
            "objective": _params.choice("objective", self.objective, ("opt1", "as-printed")).replace("-", "_"),
            "consensus": None if self.consensus is None else str(self.consensus),
            "p": p,
            "n_init": _params.count("n_init", self.n_init),
            "folds": _params.count("folds", self.folds),
            "seed": _params.seed(self.random_state),
        }

    def _count_of_rules(self) -> int:
        if not isinstance(self.n_rules, Integral):
            raise TypeError(f"parameter `n_rules` must be an integer or 'auto', got {self.n_rules!r}")
        return _params.count("n_rules", self.n_rules)

    def _adopt(self, model: _mercer.Model) -> None:
        super()._adopt(model)
        info = json.loads(model.info())
        self.rules_ = info["rules"]["machines"]
        self.n_rules_ = len(self.rules_[0]["rules"])
        weights = model.weights().reshape(len(self.rules_), self.n_rules_, -1)
        self.kernel_weights_ = weights[0] if len(self.rules_) == 1 else weights
        self.dual_coef_ = np.atleast_2d(self.dual_coef_)
        self.intercept_ = np.atleast_1d(self.intercept_)
        # The rules of a machine have one trace, which is the first one's.
        for record in self.trace_:
            if "machine" in record:
                record["machine"] //= self.n_rules_
        if len(self.rules_) == 1:
            for record in self.trace_:
                record.pop("machine", None)

    def rule_values(self, X: Any) -> np.ndarray:
        """f_m(x) of every rule: (n, rules), or (n, machines, rules); positive where a rule agrees, negative where it vetoes."""
        rows = self._rows(X)
        values = self._model.rule_values(**rows)
        values = values.reshape(len(values), len(self.rules_), self.n_rules_)
        return values[:, 0] if len(self.rules_) == 1 else values

    def veto(self, X: Any) -> np.ndarray:
        """Which rule rejects each sample, and by how much.

        Returns a structured array of shape (n,), or (n, machines): `rule` is the number of the strictest rule (0 is the first), or -1 where
        no rule vetoes; `amount` is -g(x), how far that rule is from agreeing (negative where all agree).
        """
        values = self.rule_values(X)
        strictest = values.argmin(axis=-1)
        amount = -values.min(axis=-1)
        out = np.empty(amount.shape, dtype=[("rule", np.intp), ("amount", float)])
        out["rule"] = np.where(amount >= 0, strictest, -1)
        out["amount"] = amount
        return out

    def _machine_labels(self) -> list[Any]:
        return self._machine_names
