"""Splice sites of C. elegans with 20 weighted-degree kernels: Table 1 of the CLMKL paper.

python reproduce/clmkl/run.py [--repeats 20] [--sizes 50,100,200,400,800] [--minutes 60]

Rows of got.csv are written as they come: one per method, size and repeat; those that are there already are kept. Needs
the data folder (MERCER_DATA_DIR).
"""

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from mercer import CLMKLClassifier, HLMKLClassifier, LMKLClassifier, LpMKLClassifier, UniformMKLClassifier

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from common import DATA, Results  # noqa: E402

DEGREES = 20
PRICES = [0.1, 1.0, 10.0, 100.0]
EVENNESS = [0.4, 0.6, 0.8]


def weighted_degree(sequences, degrees):
    """Gram matrices of the weighted-degree kernels of degree 1 to `degrees`, kernel axis last.

    A match of length k at the same position counts 2 (d − k + 1) / (d (d + 1)) in the kernel of degree d.
    """
    letters = np.array([list(s) for s in sequences])
    same = letters[:, None, :] == letters[None, :, :]
    run, counts = same.copy(), []
    for k in range(1, degrees + 1):
        counts.append(run.sum(axis=-1, dtype=np.float64))
        run = run[:, :, :-1] & same[:, :, k:]
    weight = lambda d, k: 2 * (d - k + 1) / (d * (d + 1))  # noqa: E731
    return np.stack([sum(weight(d, k) * counts[k - 1] for k in range(1, d + 1)) for d in range(1, degrees + 1)], -1)


def candidates(name):
    """Every setting of a method that the validation rows choose from."""
    for C in PRICES:
        common = {"kernels": "precomputed", "C": C}
        if name == "UNIF":
            yield UniformMKLClassifier(**common)
        elif name == "LMKL":
            yield LMKLClassifier(**common, max_iter=50)
        else:
            method, p = name.split(" p=")
            if method == "MKL":
                yield LpMKLClassifier(**common, p=float(p))
            elif method == "HLMKL":
                yield HLMKLClassifier(**common, p=float(p))
            else:
                for e in EVENNESS:
                    yield CLMKLClassifier(**common, p=float(p), evenness=e)


METHODS = ["UNIF", "MKL p=1", "MKL p=1.333", "LMKL", "HLMKL p=1", "HLMKL p=1.333", "CLMKL p=1", "CLMKL p=1.333"]


def one_split(K, y, n, repeat, results):
    """Rows of got.csv for one random split: n rows to learn from, half of the rest to choose by, half to test."""
    order = np.random.default_rng([repeat, n]).permutation(len(y))
    train, rest = order[:n], order[n:]
    valid, test = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    stack, checks, tests = (np.ascontiguousarray(K[np.ix_(r, train)]) for r in (train, valid, test))
    for name in METHODS:
        if results.has(n, repeat, name):
            continue
        best, began = None, time.process_time()
        for clf in candidates(name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    clf.fit(stack, y[train])
                except ValueError as e:  # an evenness that the clusters cannot reach
                    if "evenness" not in str(e):
                        raise
                    continue
            score = roc_auc_score(y[valid], clf.decision_function(checks))
            if best is None or score > best[0]:
                best = (score, clf)
        auc = roc_auc_score(y[test], best[1].decision_function(tests))
        chosen = f"C={best[1].C} evenness={getattr(best[1], 'evenness', None)}"
        seconds = f"{time.process_time() - began:.1f}"
        gap = f"{best[1].duality_gap_:.1e}"
        results.add(n, repeat, name, f"{100 * auc:.3f}", chosen, gap, best[1].status_, seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sizes", default="50,100,200,400,800")
    parser.add_argument("--minutes", type=float, default=60, help="begin no split after that")
    parser.add_argument("--out", type=Path, default=HERE / "got.csv")
    args = parser.parse_args()
    columns = ["n", "repeat", "method", "auc", "chosen", "gap", "status", "seconds"]
    results = Results(args.out, columns, ["n", "repeat", "method"], args.minutes)
    with open(DATA / "splice_celegans" / "celegans_mklsplice_like_1000.csv", newline="") as f:
        data = list(csv.DictReader(f))
    y = np.array([1 if float(r["label"]) > 0 else -1 for r in data])
    K = weighted_degree([r["sequence"] for r in data], DEGREES)
    # Repeats outside, so that a run that is cut short has every size.
    for repeat in range(args.repeats):
        for n in map(int, args.sizes.split(",")):
            if not results.over():
                one_split(K, y, n, repeat, results)


if __name__ == "__main__":
    main()
