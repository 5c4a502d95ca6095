"""What users would pick today: wrappers around scikit-learn that one writes in an afternoon, and packages.

The wrappers solve the problems of GMKL, l2 and l1 to a certified relative gap of 1e-3. They take the stack (M, n, n)
and return objective, gap, iterations and kernels used. The packages solve problems of their own: objectives are not
comparable, and their numbers are NaN.
"""

import numpy as np
from problems import EPSILON
from scipy.optimize import linprog, minimize
from sklearn.svm import SVC, SVR

TOL = 1e-3


class Machine:
    """SVC or SVR on a ready-made kernel, with both objectives."""

    def __init__(self, p, tol=1e-3):
        self.p, self.tol = p, tol

    def fit(self, K):
        """The fitted estimator."""
        settings = {"kernel": "precomputed", "C": self.p.C, "tol": self.tol, "cache_size": 400}
        return (SVR(epsilon=EPSILON, **settings) if self.p.regression else SVC(**settings)).fit(K, self.p.y)

    def multipliers(self, K):
        """Signed, one per row."""
        fitted, a = self.fit(K), np.zeros(len(self.p.y))
        a[fitted.support_] = fitted.dual_coef_[0]
        return a

    def libsvm(self, K):
        """The same without the checks that scikit-learn makes of its arguments: for the clock."""
        from sklearn.svm import _libsvm

        settings = {"C": self.p.C, "tol": self.tol, "cache_size": 400.0, "epsilon": EPSILON}
        kind = 3 if self.p.regression else 0
        support, _, _, coef, *_ = _libsvm.fit(K, self.p.y.astype(float), kind, "precomputed", **settings)
        a = np.zeros(len(K))
        a[support] = coef[0]
        return a if a @ self.p.y > 0 else -a  # it counts classes from the first

    def dual_sum(self, a):
        """A(a)."""
        return a @ self.p.y - (EPSILON * np.abs(a).sum() if self.p.regression else 0)

    def loss(self, f):
        """C Σ loss at the bias that is best for f: the kink where the slope turns positive."""
        y, n = self.p.y, len(self.p.y)
        if self.p.regression:
            b = np.partition(np.concatenate([y - f - EPSILON, y - f + EPSILON]), n - 1)[n - 1]
            return self.p.C * np.maximum(0, np.abs(y - f - b) - EPSILON).sum()
        above = int((y > 0).sum())
        b = np.partition(y - f, above - 1)[above - 1]
        return self.p.C * np.maximum(0, 1 - y * (f + b)).sum()

    def tighten(self, own, total):
        """Solves more exactly where the machine's own gap is much of the total."""
        if own > 0.3 * total:
            self.tol = max(0.1 * self.tol, 1e-8)


def visit(machine, stack, theta):
    """The machine at θ: primal, A(a) and s_m = aᵀK_m a."""
    M, n = stack.shape[:2]
    K = np.tensordot(theta, stack, 1)
    a = machine.multipliers(K)
    s = np.maximum((stack.reshape(M * n, n) @ a).reshape(M, n) @ a, 0)
    return 0.5 * theta @ s + machine.loss(K @ a), machine.dual_sum(a), s


def answer(best, low, iterations, theta):
    return best, (best - low) / best, iterations, int((theta > 1e-6 * theta.max()).sum())


def wrapper_l2(p, stack):
    """‖θ‖₂ ≤ 1: machine and closed-form weights in turn."""
    machine, M = Machine(p), len(stack)
    theta, low, best = np.full(M, M**-0.5), -np.inf, np.inf
    for iterations in range(1, 200):  # noqa: B007, read after the loop
        primal, value, s = visit(machine, stack, theta)
        best, low = min(best, primal), max(low, value - 0.5 * np.linalg.norm(s))
        if best - low <= TOL * best:
            break
        machine.tighten(primal - value + 0.5 * theta @ s, best - low)
        norms = (theta * np.sqrt(s)) ** (2 / 3)
        theta = norms / np.linalg.norm(norms)
    return answer(best, low, iterations, theta)


def support_point(s, v):
    """argmax of ⟨s, θ⟩ over θ ≥ 0, v Σθ + (1 − v) Σθ² ≤ 1."""
    if v == 1:
        return (np.arange(len(s)) == s.argmax()).astype(float)
    order = np.sort(s)[::-1]
    price = np.sqrt(np.cumsum(order**2) / (4 * (1 - v) + v * v * np.arange(1, len(s) + 1)))
    kept = price[np.flatnonzero(order > v * price)[-1]]
    return np.maximum(s / kept - v, 0) / (2 * (1 - v))


def lower_bound(values, slopes, v):
    """Multipliers of cuts value − ⟨slope, θ⟩ whose combination is the best bound over all θ."""
    t, M = slopes.shape
    if v == 1:
        cost = np.r_[np.zeros(M), 1.0]
        rows = np.vstack([np.c_[-slopes, -np.ones(t)], np.r_[np.ones(M), 0.0]])
        found = linprog(cost, rows, np.r_[-values, 1.0], bounds=[(0, None)] * M + [(None, None)])
        mu = np.maximum(-found.ineqlin.marginals[:t], 0) if found.success else np.ones(t)
    else:

        def negative(mu):
            theta = support_point(slopes.T @ mu, v)
            rest = values - slopes @ theta
            return -mu @ rest, -rest

        budget = {"type": "eq", "fun": lambda mu: mu.sum() - 1, "jac": np.ones_like}
        start, limits = np.full(t, 1 / t), [(0, 1)] * t
        found = minimize(negative, start, jac=True, method="SLSQP", bounds=limits, constraints=budget, tol=1e-6)
        mu = np.maximum(found.x, 0)
    mu /= mu.sum()
    slope = slopes.T @ mu
    return mu @ values - slope @ support_point(slope, v)


def nearest(theta, values, slopes, level, v):
    """The point of Θ nearest to θ where every cut lies below the level, by the dual of this projection."""
    size = np.linalg.norm(slopes, axis=1)
    rows, sides = slopes / size[:, None], (values - level) / size

    def point(x):
        return np.maximum(theta + rows.T @ x[:-1] - x[-1] * v, 0) / (1 + 2 * x[-1] * (1 - v))

    def negative(x):
        new = point(x)
        slack = np.r_[sides - rows @ new, v * new.sum() + (1 - v) * new @ new - 1]
        return -0.5 * (new - theta) @ (new - theta) - x @ slack, -slack

    start = np.zeros(len(sides) + 1)
    settings = {"maxiter": 2000, "maxcor": 30, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start), options=settings)
    new = point(found.x)
    new[new < 1e-7 * new.max()] = 0
    load = v * new.sum() + (1 - v) * new @ new
    return new / load if load > 1 else new


def wrapper_level(p, stack, v):
    """v Σθ + (1 − v) Σθ² ≤ 1 by the level method, a level in the middle."""
    machine, M = Machine(p), len(stack)
    c = 1 / M if v == 1 else (-v + np.sqrt(v * v + 4 * (1 - v) / M)) / (2 * (1 - v))
    theta, low, best, kept = np.full(M, c), -np.inf, np.inf, None
    values, slopes = [], []
    for iterations in range(1, 200):  # noqa: B007, read after the loop
        primal, value, s = visit(machine, stack, theta)
        values.append(value)
        slopes.append(0.5 * s)
        low = max(low, value - 0.5 * s @ support_point(s, v))
        if primal < best:
            best, kept = primal, theta
        machine.tighten(primal - value + 0.5 * theta @ s, best - low)
        cuts = np.array(values) / best, np.array(slopes) / best
        if best - low > TOL * best:
            low = max(low, best * lower_bound(*cuts, v))
        if best - low <= TOL * best:
            break
        theta = nearest(theta, *cuts, 0.5 * (low + best) / best, v)
    return answer(best, low, iterations, kept)


def wrapper_gmkl(p, stack):
    return wrapper_level(p, stack, 0.5)


def wrapper_l1(p, stack):
    return wrapper_level(p, stack, 1)


def easy_mkl(p, stack):
    """MKLpy's EasyMKL: one margin problem gives the weights, an SVC the machine."""
    import torch
    from MKLpy.algorithms import EasyMKL

    if p.regression:
        raise NotImplementedError("classification only")
    grams, y = [torch.from_numpy(K) for K in stack], torch.from_numpy(p.y.astype(np.int64))
    model = EasyMKL(lam=0.1, learner=SVC(kernel="precomputed", C=p.C)).fit(grams, y)
    weights = np.asarray(model.solution.weights)
    return np.nan, np.nan, 1, int((weights > 1e-6 * weights.max()).sum())


def himalaya_ridge(p, stack):
    """himalaya's kernel ridge: 100 random points of the simplex, seven penalties, five folds; labels as ±1."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    search = {"n_iter": 100, "alphas": np.logspace(-3, 3, 7), "progress_bar": False}
    model = MultipleKernelRidgeCV("precomputed", solver="random_search", solver_params=search, cv=5, random_state=0)
    model.fit(stack, (p.y - p.y.mean())[:, None].astype(float))
    weights = np.exp(np.ravel(model.deltas_))
    return np.nan, np.nan, 100, int((weights > 1e-6 * weights.max()).sum())


def celer_lasso(p, stack):
    """celer's group lasso, squared loss, on eigen-features of every kernel, at a twentieth of the largest penalty."""
    from celer import GroupLasso

    blocks = []
    for K in stack:
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-8 * values[-1]
        blocks.append(vectors[:, kept] * np.sqrt(values[kept]))
    y = p.y - p.y.mean()
    largest = max(np.linalg.norm(b.T @ y) for b in blocks) / len(y)
    sizes = [b.shape[1] for b in blocks]
    model = GroupLasso(sizes, alpha=0.05 * largest, tol=1e-4, fit_intercept=False)
    model.fit(np.asfortranarray(np.hstack(blocks)), y)
    parts = np.split(model.coef_, np.cumsum(sizes)[:-1])
    return np.nan, np.nan, int(np.max(model.n_iter_)), sum(bool(w.any()) for w in parts)


WRAPPERS = {"gmkl": wrapper_gmkl, "l2": wrapper_l2, "l1": wrapper_l1}
PACKAGES = {"MKLpy EasyMKL": easy_mkl, "himalaya ridge": himalaya_ridge, "celer group lasso": celer_lasso}
