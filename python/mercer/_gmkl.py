"""Generalised MKL: the elastic-net constraint v Σθ + (1−v) Σθ^p ≤ 1 on kernel weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mercer import _params
from mercer._base import Mixin, MKLClassifier, MKLRegressor

_SOLVERS = ("auto", "level", "alternating", "interior")


@dataclass(eq=False, repr=False, kw_only=True)
class _GMKL(Mixin):
    v: float | str = 0.5
    p: float = 2.0
    solver: str = "auto"

    def _chooses_v(self) -> bool:
        return _params.number_or_auto("v", self.v, 0.5)[1]

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        self.v_ = json.loads(model.info())["spec"]["method"]["v"]

    def _method(self) -> dict[str, Any]:
        return {
            "name": "gmkl",
            "v": _params.number_or_auto("v", self.v, 0.5)[0],
            "p": _params.number("p", self.p),
            "solver": _params.choice("solver", self.solver, _SOLVERS),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class GMKLClassifier(_GMKL, MKLClassifier):
    """Classifier that learns which kernels matter, under an elastic-net constraint.

    Minimises C Σ loss(f(x_i) + b, y_i) + ½ Σ ‖f_m‖² / θ_m over f = Σ f_m, b and weights θ ≥ 0 with
    v Σθ + (1−v) Σθ^p ≤ 1, and proves how close it came: `duality_gap_`.

    Parameters
    ----------
    kernels : str or list, default="auto"
        A bank in the kernel language, such as ``"rbf(2^-3..2^6), poly(1..3) on all, each"``; a list of
        `mercer.kernels` objects; ``"auto"``, Gaussians around the median distance and polynomials of degree 1 to 3 on all
        columns and, while there are at most 100, a Gaussian of one standard deviation on each; or ``"precomputed"`` for X
        of shape (n, n, M).
    C : float, "auto" or "scale", default=1.0
        Price of the sum of losses. "scale" is 1, or the number of rows with ``normalize="trace"``, whose kernels are that many
        times smaller. "auto" takes the best of a few by cross-validation on the training rows: 5 folds (fewer
        where a class has fewer rows), accuracy or root mean squared error; `C_` tells which.
    v : float or "auto", default=0.5
        Between 0 (every useful kernel gets weight) and 1 (few do); "auto" as for C, see `v_`.
    p : float, default=2.0
        Exponent of the second term, at least 1.
    solver : {"auto", "level", "alternating", "interior"}, default="auto"
        Roads to the same optimum; "auto" is "level".
    loss : {"hinge", "squared_hinge", "logistic", "squared"}, default="hinge"
        max(0, 1 − y f), ½ max(0, 1 − y f)², log(1 + exp(−y f)) or ½ (f − y)², with y = ±1. `predict_proba` exists with
        "logistic" only.
    normalize : {"multiplicative", "trace", "spherical", "center", None}, default="multiplicative"
        How base kernels are scaled. "multiplicative" gives each unit variance in its feature space.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes: a machine for each against the rest, or for each pair.
    shared_weights : bool, default=False
        One weight vector for all machines, minimising the sum of their objectives; else each machine has its own.
    class_weight : None, "balanced" or dict, default=None
        Factors on C per class label.
    standardize : bool, default=True
        Bring columns to mean 0 and deviation 1, by the training rows. Off for precomputed kernels.
    fit_intercept : bool, default=True
        Is there a constant term?
    group_by : {"scope", None}, default=None
        "scope": kernels on the same columns share one weight, so that a feature, band or view enters or leaves whole.
    penalties : list of float or None, default=None
        One positive number per kernel, in the order of `kernel_names_`; the constraint is then on their products with
        the weights, so that a kernel with a larger number is dearer.
    preprocess : str or None, default=None
        Steps on ordered columns such as spectra, done before anything else and again on new rows: ``"average(5), snv"``,
        ``"difference(2, keep) on view(nir)"``.
    missing : {"zero", "mean", None}, default=None
        Rows that have nothing in a view (NaN in all of its columns): their kernel values are imputed in feature space. None refuses them.
    indefinite : {"shift", "clip", "flip", None}, default=None
        What becomes of ready-made kernels with negative eigenvalues. None refuses them.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=500
        Outer iterations at most.
    random_state : int, RandomState or None, default=None
        Of the folds where C or v is "auto", and of the landmarks or frequencies of `approx`; nothing else here is random.
    n_jobs : int or None, default=None
        Threads; None is one per core, and a single one inside joblib's workers. The result does not depend on it.
    verbose : int, default=0
        Above 0, a line per iteration.
    memory : int, str or None, default=None
        Memory budget for kernel matrices in bytes, or a text such as "4G" (4·2³⁰); None is half the machine's memory.
    approx : str or None, default=None
        What stands in for every kernel, at a fixed rank: "nystrom(r)" with r landmark rows drawn at random (any kernel), or
        "rff(r)" with r random Fourier features (`rbf`, `laplace`; others only where r exact features suffice). The fit is
        certified for these kernels, new rows are mapped alike, and `approximation_error_` tells how far off they are.
    storage : {"auto", "dense", "dense-f32", "low-rank"}, default="auto"
        How kernel matrices are stored: "auto" takes what is cheapest and fits into `memory`, kernel by kernel.
    max_time : float or None, default=None
        Seconds after which the fit ends with its best model so far, after the iteration it is in; `status_` is then "stopped".
        They count from the start of the native fit, the search for C or v and the building of kernels included.
    callback : function or None, default=None
        Called after every iteration with a dict: iteration, objective, dual, gap, active, seconds; machine (from 0) and name,
        the class or pair that the iteration belongs to (None where one machine is fitted); fold, (k, of how many) where the
        fit only ranks settings for "auto", else None. `True` ends the fit with its best model so far; an exception is raised
        by `fit`. A clone calls the same function.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raises `KeyboardInterrupt` at once, or ends the fit with its best model so far (a second Ctrl-C is
        raised).

    Attributes
    ----------
    kernel_weights_ : array (M,), or (machines, M)
        Weights of the normalised kernels; exact zeros are kernels left out. With more than two classes a row per
        machine (a class, or a pair in the order (0, 1), (0, 2), …), unless `shared_weights`.
    kernel_names_ : list of str
        What each weight belongs to.
    support_ : array of int
        Training rows with a non-zero multiplier (in any machine).
    dual_coef_ : array (n_support,), or (machines, n_support)
        Their signed multipliers.
    intercept_ : float, or array (machines,)
        Constant term.
    C_, v_ : float
        The values used: those given, or those found.
    primal_objective_, dual_objective_ : float
        Upper and lower bound on the optimum; with several machines, of the sum of their objectives.
    duality_gap_ : float
        Their difference relative to their size.
    status_ : str
        "optimal" (gap at most tol), "max_iterations" or "stopped" (by `max_time`, `callback` or Ctrl-C); with several machines,
        the worst.
    n_iter_ : int
        Outer iterations; with several machines, the sum.
    trace_ : list of dict
        One record per iteration: iteration, objective, dual, gap, active, seconds; also machine, where machines were
        fitted one by one.
    approximation_error_ : dict of arrays (M,)
        Only with `approx`. Landmarks: "trace", the share of each kernel's trace that is lost on the training rows, exactly.
        Fourier features: "rms", the root mean square of their errors in k(x, z), estimated from 2,000 random pairs of
        training rows, with its "standard_error", and the "largest" error seen. Both before kernels are scaled.
    warnings_ : list of str
        What else should be known: each is also a `UserWarning`.
    classes_ : array
        Class labels.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where X had column names.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GMKLRegressor(_GMKL, MKLRegressor):
    """Regressor that learns which kernels matter, under an elastic-net constraint.

    The problem, the other parameters and the attributes are those of `GMKLClassifier`; there is one machine.

    Parameters
    ----------
    loss : str, default="epsilon_insensitive"
        max(0, |f − y| − epsilon); "squared" is ½ (f − y)². Every loss for values stands in the table of docs/conventions.md.
    epsilon : float or None, default=None
        The parameter of the loss in the units of y, for the default one half the width of its tube; None is a share of the standard
        deviation of y, which the table states.
    scale_target : bool, default=True
        Divide y by its standard deviation over the training rows before it is fitted, so that C and `tol` do not depend on
        the units of y: ``fit(X, k * y)`` predicts k times what ``fit(X, y)`` does, for every k > 0. Predictions,
        `dual_coef_` and `intercept_` are in the units of y; the objectives are those of the problem that was solved.
        False fits y as it is.
    """
