"""mercer beside what users would pick today, on five problems, in one run.

python benchmarks/suite.py [--problems P1,P2,P3,P5] [--repeats 5] [--threads 1] [--out FILE]

Every time is a median over the repeats and stands beside the objective it reached and its certified gap. The unit is one fit of
scikit-learn's SVC (SVR) on the averaged kernel, forming the average included, timed in the same process: ×SVC. "solver" is the time from
stored terms, "stack" a whole fit from an (n, n, M) array with its reading and checking, "raw" a whole fit from the table. Peers that are
not installed are left out and named.
"""

import argparse
import os
import platform
import sys
import time
import warnings

threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = threads

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification  # noqa: E402
from sklearn.svm import SVC, SVR  # noqa: E402

import mercer  # noqa: E402

BANK = "rbf(2^-3..2^6), poly(1..3) on all, each"


class Problem:
    """Training rows, what is learned, and the kernels as text or as matrices."""

    def __init__(self, name, X, y, C, *, bank=None, gammas=None, views=None, normalize="none", regression=False):
        self.name, self.X, self.y, self.C, self.bank, self.normalize = name, X, y, C, bank, normalize
        self.regression = regression
        if bank:
            grams = mercer.gram(X, bank, normalize=normalize)
        else:
            grams = [np.exp(-g * _distances(v)) for v, gs in zip(views, gammas, strict=True) for g in gs]
        self.K = np.ascontiguousarray(np.moveaxis(grams, 0, 2)) if isinstance(grams, list) else np.asarray(grams)
        self.stack = np.ascontiguousarray(np.moveaxis(self.K, 2, 0))  # as the peers like it


def _distances(x):
    squares = (x * x).sum(1)
    return np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0)


def standardised(x):
    spread = x.std(0)
    return (x - x.mean(0)) / np.where(spread > 0, spread, 1)


def problem(name):
    if name == "P1":  # Toy 1 of the GMKL paper
        rng = np.random.default_rng(1)
        X = rng.random((150, 20))
        signal = (-2 * np.sin(2 * X[:, :3]) + 1 - np.cos(2)).sum(1) + rng.standard_normal(150)
        return Problem(name, X, np.where(signal >= 0, 1, -1), 100.0, bank=BANK, normalize="trace")
    if name == "P2":
        X, y = load_breast_cancer(return_X_y=True)
        rows = np.random.default_rng(2).permutation(len(y))[:284]
        return Problem(name, standardised(X[rows]), np.where(y[rows] == 1, 1, -1), 100.0, bank=BANK, normalize="trace")
    if name == "P3":
        X, t = load_digits(return_X_y=True)
        rows = np.random.default_rng(3).permutation(len(t))[:1000]
        X, y = X[rows] / 16, np.where(t[rows] % 2 == 0, 1, -1)
        image = X.reshape(-1, 8, 8)
        cuts = [(slice(0, 8), slice(0, 8)), *((a, b) for a in (slice(0, 4), slice(4, 8)) for b in (slice(0, 4), slice(4, 8)))]
        views = [image[:, a, b].reshape(len(image), -1) for a, b in cuts]
        gammas = [[k / (2 * v.var(0).sum()) for k in (0.25, 1, 4, 16)] for v in views]
        return Problem(name, X, y, 1.0, views=views, gammas=gammas)
    if name == "P4":
        X, t = make_classification(
            5000, 50, n_informative=15, n_redundant=10, n_clusters_per_class=4, flip_y=0.02, random_state=4
        )
        X = standardised(X)
        return Problem(name, X, np.where(t == 1, 1, -1), 1.0, views=[X], gammas=[list(np.logspace(-2, 1, 10) / 100)])
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(5).permutation(len(y))[:300]
    X, y = standardised(X[rows]), standardised(y[rows])
    views = [*(X[:, [j]] for j in range(X.shape[1])), X]
    gammas = [[0.5]] * X.shape[1] + [[1 / (2 * X.shape[1])]]
    return Problem(name, X, y, 1.0, views=views, gammas=gammas, regression=True)


def reference(p):
    """One SVC on the averaged kernel."""
    K = p.stack.mean(axis=0)
    machine = SVR(kernel="precomputed", C=p.C, epsilon=0.1) if p.regression else SVC(kernel="precomputed", C=p.C)
    return machine.fit(K, p.y)


def wrapper_l2(p, stack=None):
    """What one writes in an afternoon: alternation of an SVC and the closed form of the weights, to a gap of 1e-3."""
    stack = p.stack if stack is None else stack
    M, n = stack.shape[0], stack.shape[1]
    theta, low, best, tol = np.full(M, M**-0.5), -np.inf, np.inf, 1e-3
    for iterations in range(1, 100):
        K = np.tensordot(theta, stack, 1)
        machine = SVC(kernel="precomputed", C=p.C, tol=tol, cache_size=400).fit(K, p.y)
        a = np.zeros(n)
        a[machine.support_] = machine.dual_coef_[0]
        s = np.maximum((stack.reshape(M * n, n) @ a).reshape(M, n) @ a, 0)
        f = K @ a
        kinks = np.sort(p.y - f)
        loss = min(np.maximum(0, 1 - p.y * (f + b)).sum() for b in (kinks if n < 500 else [machine.intercept_[0]]))
        inner = 0.5 * theta @ s
        primal, dual = inner + p.C * loss, (a * p.y).sum() - 0.5 * np.linalg.norm(s)
        best, low = min(best, primal), max(low, dual)
        if best - low <= 1e-3 * best:
            break
        if primal - ((a * p.y).sum() - inner) > 0.3 * (best - low):
            tol = max(0.1 * tol, 1e-8)
        norms = (theta * np.sqrt(s)) ** (2 / 3)
        theta = norms / np.linalg.norm(norms)
    return best, (best - low) / best, iterations, int((theta > 1e-6 * theta.max()).sum())


def numpy_grams(p):
    """The bank of P1 and P2 as one writes it in NumPy: unit trace, f64, one matrix a kernel."""
    stack = []
    for v in (p.X, *(p.X[:, [j]] for j in range(p.X.shape[1]))):
        d, products = _distances(v), v @ v.T
        stack += [np.exp(-d / (2 * 4.0**e)) for e in range(-3, 7)]
        stack += [(products + 1) ** k for k in (1, 2, 3)]
    return np.stack([k / np.trace(k) for k in stack])


def easy_mkl(p):
    from MKLpy.algorithms import EasyMKL

    EasyMKL(lam=0.1).fit(list(p.stack), p.y)
    return np.nan, np.nan, 1, p.K.shape[2]


def ours(p):
    kind = "Regressor" if p.regression else "Classifier"
    extra = {"epsilon": 0.1} if p.regression else {}
    settings = {
        "uniform": ("UniformMKL", {}),
        "gmkl": ("GMKL", {"v": 0.5}),
        "l2": ("LpMKL", {"p": 2}),
        "l1": ("LpMKL", {"p": 1}),
        "smkl": ("SMKL", {}),
        "clmkl": ("CLMKL", {"p": 4 / 3, "evenness": 0.5}),
    }
    for name, (method, own) in settings.items():
        yield name, getattr(mercer, method + kind), {"C": p.C, "n_jobs": int(threads), **own, **extra}


def timed(work, repeats, limit=60.0):
    seconds, result = [], None
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > limit:
            break
    return float(np.median(seconds)), result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", default="P1,P2,P3,P5")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--out", default=None)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    out = open(args.out, "w") if args.out else sys.stdout
    say = lambda *text: print(*text, file=out, flush=True)  # noqa: E731
    say(f"mercer {mercer.__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}, Python {platform.python_version()}, ")
    say(f"{platform.machine()}, {os.cpu_count()} cores, {threads} thread(s); medians of up to {args.repeats} runs.\n")
    for name in args.problems.split(","):
        p = problem(name)
        unit, _ = timed(lambda: reference(p), args.repeats)
        n, _, M = p.K.shape
        say(f"### {name}: {n} rows, {M} kernels, C = {p.C:g}; one SVC {1e3 * unit:.1f} ms\n")
        say("| method | solver ×SVC | stack ×SVC | raw ×SVC | raw (s) | objective | gap | iterations | kernels |")
        say("|---|---|---|---|---|---|---|---|---|")
        for method, estimator, params in ours(p):
            solver = []

            def fit(estimator=estimator, params=params, solver=solver):
                model = estimator("precomputed", normalize=None, **params).fit(p.K, p.y)
                solver.append(model.trace_[-1]["seconds"])
                return model

            stack, model = timed(fit, args.repeats)
            raw = float("nan")
            if p.bank:
                whole = {"normalize": p.normalize, "standardize": False, **params}
                raw, model = timed(lambda e=estimator, w=whole: e(p.bank, **w).fit(p.X, p.y), args.repeats)
            used = int((np.asarray(model.kernel_weights_) > 0).sum())
            say(
                f"| mercer {method} | {np.median(solver) / unit:.1f} | {stack / unit:.1f} | {raw / unit:.1f} | {raw:.3f} "
                f"| {model.primal_objective_:.6g} | {model.duality_gap_:.1e} | {model.n_iter_} | {used} |"
            )
        for method, peer in {"NumPy + SVC, l2": wrapper_l2, "MKLpy EasyMKL": easy_mkl}.items():
            if p.regression:
                continue
            try:
                seconds, (objective, gap, iterations, used) = timed(lambda peer=peer: peer(p), args.repeats)
            except ImportError as e:
                say(f"| {method} | not installed: {e} |")
                continue
            raw, other = float("nan"), objective
            if p.bank and peer is wrapper_l2:
                raw, (other, *_) = timed(lambda: wrapper_l2(p, numpy_grams(p)), args.repeats)
            assert not abs(other - objective) > 2e-3 * abs(objective), "the kernels of NumPy are others"
            say(
                f"| {method} | – | {seconds / unit:.1f} | {raw / unit:.1f} | {raw:.3f} "
                f"| {objective:.6g} | {gap:.1e} | {iterations} | {used} |"
            )
        say()


if __name__ == "__main__":
    main()
