"""Does the code give the answers it gave before? Small fits of every method are stored once and made again later.

    python benchmarks/answers.py store FILE.json [--models FOLDER] [--program PATH]
    python benchmarks/answers.py check FILE.json [--models FOLDER] [--program PATH] [--files]

A rewriting of the code that is meant to change nothing is checked with it: `store` with the code before, `check` with the code
after. `store` writes for each fit the status, the iterations, the two bounds, kernel weights, intercepts, the decision values of
rows that were held out, and a digest of the model file. `check` makes the same fits, prints the largest relative difference of each
kind, worst first, and exits with 1 when one is above 1e-10. With `--files` a model file that differs in a byte, its clock readings
left out, is a failure as well.

With `--models`, `store` also writes one model file per method, the rows it is asked about and its decision values; `check` then
loads every one of those files by the package and by the program and requires the same bits.

Both commands require that the package and the program give the same bits wherever both make a fit. The program then runs with one
thread and the package with three, so that the number of threads is shown to change nothing either. The bits themselves may depend
on the processor (on x86-64 the exponential uses fused multiplication and addition where there is one).

The package is the one that Python imports, so put the tree in question first: `PYTHONPATH=TREE/python python benchmarks/answers.py …`.
The program is TREE/target/release/mercer unless `--program` names another. All data are made here from seeds, or come with
scikit-learn. Needs numpy, scipy and scikit-learn; a run takes half a minute.
"""

import argparse
import csv
import hashlib
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import mercer
from mercer import GMKLClassifier, GMKLRegressor, GramView, LpMKLClassifier, SMKLClassifier, UniformMKLClassifier
from mercer import _io

#: Code before 2026-11-20 has a table instead of the function.
ESTIMATORS = _io.estimators() if hasattr(_io, "estimators") else _io.ESTIMATORS
#: The largest relative difference that passes.
TOLERANCE = 1e-10
#: Numbers are compared as shares of the largest of their list, and of this where all are smaller: an intercept may be zero but for rounding.
SMALL = 1e-3
#: Rows that are held out of every fit and predicted.
HELD_OUT = 20
#: The storage of kernels depends on the memory there is, so that every fit is given the same.
MEMORY = "1G"

BANK = "rbf(0.5|1|2|4), poly(1..2), laplace(2) on all; rbf(1) on each"
METHODS = [*ESTIMATORS, "l1", "l2"]
SHORT = {"l1": {"p": 1.0}, "l2": {"p": 2.0}}


def binary(n=100, d=4, seed=7):
    """Two classes. Like all data here: training rows, their targets, rows held out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + HELD_OUT, d))
    signal = X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=len(X))
    return split(X, np.where(signal > 0.7, "yes", "no"))


def ternary():
    rng = np.random.default_rng(8)
    code = np.arange(90 + HELD_OUT) % 3
    X = np.array([[0.0, 0.0, 0.0], [1.8, 0.0, 0.5], [0.0, 1.8, -0.5]])[code] + rng.normal(size=(len(code), 3))
    return split(X, np.array(["high", "low", "middle"])[code])


def regression():
    rng = np.random.default_rng(9)
    X = rng.uniform(-2, 2, size=(90 + HELD_OUT, 3))
    return split(X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=len(X)))


def regions():
    """Two classes whose last column says one of three regions."""
    rng = np.random.default_rng(10)
    region = np.arange(90 + HELD_OUT) % 3
    X = np.column_stack([rng.normal(size=(len(region), 3)), region])
    return split(X, np.where(X[np.arange(len(X)), region] > 0.1, "yes", "no"))


def bundled(load, names, n):
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(1).permutation(len(y))[: n + HELD_OUT]
    return split(X[chosen], y[chosen] if names is None else names[y[chosen]])


def split(X, y):
    return X[:-HELD_OUT], y[:-HELD_OUT], X[-HELD_OUT:]


DATA = {
    "binary": binary,
    "ternary": ternary,
    "regression": regression,
    "regions": regions,
    # The stored models are fitted to few rows so that their files are small.
    "model_rows": lambda: binary(n=50, seed=12),
    # Branch and bound ends on so few rows.
    "small": lambda: binary(n=24, d=2, seed=3),
    # The bank of the paper has 130 kernels here, more than there are rows.
    "few_rows": lambda: binary(n=60, d=9, seed=4),
    "500_rows": lambda: binary(n=500, d=6, seed=5),
    "1500_rows": lambda: binary(n=1500, d=5, seed=6),
    "cancer": lambda: bundled(load_breast_cancer, np.array(["bad", "good"]), 200),
    "wine": lambda: bundled(load_wine, np.array(["a", "b", "c"]), 120),
    "diabetes": lambda: bundled(load_diabetes, None, 150),
}


def shared_fits():
    """Fits that the package and the program both make: name, data, method, parameters of the package."""
    for method in METHODS:
        losses = ["hinge"] if method == "vcmkl" else ["hinge", "squared_hinge", "logistic", "squared"]
        for loss in losses:
            yield f"binary, {method}, {loss}", "binary", method, {"loss": loss}
        yield f"ternary, {method}", "ternary", method, {"C": 2.0}
        if method in ESTIMATORS:
            yield f"stored model, {method}", "model_rows", method, {"kernels": "rbf(1|3), poly(2), linear"}
        if method != "vcmkl":
            for loss in ("epsilon_insensitive", "squared"):
                yield f"regression, {method}, {loss}", "regression", method, {"loss": loss}
    solvers = {"gmkl": [], "lp": [], "l1": ["reduced_gradient", "silp"]}
    for method, more in solvers.items():
        for solver in ["level", "alternating", "interior", *more]:
            asked = {"solver": solver, "tol": 1e-5, "C": 10.0}
            yield f"solver {solver}, {method}", "binary", method, asked
            if solver in ("level", "alternating"):
                yield f"solver {solver}, {method}, logistic", "binary", method, asked | {"loss": "logistic"}
            if solver not in more:
                yield f"solver {solver}, {method}, regression", "regression", method, asked
    for data, method in [("cancer", "gmkl"), ("cancer", "l1"), ("cancer", "smkl"), ("wine", "gmkl"), ("diabetes", "lp"), ("diabetes", "l1")]:
        yield f"{data}, {method}, bank of the paper", data, method, {"kernels": "paper", "C": 10.0}
    for method in METHODS:
        if method != "vcmkl":
            yield f"more kernels than rows, {method}", "few_rows", method, {"kernels": "paper", "C": 5.0}
    for method, loss in [("gmkl", "hinge"), ("l1", "squared_hinge"), ("gmkl", "logistic"), ("lp", "squared"), ("clmkl", "hinge")]:
        yield f"1500 rows, {method}, {loss}", "1500_rows", method, {"kernels": "rbf(auto), poly(1..3), linear on each", "loss": loss}
    for method in ("gmkl", "l1", "uniform", "lp"):
        yield f"500 rows, {method}", "500_rows", method, {"kernels": "auto", "C": 100.0}
    for method in ("gmkl", "l1", "smkl", "clmkl", "lmkl", "uniform"):
        for pairs, together in [("ovr", True), ("ovo", False), ("ovo", True)]:
            if not (together and method == "uniform"):
                asked = {"multi_class": pairs, "shared_weights": together}
                yield f"ternary, {method}, {pairs}{', shared' if together else ''}", "ternary", method, asked
    for normalize in ("trace", "multiplicative", "spherical", "center", None):
        yield f"normalize {normalize}", "binary", "gmkl", {"normalize": normalize, "C": 5.0}
    for text in ("gl", "log", "mf(0.5)", "mkl", "0.5*log + mf(0.5)"):
        yield f"smkl, penalty {text}", "binary", "smkl", {"penalty": text}
    yield "C auto, gmkl", "binary", "gmkl", {"C": "auto"}
    yield "C auto, l1, regression", "regression", "l1", {"C": "auto"}
    yield "v auto", "binary", "gmkl", {"v": "auto"}
    yield "v and C auto, squared", "binary", "gmkl", {"v": "auto", "C": "auto", "loss": "squared"}
    yield "C scale, trace", "binary", "lp", {"C": "scale", "normalize": "trace"}
    for v, p in [(0.0, 2.0), (1.0, 2.0), (0.3, 3.0)]:
        yield f"gmkl, v {v}, p {p}", "binary", "gmkl", {"v": v, "p": p}
    for p in (1.1, 4.0, math.inf):
        yield f"lp, p {p}", "binary", "lp", {"p": p}
    for how in ("nystrom(30)", "rff(40)"):
        bank = "rbf(0.5|1|2|4), laplace(2) on all; rbf(1) on each"
        yield f"approx {how}", "binary", "gmkl", {"approx": how, "kernels": bank, "random_state": 3}
        yield f"approx {how}, regression", "regression", "l1", {"approx": how, "kernels": bank}
    yield "group_by scope", "binary", "gmkl", {"group_by": "scope"}
    yield "group_by scope, l1", "regression", "l1", {"group_by": "scope"}
    yield "penalties", "binary", "lp", {"penalties": [1.0 + 0.1 * m for m in range(11)]}
    yield "class_weight", "binary", "gmkl", {"class_weight": "balanced"}
    yield "no intercept, no standardisation", "binary", "gmkl", {"fit_intercept": False, "standardize": False}
    yield "target as it is", "regression", "gmkl", {"scale_target": False, "epsilon": 0.05}
    yield "preprocess", "500_rows", "gmkl", {"preprocess": "average(2), difference(1), snv", "kernels": "rbf(auto)"}
    for name, bank in {"auto": "auto", "chi2": "gauss(l1, auto), gauss(l2, auto)", "columns": "linear, rbf on cols(1-2), bands(2)"}.items():
        yield f"bank {name}", "binary", "gmkl", {"kernels": bank}
    for method, parameter in [("clmkl", "regions"), ("hlmkl", "regions"), ("glmkl", "groups"), ("gsmkl", "groups")]:
        yield f"{method}, {parameter} from a column", "regions", method, {parameter: 3}
    for name, asked in {"p 1": {"p": 1.0}, "p inf": {"p": math.inf}, "v": {"v": 0.5}, "evenness": {"evenness": 0.6}}.items():
        yield f"clmkl, {name}", "binary", "clmkl", asked | {"n_clusters": 2, "random_state": 5}
    yield "lmkl, sigmoid", "binary", "lmkl", {"gate": "sigmoid", "n_init": 2}
    yield "lmkl, linear gate", "binary", "lmkl", {"gate_kernel": "linear on all"}
    yield "glmkl, p 2", "binary", "glmkl", {"p": 2.0, "n_groups": 2}
    rules = {"kernels": "linear, rbf(1)", "n_rules": 2}
    for name, asked in {
        "am": {"solver": "am"},
        "sgd": {"solver": "sgd"},
        "pddp": {"solver": "pddp", "nu": 0.1},
        "nu": {"nu": [0.1, 0.2]},
        "weights": {"p": 2.0, "kernels": "linear, rbf(1), rbf(3)"},
        "rules auto": {"n_rules": "auto", "folds": 3},
        "costs": {"cost_ratio": 2.0, "consensus": "no"},
    }.items():
        yield f"vcmkl, {name}", "binary", "vcmkl", rules | asked
    yield "vcmkl, exact", "small", "vcmkl", {"kernels": "linear", "n_rules": 2, "solver": "exact"}


# How the program says what the package calls otherwise; `l1` and `l2` are methods there.
FLAGS = {"C": "-C", "random_state": "--seed", "n_rules": "--rules"}
OFF = {"fit_intercept": "--no-intercept", "standardize": "--no-standardize", "scale_target": "--no-scale-target"}


def arguments(asked):
    """Parameters of the package as arguments of the program."""
    for name, value in asked.items():
        flag = FLAGS.get(name, "--" + name.replace("_", "-"))
        if name in OFF:
            yield OFF[name]
        elif name in ("regions", "groups"):
            yield f"{flag}=x{value + 1}"
        elif isinstance(value, bool):
            if value:
                yield flag
        elif isinstance(value, list):
            yield f"{flag}={','.join(map(repr, value))}"
        else:
            yield from (flag, "none" if value is None else str(value))


def package_fits():
    """Fits of the package alone: name, unfitted estimator, training rows, targets, rows held out, more for `fit`."""
    X, y, new = binary()
    rows = np.vstack([X, new])
    stack = mercer.gram(rows, BANK)
    own, other = stack[: len(X), : len(X)], stack[len(X) :, : len(X)]
    for method in METHODS:
        if method != "vcmkl":
            yield f"stack, {method}", estimator(method, "classification", {"kernels": "precomputed"}), own, y, other, {}
    Xr, yr, newr = regression()
    table = mercer.gram(np.vstack([Xr, newr]), BANK)
    yield "stack, regression", GMKLRegressor("precomputed"), table[: len(Xr), : len(Xr)], yr, table[len(Xr) :, : len(Xr)], {}
    views = {"k": GramView(own[:, :, 0]), "x": X}, {"k": GramView(other[:, :, 0]), "x": new}
    yield "matrix beside features", GMKLClassifier("precomputed(k); linear, rbf(1) on view(x)"), views[0], y, views[1], {}
    for how in ("shift", "clip", "flip"):
        K = np.tanh(2 * rows @ rows.T - 0.5)
        fit = UniformMKLClassifier("precomputed", indefinite=how)
        yield f"indefinite, {how}", fit, K[: len(X), : len(X)], y, K[len(X) :, : len(X)], {}
    gone = rows.copy()
    gone[::7, 2:] = np.nan
    lacking = {"a": rows[:, :2], "b": gone[:, 2:]}
    before, after = ({name: part[one] for name, part in lacking.items()} for one in (slice(len(X)), slice(len(X), None)))
    for method in ("gmkl", "l1", "uniform"):
        for how in ("zero", "mean"):
            asked = {"missing": how, "kernels": "rbf(1), linear on view(a), view(b)"}
            yield f"missing {how}, {method}", estimator(method, "classification", asked), before, y, after, {}
    weight = np.random.default_rng(2).uniform(0.2, 3.0, size=len(X))
    weight[::9] = 0.0
    for loss in ("hinge", "logistic"):
        yield f"sample weights, {loss}", GMKLClassifier(BANK, loss=loss), X, y, new, {"sample_weight": weight}
    words, about = texts()
    for kernel in ("spectrum(2..4)", "mismatch(3, 1)", "wd(1..4, shift = 2)", "wdsum(1..4)", "spectrum(2), wd(2)"):
        yield f"strings, {kernel}", GMKLClassifier(kernel, C=5.0), words[:-HELD_OUT], about[:-HELD_OUT], words[-HELD_OUT:], {}
    amino = ["".join("ARND"["ACGT".index(c)] for c in word) for word in words]
    yield "strings, alignment", GMKLClassifier("alignment(blosum62)"), amino[:-HELD_OUT], about[:-HELD_OUT], amino[-HELD_OUT:], {}
    thin, side = words_counted()
    for method in ("gmkl", "l1", "smkl", "clmkl"):
        asked = {"kernels": "rbf(1|3), poly(2), laplace(2), linear on all; linear on cols(1-4)"}
        fit = estimator(method, "classification", asked)
        yield f"sparse, {method}", fit, thin[:-HELD_OUT], side[:-HELD_OUT], thin[-HELD_OUT:], {}
    label = np.array([0, 1, 2, 1])[np.arange(len(X)) % 4]
    yield "clmkl, labels", estimator("clmkl", "classification", {"regions": label}), X, y, new, {}
    yield "gsmkl, labels", estimator("gsmkl", "classification", {"groups": label}), X, y, new, {}
    yield "clmkl, callable", estimator("clmkl", "classification", {"regions": lambda X: (X[:, 0] > 0).astype(int)}), X, y, new, {}
    yield "SMKL, not scaled", SMKLClassifier(BANK, C=3.0, normalize=None), X, y, new, {}
    yield "integers as classes", LpMKLClassifier(BANK, p=1.5), X, (y == "yes").astype(int), new, {}


def texts():
    rng = np.random.default_rng(11)
    words = ["".join(rng.choice(list("ACGT"), size=25)) for _ in range(60 + HELD_OUT)]
    return words, np.array(["with" if "AC" in w[5:15] else "without" for w in words])


def words_counted():
    rng = np.random.default_rng(12)
    X = np.where(rng.random((100 + HELD_OUT, 12)) < 0.3, rng.normal(size=(100 + HELD_OUT, 12)), 0.0)
    return sparse.csr_matrix(X), np.where(X[:, 0] - X[:, 1] + X[:, 4] ** 2 > 0.2, 1, -1)


def estimator(method, task, asked):
    kind = ESTIMATORS["lp" if method in SHORT else method][task]
    return kind(**{"kernels": BANK} | SHORT.get(method, {}) | asked)


def program_fits(folder):
    """Fits of the program alone: name, training file, file of rows held out, arguments."""
    files = {data: tables(folder, data) for data in ("binary", "ternary", "regression", "500_rows")}
    for storage in ("auto", "dense", "dense-f32", "low-rank"):
        for method in ("gmkl", "l1", "uniform", "smkl", "clmkl", "glmkl"):
            yield f"storage {storage}, {method}", *files["binary"], ["-m", method, "--storage", storage, "-k", BANK]
        for loss in ("squared_hinge", "logistic", "squared"):
            yield f"storage {storage}, {loss}", *files["binary"], ["--loss", loss, "--storage", storage, "-k", BANK]
        for loss in ("epsilon_insensitive", "squared"):
            yield f"storage {storage}, regression, {loss}", *files["regression"], ["--loss", loss, "--storage", storage, "-k", BANK]
        yield f"storage {storage}, ternary", *files["ternary"], ["--storage", storage, "-k", BANK]
        yield f"storage {storage}, 500 rows", *files["500_rows"], ["--storage", storage, "-C", "10", "-k", "rbf(1|3|9), poly(2), linear"]
    thin, side = words_counted()
    svm = [folder / "train.svm", folder / "test.svm"]
    for path, one in zip(svm, (slice(-HELD_OUT), slice(-HELD_OUT, None)), strict=True):
        lines = zip(thin[one].toarray().tolist(), side[one].tolist(), strict=True)
        path.write_text("".join(f"{c} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(r) if v) + "\n" for r, c in lines))
    for method in ("gmkl", "lp", "clmkl"):
        yield f"libsvm, {method}", *svm, ["-m", method, "-k", "rbf(1|3), poly(2), laplace(2), linear on all; linear on cols(1-4)"]
    for how in ("zero", "mean"):
        yield f"description of views, {how}", *descriptions(folder), ["--missing", how]
    rng = np.random.default_rng(4)
    X, y, _ = binary()
    weighted = folder / "weighted.csv"
    write(weighted, np.column_stack([X, rng.uniform(0.2, 3.0, size=len(X))]), y)
    yield "column of weights", weighted, files["binary"][1], ["--weight-column", "x5", "-k", BANK]
    yield "columns chosen", *files["binary"], ["--columns", "x1,x3", "-k", "rbf(auto), linear on each"]
    yield "every second row", *files["binary"], ["--rows", "1-90:2", "-k", BANK]


def descriptions(folder):
    """Two views of the rows in files of their own; every ninth row lacks the second."""
    X, y, new = binary()
    for name, rows, answers in (("some", X, y), ("others", new, np.full(len(new), "no"))):
        lines = {"labels": "id,y\n", "left": "id,u,v\n", "right": "id,w\n"}
        for i, (row, answer) in enumerate(zip(rows.tolist(), answers, strict=True)):
            lines["labels"] += f"s{i},{answer}\n"
            lines["left"] += f"s{i},{row[0]!r},{row[2]!r}\n"
            lines["right"] += "" if i % 9 == 4 else f"s{i},{row[1]!r}\n"
        for part, text in lines.items():
            (folder / f"{name}_{part}.csv").write_text(text)
        (folder / f"{name}.toml").write_text(
            f'target = "y"\nid = "id"\n[labels]\nfile = "{name}_labels.csv"\n'
            f'[[view]]\nname = "left"\nfile = "{name}_left.csv"\nkernels = "rbf(auto), poly(2)"\n'
            f'[[view]]\nname = "right"\nfile = "{name}_right.csv"\nkernels = "linear, rbf(1)"\n'
        )
    return folder / "some.toml", folder / "others.toml"


def questions(folder):
    """What the program is asked besides: name, arguments. Every answer is one JSON object."""
    # Names without the folder, which is another one in every run and appears in answers.
    train, three, values = (tables(folder, data)[0].name for data in ("binary", "ternary", "regression"))
    common = ["--memory", MEMORY, "--threads", "1", "--json", "--quiet", "--target", "y"]
    yield "tune", ["tune", train, "-k", BANK, "--grid", "C=0.1|1|10; v=0|0.5|1", "--folds", "3", *common]
    yield "tune, auc, abandon", ["tune", train, "-k", BANK, "-m", "l1", "--metric", "auc", "--abandon", "0.02", "--folds", "3", *common]
    yield "tune, regression", ["tune", values, "-k", BANK, "-m", "lp", "--grid", "C=1|10;p=1.2|2", "--folds", "3", "--repeats", "2", *common]
    some = ["compare", "-k", "rbf(1|4), poly(2), linear", "--repeats", "3", "--grid", "C=1|10", *common]
    yield "compare", [*some, train, "-m", "l1, gmkl(v=0.5), smkl, clmkl"]
    yield "compare, three classes", [*some, three, "-m", "lp, align, alignf", "--metric", "macro_f1"]
    yield "compare, regression", [*some, values, "-m", "gmkl, l2"]
    yield "compare, in time", [*some, train, "-m", "gmkl", "--time"]
    for method in ("gmkl", "l1", "smkl", "clmkl", "lmkl", "vcmkl"):
        model = f"{method}.model"
        fit = ["fit", train, "-m", method, "-k", BANK, "-o", model, *common]
        yield f"summary of a fit, {method}", fit
        yield f"verify, {method}", ["verify", model, train, "--target", "y", "--threads", "1", "--json"]
        yield f"score, {method}", ["score", model, train, "--target", "y", "--threads", "1", "--json"]
    yield "kernels of a table", ["kernels", train, "--target", "y", "-k", BANK, "--all", "--threads", "1", "--json"]


class Program:
    """The program, run in a folder."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *words):
        done = subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=self.folder)
        # 1: a fit or a check that did not reach what was asked, which is an answer too.
        if done.returncode not in (0, 1) or (not done.stdout and "--json" in words):
            raise SystemExit(f"mercer {' '.join(map(str, words))}\n{done.stderr}")
        return json.loads(done.stdout) if "--json" in words else None

    def fit(self, train, test, words, model):
        common = ["--memory", MEMORY, "--threads", "1", "--quiet", "-o", model]
        target = ["--target", "y"] if train.suffix == ".csv" else []
        self("fit", train, *target, *words, *common)
        return answer(mercer.load(model), self.decision(model, test), model)

    def decision(self, model, test):
        return np.asarray(self("predict", model, test, "--decision", "--json", "--threads", "1")["decision"], dtype=float)


def write(path, X, y):
    """A CSV file with all digits."""
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(f"x{j + 1}" for j in range(X.shape[1])), "y"])
        out.writerows([*map(repr, row), label] for row, label in zip(X.tolist(), y.tolist(), strict=True))


def tables(folder, data):
    """The CSV files of a data set: training rows, rows held out (whose target is of no account)."""
    paths = folder / f"{data}.csv", folder / f"{data}_new.csv"
    if not paths[0].exists():
        X, y, new = DATA[data]()
        write(paths[0], X, y)
        write(paths[1], new, y[: len(new)])
    return paths


def values(fitted, rows):
    """Decision values of classes, predictions of numbers."""
    return (fitted.predict if is_regressor(fitted) else fitted.decision_function)(rows)


def answer(fitted, decision, path):
    """What is stored of a fit; NaN is stored as a text, as JSON has none."""
    lists = {"weights": fitted.kernel_weights_, "intercepts": fitted.intercept_, "multipliers": fitted.dual_coef_, "decision": decision}
    return {
        "status": fitted.status_,
        "iterations": int(fitted.n_iter_),
        "primal": number(fitted.primal_objective_),
        "dual": number(fitted.dual_objective_),
        **{name: [number(v) for v in some(np.ravel(value)).tolist()] for name, value in lists.items()},
        "warnings": list(fitted.warnings_),
        "file": digest(path.read_bytes()),
    }


def some(values):
    """At most two hundred of a list, evenly spaced."""
    return values[:: math.ceil(len(values) / 200) or 1]


def number(value):
    return value if math.isfinite(value) else str(value)


def digest(content):
    """SHA-256 of a model file without what two equal fits may differ in: seconds, the checksum over them, the header's length."""
    length = struct.unpack("<Q", content[:8])[0]
    header, tensors = content[8 : 8 + length].rstrip(), content[8 + length :]
    header = re.sub(rb'(seconds\\*":)[-+0-9.eE]+', rb"\g<1>0", header)
    header = re.sub(rb'("crc32":")[0-9a-f]{8}', rb"\g<1>00000000", header)
    return hashlib.sha256(header + b"\0" + tensors).hexdigest()


def timeless(value):
    """An answer of the program without seconds, dates and paths, which no two runs share."""
    if isinstance(value, dict):
        left_out = ("second", "time", "date", "model", "path", "file", "command")
        return {k: timeless(v) for k, v in value.items() if not any(word in k for word in left_out)}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def package_fit(unfitted, X, y, new, more, path):
    unfitted.set_params(memory=MEMORY, n_jobs=3)
    fitted = unfitted.fit(X, y, **more)
    fitted.save(path)
    return answer(fitted, values(fitted, new), path)


def make(program, models=None):
    """All answers by name, and the names of fits on which the package and the program differ."""
    answers, apart = {}, []
    folder = program.folder
    model = folder / "model"

    for name, data, method, asked in shared_fits():
        X, y, new = DATA[data]()
        task = "regression" if y.dtype.kind == "f" else "classification"
        by_package = package_fit(estimator(method, task, asked), X, y, new, {}, model)
        words = ["-m", method, *arguments({"kernels": BANK} | asked)]
        by_program = program.fit(*tables(folder, data), words, model)
        file = by_program.pop("file")
        by_package["file of the package"], by_package["file"] = by_package.pop("file"), file
        if any(not same(by_package[key], by_program[key]) for key in by_program):
            apart.append(name)
        if models and name.startswith("stored model"):
            (models / f"{method}.mercer").write_bytes(model.read_bytes())
        answers[name] = by_package
    for name, unfitted, X, y, new, more in package_fits():
        answers[f"package: {name}"] = package_fit(unfitted, X, y, new, more, model)
    for name, train, test, words in program_fits(folder):
        answers[f"program: {name}"] = program.fit(train, test, words, model)
    for name, words in questions(folder):
        answers[f"answer: {name}"] = {"says": timeless(program(*words))}
    if models:
        X = DATA["model_rows"]()[2]
        write(models / "rows.csv", X, np.full(len(X), "no"))
        columns = {method: answers[f"stored model, {method}"]["decision"] for method in ESTIMATORS}
        with open(models / "decisions.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(columns)
            out.writerows([repr(v) for v in row] for row in zip(*columns.values(), strict=True))
    return answers, apart


def same(a, b):
    """Bit for bit: zeros of different sign differ."""
    return json.dumps(a) == json.dumps(b)


def difference(a, b):
    """The largest relative difference of two answers; infinite where they are not of one form, or texts differ."""
    if same(a, b):
        return 0.0
    if numeric(a) and numeric(b):
        a, b = np.atleast_1d(np.asarray(a, dtype=float)), np.atleast_1d(np.asarray(b, dtype=float))
        if a.shape != b.shape:
            return math.inf
        return float(np.abs(a - b).max() / max(np.abs(a).max(), np.abs(b).max(), SMALL))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return max(difference(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max(map(difference, a, b))
    return math.inf


def numeric(value):
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(type(v) in (int, float) for v in values)


def report(before, after, files):
    """Prints what differs; true where nothing differs by more than it may."""
    missing = sorted(before.keys() ^ after.keys())
    for name in missing:
        print(f"FAILED  {name}: {'not made now' if name in before else 'not stored'}")
    worst, other_files, exact = [], [], 0
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        numbers = {key: difference(old.get(key), new.get(key)) for key in old.keys() | new.keys() if not key.startswith("file")}
        exact += not any(numbers.values())
        worst += [(value, name, key) for key, value in numbers.items() if value]
        other_files += [f"{name}: {key}" for key in old if key.startswith("file") and old[key] != new.get(key)]
    for value, name, key in sorted(worst, reverse=True)[:100]:
        print(f"{'FAILED' if value > TOLERANCE else 'passed'}  {value:.1e}  {name}: {key}")
    for line in sorted(other_files)[:100]:
        print(f"{'FAILED' if files else 'note'}  model file differs  {line}")
    largest = max(worst)[0] if worst else 0.0
    print(f"{len(after)} answers: {exact} bit for bit as before, {len(other_files)} model files differ, largest difference {largest:.1e}")
    return not missing and not (files and other_files) and all(value <= TOLERANCE for value, _, _ in worst)


def check_models(folder, program):
    """Stored model files give their stored decision values, by the package and by the program."""
    with open(folder / "decisions.csv", newline="") as file:
        lines = list(csv.reader(file))
    wanted = {name: [float(line[k]) for line in lines[1:]] for k, name in enumerate(lines[0])}
    rows = np.loadtxt(folder / "rows.csv", delimiter=",", skiprows=1, usecols=range(4))
    failed = []
    for method, stored in wanted.items():
        path = folder / f"{method}.mercer"
        by_package = np.ravel(values(mercer.load(path), rows)).tolist()
        by_program = np.ravel(program.decision(path, folder / "rows.csv")).tolist()
        failed += [f"{method}, by the {who}" for who, got in (("package", by_package), ("program", by_program)) if not same(got, stored)]
    for line in failed:
        print(f"FAILED  stored model predicts otherwise: {line}")
    print(f"{len(wanted)} stored models: {2 * len(wanted) - len(failed)} of {2 * len(wanted)} readings give the stored bits")
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["store", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--models", type=Path, help="folder of one stored model file per method")
    parser.add_argument("--program", type=Path, default=Path(mercer.__file__).parents[2] / "target" / "release" / "mercer")
    parser.add_argument("--files", action="store_true", help="a model file with other bytes is a failure")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"package {mercer.__file__}\nprogram {told.program}")
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if run(told, Program(told.program.resolve(), Path(folder))) else 1)


def run(told, program):
    began = time.monotonic()
    storing = told.command == "store"
    if told.models:
        told.models = told.models.resolve()
        told.models.mkdir(parents=True, exist_ok=True)
    answers, apart = make(program, told.models if storing else None)
    for name in apart:
        print(f"FAILED  package and program differ: {name}")
    fine = not apart
    if storing:
        text = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in answers.items())
        told.file.write_text("{\n" + text + "\n}\n")
        print(f"{len(answers)} answers stored")
    else:
        # What is made now takes the same way through JSON as what was stored.
        fine &= report(json.loads(told.file.read_text()), json.loads(json.dumps(answers)), told.files)
    if told.models:
        fine &= check_models(told.models, program)
    both = sum("file of the package" in found for found in answers.values())
    print(f"{both} fits made by package and program, {both - len(apart)} of them bit for bit the same; {time.monotonic() - began:.0f} s")
    return fine


if __name__ == "__main__":
    main()
