"""Rows predicted per second, beside scikit-learn's SVC on the same rows with the same kernel and C.

    python benchmarks/predict.py [TRAINING_ROWS [NEW_ROWS]]

Twenty standard normal columns, a class with products and squares in it, C = 0.01, both solved to 1e-6. Processor time on one
thread, best of three.
"""

import sys
import time

import numpy as np
from sklearn.svm import SVC

from mercer import UniformMKLClassifier


def data(n, rng):
    X = rng.normal(size=(n, 20))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + X[:, 2] * X[:, 3]
    return X, (signal + 0.5 * rng.normal(size=n) > 0).astype(int)


def rate(model, X):
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        model.decision_function(X)
        best = min(best, time.process_time() - began)
    return len(X) / best


def main(n=2000, n_new=50_000):
    rng = np.random.default_rng(7)
    (X, y), (new, _) = data(n, rng), data(n_new, rng)
    print("| kernel | support rows, SVC / mercer | rows/s, SVC | rows/s, mercer | ratio | decisions differ by |")
    print("|---|---|---|---|---|---|")
    for bank, svc in [
        ("rbf(4)", SVC(gamma=1 / 32, C=0.01, tol=1e-6)),
        ("linear", SVC(kernel="linear", C=0.01, tol=1e-6)),
        ("poly(2)", SVC(kernel="poly", degree=2, gamma=1, coef0=1, C=0.01, tol=1e-6)),
    ]:
        ours = UniformMKLClassifier(bank, C=0.01, normalize=None, standardize=False, n_jobs=1, tol=1e-6).fit(X, y)
        svc.fit(X, y)
        theirs, own = rate(svc, new), rate(ours, new)
        apart = np.abs(svc.decision_function(new[:1000]) - ours.decision_function(new[:1000])).max()
        print(
            f"| `{bank}` | {len(svc.support_)} / {len(ours.support_)} | {theirs:,.0f} | {own:,.0f} "
            f"| {own / theirs:.1f} | {apart:.1e} |"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
