"""The peers of Table 2 from scikit-learn: a Gaussian SVM, a network, boosting, and accepting nobody.

python reproduce/vcmkl/peers.py [--splits 5] [--sets Vowel,...] [--minutes 60]

Adds rows to the got.csv beside this file, one per set, cost, method and split; those that are there already are not made
again. Parameters are chosen by 3 folds of the training rows. Data sets are read from the folder that MERCER_DATA_DIR names.
`mercer reproduce vcmkl` makes the other rows, and the page of all.
"""

from __future__ import annotations

import argparse
import csv
import os
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

GOT = Path(__file__).resolve().parent / "got.csv"
DATA = Path(os.environ.get("MERCER_DATA_DIR", GOT.parents[2] / ".." / "shared" / "data"))
FOLDS = 3
PRICES = (1, 10, 100, 1000)
warnings.filterwarnings("ignore")


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


def svm(ratio, C, gamma):
    weight = {True: 1.0, False: ratio}
    return lambda X, y: make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma, class_weight=weight)).fit(X, y).predict


def boost(ratio, n):
    weight = lambda y: np.where(y, 1.0, ratio)  # noqa: E731
    return lambda X, y: AdaBoostClassifier(n_estimators=n, random_state=0).fit(X, y, sample_weight=weight(y)).predict


def network(ratio, alpha):
    def fit(X, y):
        net = MLPClassifier((50,), alpha=alpha, max_iter=500, random_state=0)
        pipe = make_pipeline(StandardScaler(), net).fit(X, y)
        # The cheapest decision for the probabilities it gives.
        return lambda new: pipe.predict_proba(new)[:, 1] > ratio / (1 + ratio)

    return fit


def peers(columns, ratio):
    """Settings of every peer; each is a function of training rows that gives a predictor."""
    width = np.sqrt(columns)
    gammas = [1 / (2 * (f * width) ** 2) for f in (0.25, 0.5, 1)]
    return {
        "csrbf-SVM": [svm(ratio, C, g) for C in PRICES for g in gammas],
        "NN": [network(ratio, alpha) for alpha in (1e-4, 1e-1)],
        "AdaBoost": [boost(ratio, n) for n in (50, 200)],
        "none accepted": [lambda X, y: lambda new: np.zeros(len(new), bool)],
    }


def best(settings, X, y, ratio):
    """The setting with the least cross-validated cost on the training rows."""
    if len(settings) == 1:
        return settings[0]

    def folded(fit):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)
        return sum(cost(y[b], fit(X[a], y[a])(X[b]), ratio) for a, b in folds)

    return min(settings, key=folded)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", default="Vertebral,Robot,Vowel,Music")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after that")
    args = parser.parse_args()
    end = time.time() + 60 * args.minutes
    with GOT.open(newline="") as f:
        reader = csv.DictReader(f)
        header = reader.fieldnames
        known = {(r["part"], r["method"], r["split"]) for r in reader}
    # Splits outside, so that a run that is cut short has every set.
    for split in range(args.splits):
        for name, X, y in sets():
            if name not in args.sets.split(","):
                continue
            X, y = X.to_numpy(float), y.to_numpy(bool)
            X = X[:, X.std(axis=0) > 0]
            train, test = next(StratifiedShuffleSplit(1, test_size=0.3, random_state=split).split(X, y))
            for ratio in (1, 4):
                for method, settings in peers(X.shape[1], ratio).items():
                    key = {"part": f"{name.lower()}-1to{ratio}", "method": method, "split": str(split)}
                    if tuple(key.values()) in known or time.time() > end:
                        continue
                    began = time.process_time()
                    predict = best(settings, X[train], y[train], ratio)(X[train], y[train])
                    score = cost(y[test], predict(X[test]), ratio)
                    row = key | {"score": score, "seconds": f"{time.process_time() - began:.4f}"}
                    with GOT.open("a", newline="") as f:
                        csv.DictWriter(f, header, restval="", lineterminator="\n").writerow(row)
                    print(row, flush=True)


if __name__ == "__main__":
    main()
