"""Several classes: weights of each machine's own, or one weight vector for all.

    python benchmarks/several_classes.py [REPEATS]

Prints the tables of docs/guide/several-classes.md. `MERCER_DATA_DIR` (default ../shared/data) holds the sets:
`glass/glass.csv` (UCI Glass, 214 rows, 9 columns, 6 classes) and `mfeat_digits/mfeat_6views.npz` (UCI Multiple Features, six
descriptions of 2000 handwritten digits).
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedShuffleSplit

from mercer import GMKLClassifier, LpMKLClassifier, UniformMKLClassifier

DATA = Path(os.environ.get("MERCER_DATA_DIR", "../shared/data"))
METHODS = {
    "uniform": lambda **params: UniformMKLClassifier(**params),
    "l2": lambda **params: LpMKLClassifier(p=2, **params),
    "gmkl": lambda **params: GMKLClassifier(v=0.5, **params),
    "l1": lambda **params: LpMKLClassifier(p=1, **params),
}


def glass():
    table = pd.read_csv(DATA / "glass" / "glass.csv")
    X, y = table.drop(columns="label"), table["label"].to_numpy()
    # The protocol of the ℓp-GLMKL paper: one Gaussian per feature, four fifths for training.
    return lambda rows: X.iloc[rows], y, "rbf(1) on each", {"train_size": 0.8}


def mfeat():
    arrays = np.load(DATA / "mfeat_digits" / "mfeat_6views.npz")
    names = [name for name in arrays.files if arrays[name].ndim == 2]
    y = next(arrays[name] for name in arrays.files if arrays[name].ndim == 1)
    views = {name: arrays[name].astype(float) for name in names}
    bank = "; ".join(f"linear, rbf(auto) on view({name})" for name in names)
    return lambda rows: {name: X[rows] for name, X in views.items()}, y, bank, {"train_size": 200, "test_size": 1000}


def carrying(weights):
    """How many kernels, the heaviest first, carry 99 % of the weight, summed over machines: as the program counts them."""
    heaviest = np.sort(weights.sum(axis=0))[::-1]
    return 1 + np.count_nonzero(np.cumsum(heaviest) < 0.99 * heaviest.sum())


def main(repeats):
    for title, (rows, y, bank, sizes) in {"Glass": glass(), "mfeat": mfeat()}.items():
        splits = list(StratifiedShuffleSplit(repeats, random_state=0, **sizes).split(np.zeros(len(y)), y))
        print(f"\n{title}: {len(splits[0][0])} rows for training, {repeats} splits, C = 10, kernels: {bank}\n")
        print("| method | machines | weights | accuracy | kernels used | carry 99 % | seconds a fit | largest gap |")
        print("|---|---|---|---|---|---|---|---|")
        for name, make in METHODS.items():
            for multi_class in ("ovr", "ovo"):
                for shared in (False,) if name == "uniform" else (False, True):
                    scores, used, heavy, seconds, gaps = [], [], [], [], []
                    for train, test in splits:
                        clf = make(kernels=bank, C=10, multi_class=multi_class, shared_weights=shared)
                        began = time.perf_counter()
                        clf.fit(rows(train), y[train])
                        seconds.append(time.perf_counter() - began)
                        scores.append(100 * clf.score(rows(test), y[test]))
                        weights = np.atleast_2d(clf.kernel_weights_)
                        used.append((weights > 0).any(axis=0).sum())
                        heavy.append(carrying(weights))
                        gaps.append(clf.duality_gap_)
                    kind = "the same" if name == "uniform" else "shared" if shared else "of their own"
                    print(
                        f"| {name} | {multi_class} | {kind} | {np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f} | "
                        f"{np.mean(used):.1f} of {len(clf.kernel_names_)} | "
                        f"{np.mean(heavy):.1f} | {np.median(seconds):.2f} | {max(gaps):.1e} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
