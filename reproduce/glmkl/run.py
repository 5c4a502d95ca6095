"""Eight UCI sets with one Gaussian kernel per feature: Table 2 of the ℓp-GLMKL paper.

python reproduce/glmkl/run.py [--repeats 10] [--rows 1000] [--sets heart,liver,...] [--minutes 60]

80 % of the rows are for training, 20 % for testing. Parameters are chosen on training rows alone, by a quarter of them
held out; then the fit is repeated on all. The width is half the mean squared distance of the feature, which is rbf(1) on
a standardised column. Rows of got.csv are written as they come; those that are there already are kept. Needs the data
folder (MERCER_DATA_DIR).
"""

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from mercer import GLMKLClassifier, GSMKLClassifier, LMKLClassifier, LpMKLClassifier

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from common import DATA, Results  # noqa: E402

SETS = {
    "heart": "heart_statlog/heart_statlog.csv",
    "liver": "liver_bupa/liver_bupa.csv",
    "glass": "glass/glass.csv",
    "ionosphere": "ionosphere/ionosphere.csv",
    "sonar": "sonar/sonar.csv",
    "pima": "pima/pima.csv",
    "wdbc": "wdbc/wdbc.csv",
    "spambase": "spambase/spambase.csv",
}
PRICES = [0.1, 1.0, 10.0]
#: Gated fits are not convex: beyond this, parameters and splits matter more than the last digits of a local minimum.
COMMON = {"kernels": "rbf(1) on each", "max_iter": 50, "tol": 1e-2}


def read(name):
    with open(DATA / SETS[name], newline="") as f:
        rows = list(csv.reader(f))
    names, rows = rows[0], rows[1:]
    at = names.index("label") if "label" in names else len(names) - 1
    X = np.array([[float(v) for j, v in enumerate(r) if j != at] for r in rows])
    return X[:, X.std(axis=0) > 0], np.array([r[at] for r in rows])


def candidates(name):
    for C in PRICES:
        if name == "l1":
            yield LpMKLClassifier(COMMON["kernels"], C=C, p=1)
        elif name == "lmkl":
            yield LMKLClassifier(**COMMON, C=C)
        elif name == "gsmkl":
            yield from (GSMKLClassifier(**COMMON, C=C, n_groups=g) for g in (2, 5))
        else:
            yield from (GLMKLClassifier(**COMMON, C=C, n_groups=g, p=p) for g in (1, 5) for p in (2.0, 4.0))


def one_fit(name, repeat, method, limit):
    """A row of got.csv: the parameters chosen on training rows, and the accuracy on the others."""
    X, y = read(name)
    A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=repeat, stratify=y)
    A, a = A[:limit], a[:limit]
    A1, A2, a1, a2 = train_test_split(A, a, test_size=0.25, random_state=repeat, stratify=a)
    # A column that is constant on the rows to choose by has no kernel.
    kept = np.ptp(A1, axis=0) > 0
    began, best = time.process_time(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for clf in candidates(method):
            score = clf.fit(A1[:, kept], a1).score(A2[:, kept], a2)
            if best is None or score > best[0]:
                best = (score, clf)
        clf = clone(best[1]).fit(A[:, kept], a)
    keys = [k for k in ("C", "n_groups", "p") if k in clf.get_params()]
    chosen = " ".join(f"{k}={clf.get_params()[k]}" for k in keys)
    accuracy = f"{100 * clf.score(B[:, kept], b):.3f}"
    return [name, repeat, method, accuracy, chosen, clf.status_, f"{time.process_time() - began:.1f}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1000, help="training rows at most")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--minutes", type=float, default=60, help="begin no row after that")
    parser.add_argument("--out", type=Path, default=HERE / "got.csv")
    args = parser.parse_args()
    columns = ["set", "repeat", "method", "accuracy", "chosen", "status", "seconds"]
    results = Results(args.out, columns, ["set", "repeat", "method"], args.minutes)
    # Repeats outside, so that a run that is cut short has every set.
    for repeat in range(args.repeats):
        for name in args.sets.split(","):
            for method in ("l1", "lmkl", "gsmkl", "glmkl"):
                if not results.has(name, repeat, method) and not results.over():
                    results.add(*one_fit(name, repeat, method, args.rows))


if __name__ == "__main__":
    main()
