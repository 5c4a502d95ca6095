"""What all estimators share: from parameters and data to a native model, and from the model to learned attributes.

Estimators are dataclasses: a parameter is declared once, where it belongs, and the constructor does nothing but store.
"""

from __future__ import annotations

import copy
import json
import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import _input, _mercer, _params, _request
from mercer._gram import computed
from mercer._input import Answers
from mercer.kernels import Kernel, Precomputed, to_parts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False, repr=False)
class MKLBase(BaseEstimator):
    """Fitting, the learned attributes, saving. Subclasses say which method and what y is."""

    _losses: ClassVar[tuple[str, ...]]

    kernels: str | Kernel | list[str | Kernel] = "auto"
    _: KW_ONLY
    C: float | str = 1.0
    loss: str
    normalize: str | None = "multiplicative"
    standardize: bool = True
    fit_intercept: bool = True
    group_by: str | None = None
    penalties: Sequence[float] | None = None
    preprocess: str | None = None
    missing: str | None = None
    indefinite: str | None = None
    tol: float = 1e-3
    max_iter: int = 500
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    memory: int | str | None = None
    approx: str | None = None
    storage: str = "auto"
    max_time: float | None = None
    callback: Callable[[dict[str, Any]], Any] | None = None
    on_interrupt: str = "raise"

    def _chooses_v(self) -> bool:
        """Is v left to the fit?"""
        return False

    def _method(self) -> dict[str, Any]:
        """The method and its own parameters, in the core's words."""
        raise NotImplementedError

    def _target(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[Answers, dict[str, Any]]:
        """What the native `fit` is told about y, and what is added to its request."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self._is_precomputed()
        tags.input_tags.pairwise = precomputed
        tags.input_tags.three_d_array = precomputed
        tags.input_tags.dict = not precomputed
        tags.input_tags.sparse = not precomputed
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, Precomputed) or (isinstance(self.kernels, str) and self.kernels == "precomputed")

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, numeric: bool) -> None:
        parts = to_parts(self.kernels)
        request = self._request() if parts is None else self._request() | {"kernels": "precomputed"}
        precomputed = self._is_precomputed()
        # Should this fit fail, the estimator is not left half old and half new.
        for old in ("_model", "_train_rows"):
            self.__dict__.pop(old, None)
        if parts is None:
            data = _input.read_training(self, X, y, sample_weight, precomputed=precomputed, numeric=numeric)
        else:
            names, stack = computed(parts, X, X, self.n_jobs)
            data = _input.read_computed(self, X, stack, y, sample_weight, numeric=numeric)
        answers, extra = self._target(data.y, data.weight)
        model, stopped_by = _mercer.fit(
            data.X,
            answers,
            spec=json.dumps(request | extra),
            sample_weight=data.weight,
            n_threads=_params.n_threads(self.n_jobs),
            callback=self._watch(),
            max_time=_params.seconds("max_time", self.max_time),
            keep=_params.choice("on_interrupt", self.on_interrupt, ("raise", "keep")) == "keep",
            **self._given(X, data),
        )
        self._adopt(model)
        if parts is not None:
            self.kernel_names_, self._train_rows = names, X
        for text in self.warnings_:
            warnings.warn(text, UserWarning, stacklevel=3)
        if self.status_ not in ("optimal", "stationary"):
            convex = math.isfinite(self.duality_gap_)
            name, reached = ("duality gap", self.duality_gap_) if convex else ("change", self.trace_[-1]["gap"])
            what = f"the relative {name} is {reached:.1e}, for tol = {self.tol:.1e}, after {self.n_iter_} iterations"
            advice = {
                None: "raise max_iter or tol to certify it",
                "max_time": f"max_time = {self.max_time} seconds ended it, raise it or tol to certify it",
                "callback": "the callback ended it",
                "interrupt": "Ctrl-C ended it",
            }[stopped_by]
            warnings.warn(
                f"{what}; the fit is usable, {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _given(self, X: Any, data: _input.Training) -> dict[str, Any]:
        """What else the native `fit` is told about the rows."""
        return {}

    def _request(self) -> dict[str, Any]:
        """The core's `TrainSpec`, less what depends on y."""
        method = self._method()
        params = {name: getattr(self, name) for name in self._get_param_names()}
        return {"method": method} | _request.request(params, losses=self._losses, chooses_v=self._chooses_v())

    def _watch(self) -> Callable[[dict[str, Any]], Any] | None:
        """What is called after every iteration; `True` from it ends the fit."""
        callback = _params.function("callback", self.callback)
        if not self.verbose:
            return callback
        title = type(self).__name__

        def show(record: dict[str, Any]) -> Any:
            print(f"[{title}] {_line(record)}", flush=True)
            return callback(record) if callback else None

        return show

    def __sklearn_clone__(self) -> Any:
        # A clone calls the same function: what it holds, such as an open file, may not allow a copy.
        callback = self.callback
        if callback is None:
            return super().__sklearn_clone__()
        plain = copy.copy(self)
        plain.callback = None
        cloned = BaseEstimator.__sklearn_clone__(plain)
        cloned.callback = callback
        return cloned

    def _adopt(self, model: _mercer.Model) -> None:
        """Learned attributes from a native model; one machine drops the machine axis, and so do shared weights."""
        info = json.loads(model.info())
        certificate, machines = info["certificate"], info["machines"]
        single = len(machines) == 1
        weights, intercepts = model.weights(), model.intercepts()
        support, dual_coef = _one_table(model.support(), model.dual_coef())
        self._model, self._input_kind, self._columns = model, info["input"], info["columns"]
        self._n_texts = info["n_texts"]
        self._machine_names = info["machine_names"]
        self.kernel_weights_ = weights[0] if single or info["shared"] else weights
        self.kernel_names_ = info["kernel_names"]
        self.support_ = support
        self.dual_coef_ = dual_coef[0] if single else dual_coef
        self.intercept_ = float(intercepts[0]) if single else intercepts
        self.primal_objective_ = _float(certificate["primal"])
        self.dual_objective_ = _float(certificate["dual"])
        self.duality_gap_ = _float(certificate["gap"])
        self.status_ = certificate["status"]
        self.n_iter_ = certificate["iterations"]
        # Machines that share their weights were fitted together and have one trace.
        runs = machines[:1] if info["shared"] else machines
        self.trace_ = [
            {key: _float(value) for key, value in record.items()} | ({} if len(runs) == 1 else {"machine": k})
            for k, machine in enumerate(runs)
            for record in machine["trace"]
        ]
        self.warnings_ = info["warnings"]
        self.C_ = info["spec"]["c"]
        self.__dict__.pop("approximation_error_", None)
        if info["approximation"]:
            self.approximation_error_ = _errors(info["approximation"])

    def _rows(self, X: Any) -> dict[str, Any]:
        """New rows as the native model takes them, features or kernel values, and the number of threads."""
        check_is_fitted(self, "_model")
        told: dict[str, Any] = {"n_threads": _params.n_threads(self.n_jobs)}
        parts = to_parts(self.kernels)
        if parts is not None and hasattr(self, "_train_rows"):
            _, stack = computed(parts, X, self._train_rows, self.n_jobs)
            return told | {"rows": _input.finite(stack)}
        if self._input_kind == "precomputed":
            return told | {"rows": _input.read_block(self, X)}
        return told | {"rows": _input.read_features(self, X)}

    def _decision(self, X: Any) -> np.ndarray:
        """Decision values, (rows, machines)."""
        rows = self._rows(X)
        return self._model.decision(**rows)

    def _machine_labels(self) -> list[Any]:
        """Column heads for one column per weight vector."""
        return ["weight"]

    def weights_frame(self) -> pd.DataFrame:
        """Kernel weights as a pandas data frame, one row per kernel, one column per weight vector."""
        check_is_fitted(self, "_model")
        try:
            import pandas as pd
        except ImportError as e:
            raise ImportError("weights_frame() needs pandas: pip install pandas") from e
        index = pd.Index(self.kernel_names_, name="kernel")
        vectors = np.reshape(self.kernel_weights_, (-1, len(self.kernel_names_)))
        return pd.DataFrame(vectors.T, index=index, columns=self._machine_labels())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file; `mercer.load` and the program `mercer` read it."""
        check_is_fitted(self, "_model")
        self._model.save(path)


def _gives_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"predict_proba needs loss='logistic', got {estimator.loss!r}")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClassifier(ClassifierMixin, MKLBase):
    """Classes: two make one machine, K > 2 one per class or one per pair."""

    _losses = _request.LOSSES_OF_CLASSES

    loss: str = "hinge"
    multi_class: str = "ovr"
    shared_weights: bool = False
    class_weight: str | dict[Any, float] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learns kernel weights and the decision function.

        Parameters
        ----------
        X : array (n, d), data frame, list of str, dict of views, or array (n, n, M) with ``kernels="precomputed"``
            Training rows. Columns of text, and a list of texts, are sequences for string kernels. A dict maps names of
            views to any of these with the same rows.
        y : array (n,)
            Class labels: texts, numbers or booleans.
        sample_weight : array (n,), optional
            Factors on C; a row of weight zero is as good as absent.
        """
        self._fit(X, y, sample_weight, numeric=False)
        return self

    def _target(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[Answers, dict[str, Any]]:
        check_classification_targets(y)
        classes = np.unique(y if weight is None else y[weight > 0])
        if len(classes) < 2:
            raise ValueError(f"y has one class, {_params.plain(classes[0])!r}; a classifier needs at least two classes")
        # A label left out of `classes` has weight zero, so that its code does not matter.
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        self.classes_ = classes
        return Answers.classes(codes, classes), _request.class_weight(self.class_weight, classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, positive for ``classes_[1]``; else (n, K), largest where predicted.

        With ``multi_class="ovo"`` the value of a class is its number of votes, and the sum of its confidences,
        squeezed into (−⅓, ⅓), to break ties.
        """
        decision = self._decision(X)
        scores = self._model.class_scores(decision)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predicted classes."""
        decision = self._decision(X)
        return self.classes_[self._model.decide(decision)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, K), with ``loss="logistic"``."""
        decision = self._decision(X)
        return self._model.probabilities(decision)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes, (n, K), with ``loss="logistic"``."""
        return np.log(self.predict_proba(X))

    def _machine_labels(self) -> list[Any]:
        if self.kernel_weights_.ndim == 1:
            return super()._machine_labels()
        per_class = self._machine_names == [str(c) for c in self.classes_]
        return list(self.classes_) if per_class else self._machine_names


@dataclass(eq=False, repr=False, kw_only=True)
class MKLRegressor(RegressorMixin, MKLBase):
    """Values: one machine."""

    _losses = _request.LOSSES_OF_VALUES

    loss: str = "epsilon_insensitive"
    epsilon: float | None = None
    scale_target: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learns kernel weights and the regression function.

        Parameters
        ----------
        X : array (n, d), data frame, list of str, dict of views, or array (n, n, M) with ``kernels="precomputed"``
            Training rows. Columns of text, and a list of texts, are sequences for string kernels. A dict maps names of
            views to any of these with the same rows.
        y : array (n,)
            Values.
        sample_weight : array (n,), optional
            Factors on C; a row of weight zero is as good as absent.
        """
        self._fit(X, y, sample_weight, numeric=True)
        return self

    def _target(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[Answers, dict[str, Any]]:
        return Answers.numbers(y), {}

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values."""
        return self._decision(X)[:, 0]


def _line(record: dict[str, Any]) -> str:
    """An iteration in words."""
    fold = "search, fold {} of {}  ".format(*record["fold"]) if record["fold"] else ""
    machine = f"class {record['name']}  " if record["name"] is not None else ""
    bound = "" if math.isnan(record["dual"]) else f"bound {record['dual']:.6e}  "
    return (
        f"{fold}{machine}iteration {record['iteration']:4d}  objective {record['objective']:.6e}  {bound}"
        f"gap {record['gap']:.1e}  kernels {record['active']}  {record['seconds']:.2f} s"
    )


def _one_table(support: list[np.ndarray], dual_coef: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows that support any machine, and every machine's multiplier for each of them."""
    rows = np.unique(np.concatenate(support)).astype(np.intp)
    table = np.zeros((len(support), len(rows)))
    for line, own, coef in zip(table, support, dual_coef, strict=True):
        line[np.searchsorted(rows, own)] = coef
    return rows, table


def _errors(told: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """One array per measure, one entry per kernel; a kernel that is exact has zeros."""
    pairs = any(one["measure"] == "pairs" for one in told)
    names = ("rms", "standard_error", "largest") if pairs else ("relative",)
    return {
        "trace" if name == "relative" else name: np.array([one.get(name, 0.0) for one in told], dtype=np.float64)
        for name in names
    }


def _float(value: Any) -> Any:
    """JSON has no NaN: null stands for it."""
    return float("nan") if value is None else value
