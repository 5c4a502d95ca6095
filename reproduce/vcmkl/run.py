"""Veto–consensus rules beside the tables of the paper.

python reproduce/vcmkl/run.py [polygon pima table2 size] [--minutes 60] [--splits 5] [--sets Vowel,...]

All parts by default. Writes got.csv beside this file, one line per number, as it goes; what is there already is not made
again. Data sets are read from the folder that MERCER_DATA_DIR names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import VCMKLClassifier

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from common import DATA, Results  # noqa: E402

FOLDS = 3
#: For the larger sets the last ones are left out: two for linear rules, one for Gaussian ones.
PRICES = (1, 10, 100, 1000)
COLUMNS = ["part", "set", "setting", "method", "split", "measure", "value"]
KEYS = ["part", "set", "setting", "method", "split"]
warnings.filterwarnings("ignore")


def polygon_data(n, sides, seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, size=(20 * n, 2))
    angles = 2 * np.pi * np.arange(sides) / sides
    inside = (1 - points @ np.array([np.cos(angles), np.sin(angles)])).min(axis=1) > 0
    rows = np.concatenate([np.flatnonzero(inside)[: n // 2], np.flatnonzero(~inside)[: n // 2]])
    return points[rows], inside[rows].astype(int)


def polygon(table, splits):
    for sides in (3, 4):
        for split in range(splits):
            X, y = polygon_data(300, sides, split)
            X_new, y_new = polygon_data(2000, sides, 100 + split)
            for name, clf in {
                "l-VCMKL": VCMKLClassifier("linear", n_rules=sides, C=10),
                "linear SVM": make_pipeline(StandardScaler(), SVC(kernel="linear", C=10)),
                "RBF SVM": make_pipeline(StandardScaler(), SVC(C=10)),
            }.items():
                key = ("polygon", f"{sides} sides", "", name, split)
                if not table.has(*key):
                    table.add(*key, "accuracy", clf.fit(X, y).score(X_new, y_new))


def pima(table, splits):
    frame = pd.read_csv(DATA / "pima" / "pima.csv")
    X, y = frame.drop(columns="label").to_numpy(float), (frame["label"] == "pos").to_numpy(int)
    halves = StratifiedShuffleSplit(splits, test_size=0.5, random_state=0)
    for split, (train, test) in enumerate(halves.split(X, y)):
        for form, nu in (("nu=0.02", 0.02), ("fixed", None)):
            for name, own in {
                "pddp as-printed": {"solver": "pddp", "objective": "as-printed"},
                "pddp opt1": {"solver": "pddp"},
                "am": {"solver": "am"},
                "sgd": {"solver": "sgd"},
                "ccp": {"solver": "ccp"},
                "linear SVM": None,
            }.items():
                key = ("pima", "pima", form, name, split)
                if (name == "sgd" and nu is not None) or table.has(*key) or table.over():
                    continue
                if own is None:
                    machine = make_pipeline(StandardScaler(), SVC(kernel="linear"))
                    if nu is None:
                        table.add(*key, "accuracy", machine.fit(X[train], y[train]).score(X[test], y[test]))
                    continue
                began = time.process_time()
                clf = VCMKLClassifier("linear", n_rules=5, nu=nu, max_iter=100, **own).fit(X[train], y[train])
                seconds = time.process_time() - began
                for measure, value in {
                    "objective": clf.primal_objective_,
                    "accuracy": clf.score(X[test], y[test]),
                    "iterations": clf.n_iter_,
                    "QP calls": clf.rules_[0]["qp_calls"],
                    "seconds": seconds,
                }.items():
                    table.add(*key, measure, value)


def sets():
    spine = pd.read_csv(DATA / "vertebral" / "vertebral_2C.csv")
    yield "Vertebral", spine.drop(columns="label"), spine["label"] == "NO"
    robot = pd.concat([pd.read_csv(DATA / "robot_failures" / f"lp{k}.csv") for k in (1, 2, 3, 4)])
    yield "Robot", robot.drop(columns="label"), robot["label"].isin(["normal", "ok"])
    vowel = pd.read_csv(DATA / "vowel" / "vowel.csv")
    yield "Vowel", vowel.drop(columns="label"), vowel["label"].isin(["hOd", "hod"])
    music = pd.read_csv(DATA / "music_geo" / "music_default68.csv")
    yield "Music", music[[f"f{j}" for j in range(68)]], music["label"].str.split("_").str[1].astype(float) >= 60


def cost(truth, predicted, ratio):
    """c1 FP P(−) + c2 FN P(+) with c2 = 1."""
    return float(np.mean(np.where(predicted & ~truth, ratio, 0.0) + (~predicted & truth)))


def folded(make, X, y, ratio):
    """Cross-validated cost on the training rows."""
    total = 0.0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        total += cost(y[test], make()(X[train], y[train])(X[test]), ratio)
    return total / FOLDS


def rules(kernel, ratio, **params):
    def fit(X, y):
        clf = VCMKLClassifier(kernel, cost_ratio=ratio, n_init=1, tol=1e-3, **params).fit(X, y)
        return clf.predict

    return lambda: fit


def best(candidates, X, y, ratio):
    scored = [(folded(make, X, y, ratio), k) for k, make in enumerate(candidates)]
    return candidates[min(scored)[1]]


def choose_rules(kernels, X, y, ratio):
    """Price, width and γ at one rule (linear: at three, as one says little), then the number of rules, one by one."""
    gammas = (None, 1 / (1 + ratio))
    first = 3 if len(kernels) == 1 else 1
    prices = PRICES if len(X) < 500 else PRICES[: len(kernels) // 2 + 2]
    grid = [{"kernel": k, "C": C, "gamma": g, "n_rules": first} for k in kernels for C in prices for g in gammas]
    scores = [folded(rules(ratio=ratio, **point), X, y, ratio) for point in grid]
    point, lowest = grid[int(np.argmin(scores))], min(scores)
    since = 0
    for n_rules in [m for m in range(1, 9 if first > 1 else 5) if m != first]:
        score = folded(rules(ratio=ratio, **(point | {"n_rules": n_rules})), X, y, ratio)
        since += 1
        if score < lowest:
            point, lowest, since = point | {"n_rules": n_rules}, score, 0
        if n_rules > first and since >= 2:
            break
    return point


def weighted(model, ratio):
    def fit(X, y):
        return model().fit(X, y, sample_weight=np.where(y, 1.0, ratio)).predict

    return lambda: fit


def svm(ratio):
    def one(C, g):
        def fit(X, y):
            pipe = make_pipeline(StandardScaler(), SVC(C=C, gamma=g, class_weight={True: 1.0, False: ratio}))
            return pipe.fit(X, y).predict

        return lambda: fit

    return one


def network(ratio, alpha):
    def fit(X, y):
        net = MLPClassifier((50,), alpha=alpha, max_iter=500, random_state=0)
        pipe = make_pipeline(StandardScaler(), net).fit(X, y)
        # The cheapest decision for the probabilities it gives.
        return lambda new: pipe.predict_proba(new)[:, 1] > ratio / (1 + ratio)

    return lambda: fit


def table2(table, splits, only=("Vertebral", "Robot", "Vowel", "Music")):
    # Splits outside, so that a run that is cut short has every set.
    for split in range(splits):
        for name, X, y in sets():
            if name not in only:
                continue
            X, y = X.to_numpy(float), y.to_numpy(bool)
            X = X[:, X.std(axis=0) > 0]
            train, test = next(StratifiedShuffleSplit(1, test_size=0.3, random_state=split).split(X, y))
            for ratio in (1.0, 4.0):
                compare(table, (name, f"1:{ratio:g}"), split, (X[train], y[train]), (X[test], y[test]), ratio)


def compare(table, setting, split, own, new, ratio):
    width = np.sqrt(own[0].shape[1])

    def chosen_rules(kernels):
        point = choose_rules(kernels, *own, ratio)
        return rules(ratio=ratio, **point)()(*own), {"rules": point["n_rules"]}

    def chosen(candidates):
        return best(candidates, *own, ratio)()(*own), {}

    def machines():
        one = svm(ratio)
        return chosen([one(C, 1 / (2 * (f * width) ** 2)) for C in PRICES for f in (0.25, 0.5, 1)])

    def boosts():
        boost = lambda n: lambda: AdaBoostClassifier(n_estimators=n, random_state=0)  # noqa: E731
        return chosen([weighted(boost(n), ratio) for n in (50, 200)])

    for method, make in {
        "l-VCMKL": lambda: chosen_rules(["linear"]),
        "rbf-VCMKL": lambda: chosen_rules([f"rbf({f * width:.6g})" for f in (0.25, 0.5, 1)]),
        "csrbf-SVM": machines,
        "AdaBoost": boosts,
        "NN": lambda: chosen([network(ratio, alpha) for alpha in (1e-4, 1e-1)]),
        "none accepted": lambda: (lambda rows: np.zeros(len(rows), bool), {}),
    }.items():
        key = ("table2", *setting, method, split)
        if table.has(*key) or table.over():
            continue
        began = time.process_time()
        predict, facts = make()
        table.add(*key, "cost", cost(new[1], predict(new[0]), ratio))
        for measure, value in (facts | {"seconds": round(time.process_time() - began, 1)}).items():
            table.add(*key, measure, value)


def size(table, splits):
    """A whole default fit of 1,000 rows with 8 Gaussian rules, in a process of its own."""
    code = (
        "import resource, time; from run import polygon_data; from mercer import VCMKLClassifier\n"
        "X, y = polygon_data(1000, 4, 0); began = time.perf_counter()\n"
        "clf = VCMKLClassifier('rbf(1)', n_rules=8).fit(X, y)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(time.perf_counter() - began, used.ru_utime, used.ru_maxrss / 2**20, clf.n_iter_)"
    )
    if table.has("size", "polygon", "l=1000 M=8 rbf", "ccp", 0):
        return
    out = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True).stdout
    for measure, value in zip(("seconds", "processor seconds", "GiB", "iterations"), out.split(), strict=True):
        table.add("size", "polygon", "l=1000 M=8 rbf", "ccp", 0, measure, value)


if __name__ == "__main__":
    known = {"polygon": polygon, "pima": pima, "size": size, "table2": table2}
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="part", default=list(known))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", help="of table2: Vertebral,Robot,Vowel,Music")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after that")
    args = parser.parse_args()
    table = Results(HERE / "got.csv", COLUMNS, KEYS, args.minutes)
    for part in args.parts:
        known[part](table, args.splits, *([args.sets.split(",")] if part == "table2" and args.sets else []))
