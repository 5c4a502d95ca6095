"""Several methods over the same splits: a frame, a verdict and a page."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from mercer import _admit, _input, _mercer, _params, _request
from mercer._gram import computed
from mercer.kernels import Precomputed, to_parts

if TYPE_CHECKING:
    from mercer._frame import ComparisonFrame


def compare(
    X: Any,
    y: Any,
    methods: str | Sequence[str] = "all",
    *,
    kernels: Any = "auto",
    grid: str = "",
    repeats: int = 20,
    train: float = 0.5,
    folds: int | None = None,
    inner_folds: int = 3,
    time_ordered: bool = False,
    groups: Any = None,
    metric: str | None = None,
    sample_weight: Any = None,
    normalize: str | None = "auto",
    standardize: bool = True,
    preprocess: str | None = None,
    missing: str | None = None,
    indefinite: str | None = None,
    loss: str | None = None,
    epsilon: float | None = None,
    scale_target: bool = True,
    class_weight: str | dict[Any, float] | None = None,
    multi_class: str = "ovr",
    shared_weights: bool = False,
    fit_intercept: bool = True,
    group_by: str | None = None,
    penalties: Sequence[float] | None = None,
    tol: float = 1e-3,
    max_iter: int = 500,
    search_tol: float = 1e-2,
    abandon: float | None = None,
    journal: str | os.PathLike[str] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    memory: int | str | None = None,
    approx: str | None = None,
    storage: str = "auto",
    max_time: float | None = None,
) -> ComparisonFrame:
    """Compares methods over repeated splits, every method choosing its parameters inside the training part.

    Parameters
    ----------
    X : array (n, d), data frame, list of str, dict of views, or array (n, n, M) with ``kernels="precomputed"``
    y : array (n,)
        Classes (texts, booleans, or integers) or values.
    methods : str or list of str, default="all"
        Names as the program knows them, with settings of their own in brackets: ``["l1", "gmkl(v=0.5)", "smkl"]``.
        Equal weights and the best single kernel always take part.
    kernels : str, kernel object, function, or a list of these, default="auto"
    grid : str, default=""
        Settings all methods choose from, e.g. ``"C=0.1..1000"``; without C every method tries prices of its own.
    repeats : int, default=20
        Random splits, or times the whole cross-validation is done.
    train : float, default=0.5
        Share of the rows that a random split learns from.
    folds : int or None, default=None
        Cross-validation with so many folds instead of random splits.
    inner_folds : int, default=3
        Folds inside each training part.
    time_ordered : bool, default=False
        Rows are in the order of time: ``folds`` (or ``repeats``) splits that train on what came before.
    groups : array (n,), optional
        Rows of one group stay in one part of every split.
    metric : str or None, default=None
        accuracy, balanced_accuracy, auc, mcc, f1, macro_f1, micro_f1, log_loss, "cost(c1, c2)", rmse, mae, r2, nmse;
        None is accuracy or rmse.
    sample_weight : array (n,), optional
        Factors on C; a row of weight zero is as good as absent.
    normalize : {"auto", "multiplicative", "trace", "spherical", "center", None}, default="auto"
        "auto" is what each method has by default: "trace" for smkl, "multiplicative" for the others.
    standardize : bool, default=True
        Bring numeric columns to mean 0 and deviation 1, by the rows of each training part.
    preprocess : str or None, default=None
        Steps on ordered columns such as spectra: ``"average(5), snv"``.
    missing : {"zero", "mean", None}, default=None
        Rows that have nothing in a view: their kernel values are imputed in feature space. None refuses them.
    indefinite : {"shift", "clip", "flip", None}, default=None
        What becomes of ready-made kernels with negative eigenvalues. None refuses them.
    loss : str or None, default=None
        "hinge", "squared_hinge", "logistic", "squared" for classes, "epsilon_insensitive", "squared" and the others in the table of
        docs/conventions.md for values; None is the first.
    epsilon : float or None, default=None
        Parameter of the loss in the units of y, as half the width of the tube of "epsilon_insensitive"; None is a share of the standard
        deviation of y, which the table states.
    scale_target : bool, default=True
        Values to predict are brought to deviation 1 on the training rows before they are fitted.
    class_weight : None, "balanced" or dict, default=None
        Factors on C per class label.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes: a machine for each against the rest, or for each pair.
    shared_weights : bool, default=False
        One weight vector for all machines, minimising the sum of their objectives; else each machine has its own.
    fit_intercept : bool, default=True
        Is there a constant term?
    group_by : {"scope", None}, default=None
        "scope": kernels on the same columns share one weight. Like `penalties` this is for methods that weigh kernels: "all" leaves
        out the others, and the best single kernel takes part without.
    penalties : list of float or None, default=None
        One positive number per kernel; a kernel with a larger number is dearer.
    tol : float, default=1e-3
        Relative duality gap of the fits that are reported.
    max_iter : int, default=500
        Outer iterations at most.
    search_tol : float, default=1e-2
        Tolerance of fits that only rank settings.
    abandon : float or None, default=None
        Give up settings that are so far below the best after a fold.
    journal : path, optional
        Finished runs are kept there, and an interrupted comparison goes on from them.
    random_state : int, RandomState or None, default=None
        Of splits and folds, and of the landmarks or frequencies of `approx`; None is 0.
    n_jobs : int or None, default=None
        Threads; None is one per core, and a single one inside joblib's workers. The result does not depend on it.
    verbose : int, default=0
        A line per finished run on standard error.
    memory : int, str or None, default=None
        Memory budget for the kernel matrices of one fit in bytes, or a text such as "4G"; None is half the machine's memory.
    approx : str or None, default=None
        What stands in for every kernel, at a fixed rank: "nystrom(r)" or "rff(r)".
    storage : {"auto", "dense", "dense-f32", "low-rank"}, default="auto"
        How kernel matrices are stored.
    max_time : float or None, default=None
        Seconds after which the comparison ends with a `TimeoutError`. Finished runs are in `journal`, if one is named, and the same
        call goes on from them.

    Returns
    -------
    ComparisonFrame
        A pandas data frame, one row per method; ``verdict``, ``runs()``, ``weights()``, ``tests()``, ``report(path)``
        tell the rest.
    """
    try:
        from mercer._frame import ComparisonFrame
    except ImportError as e:
        raise ImportError("compare() needs pandas: pip install pandas") from e
    parts = to_parts(kernels)
    ready = isinstance(kernels, Precomputed) or (isinstance(kernels, str) and kernels == "precomputed")
    y = np.asarray(y)
    classes: Any = ()
    if type_of_target(y) == "continuous":
        answers = _input.Answers.numbers(y)
    else:
        classes, codes = np.unique(y, return_inverse=True)
        answers = _input.Answers.classes(codes, classes)
    repeats = _params.count("repeats", repeats)
    if time_ordered:
        count = repeats if folds is None else _params.count("folds", folds)
        splitting: dict[str, Any] = {"kind": "time", "folds": count}
    elif folds is not None:
        splitting = {"kind": "folds", "folds": _params.count("folds", folds), "repeats": repeats}
    else:
        splitting = {"kind": "random", "train": _params.number("train", train), "repeats": repeats}
    scaling = _params.choice("normalize", normalize, ("auto", *_params.NORMALIZATIONS))
    asked = {
        "kernels": "auto" if ready or parts else kernels,
        "normalize": "multiplicative" if scaling == "auto" else scaling,
        "standardize": standardize,
        "preprocess": preprocess,
        "missing": missing,
        "indefinite": indefinite,
        "loss": loss,
        "epsilon": epsilon,
        "scale_target": scale_target,
        "multi_class": multi_class,
        "shared_weights": shared_weights,
        "fit_intercept": fit_intercept,
        "group_by": group_by,
        "penalties": penalties,
        "tol": tol,
        "max_iter": max_iter,
        "memory": memory,
        "approx": approx,
        "storage": storage,
    }
    seed = _params.seed(random_state)
    spec = _request.request(asked) | _request.class_weight(class_weight, classes) | {"approx_seed": seed}
    request: dict[str, Any] = {
        "spec": spec,
        "own_scaling": scaling == "auto",
        "methods": methods if isinstance(methods, str) else ", ".join(methods),
        "grid": grid,
        "splitting": splitting,
        "metric": metric,
        "seed": seed,
        "folds": _params.count("inner_folds", inner_folds),
        "search_tol": _params.number("search_tol", search_tol),
        "abandon": None if abandon is None else _params.number("abandon", abandon),
        "groups": None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].ravel().tolist(),
        "journal": None if journal is None else os.fspath(journal),
    }
    weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    told: dict[str, Any] = {
        "request": json.dumps(request),
        "sample_weight": weight,
        "n_threads": _params.n_threads(n_jobs),
        "callback": _progress() if verbose else None,
        "max_time": _params.seconds("max_time", max_time),
    }
    rows: Any
    if ready or parts:
        values = computed(parts, X, X, n_jobs)[1] if parts else np.asarray(_admit.matrices(X), dtype=np.float64)
        rows = _input.finite(_input.stack(values))
        shape = f"{len(y)} rows, ready-made kernels"
    else:
        rows = _input.read_table(X)
        shape = f"{rows.numbers.shape[0]} rows, {rows.numbers.shape[1] + len(rows.texts)} columns"
    found = _mercer.compare(rows, answers, **told)
    facts = [("data", shape), ("kernels", request["spec"]["kernels"])]
    return ComparisonFrame.from_json(found, facts)


def _progress() -> Callable[[str, float], None]:
    began, state = time.monotonic(), {"left": 0, "done": 0}

    def show(name: str, seconds: float) -> None:
        if not name:
            state["left"] = int(seconds)
            return
        state["done"] += 1
        elapsed = time.monotonic() - began
        text = f"[compare] {state['done']} of {state['left']} runs  {name}  {elapsed:.1f} s"
        print(text, file=sys.stderr, flush=True)

    return show


def write_page(comparison: str, path: str | os.PathLike[str], facts: list[tuple[str, str]]) -> None:
    """The HTML page of a comparison."""
    title, command = "mercer: methods compared", "mercer.compare(X, y, ...)"
    page = _mercer.comparison_page(comparison, title=title, command=command, data=facts)
    _mercer.write_file(path, page)
