"""
Where kernels matter
====================

Four Gaussians in the plane, two per class (the synthetic set of the ℓp-GLMKL paper, 400 rows), and two kernels, `linear` and
`poly(2)`. What do kernel weights that depend on where a row lies change in the boundary, against that of Bayes' rule?

With `linear` and `poly(1)`, which the paper names, nothing: the two kernels hold the same functions, and every method draws a line.

Run it as ``python plot_06_where_kernels_matter.py [FIGURE.png]``. Without matplotlib, or without a file name, it only prints.
"""

import sys

import numpy as np

from mercer import CLMKLClassifier, GLMKLClassifier, GSMKLClassifier, LMKLClassifier, LpMKLClassifier

# %%
# The data, with the rule that knows their distribution.

MEANS = np.array([[-1.0, 1.0], [3.0, 1.0], [-3.0, -3.0], [1.0, -3.0]])
VARIANCES = np.array([[0.8, 4.0], [0.8, 4.0], [0.8, 2.0], [0.8, 2.0]])


def draw(n, rng):
    component = np.arange(n) % 4
    X = MEANS[component] + np.sqrt(VARIANCES[component]) * rng.normal(size=(n, 2))
    return X, np.where(component < 2, 1, -1)


def bayes(X):
    """Positive where the first class is likelier."""
    terms = -((X[:, None] - MEANS) ** 2 / (2 * VARIANCES)).sum(-1) - 0.5 * np.log(VARIANCES).sum(-1)
    likelihood = np.exp(terms)
    return np.log(likelihood[:, :2].sum(1)) - np.log(likelihood[:, 2:].sum(1))


# %%
# Global L1, a learned gate, softmax weights per group, ℓp weights per group (four groups, p = 2, as in the paper), and convex regions.


def methods(kernels):
    common = {"kernels": kernels, "C": 1.0, "tol": 1e-2}
    return {
        "L1": LpMKLClassifier(**common, p=1),
        "LMKL": LMKLClassifier(**common, gate_kernel="linear on all"),
        "GS-MKL": GSMKLClassifier(**common, n_groups=4),
        "ℓp-GLMKL": GLMKLClassifier(**common, n_groups=4, p=2),
        "CLMKL": CLMKLClassifier(**common, n_clusters=4),
    }


SEEDS = 10
test_X, test_y = draw(20000, np.random.default_rng(999))
best = np.mean(np.sign(bayes(test_X)) != test_y)
for kernels in ("linear, poly(1) on all", "linear, poly(2) on all"):
    results = {name: [] for name in methods(kernels)}
    for seed in range(SEEDS):
        X, y = draw(400, np.random.default_rng(seed))
        for name, clf in methods(kernels).items():
            clf.fit(X, y)
            results[name].append((np.mean(clf.predict(test_X) != test_y), len(clf.support_)))
    print(f"{kernels}: {SEEDS} seeds, test error in % (Bayes {100 * best:.2f}) and support vectors of 400")
    for name, rows in results.items():
        error, count = np.mean(rows, axis=0)
        spread = np.std(rows, axis=0, ddof=1)
        print(f"  {name:9} {100 * error:6.2f} ± {100 * spread[0]:4.2f}   {count:6.1f} ± {spread[1]:4.1f}")

# %%
# Their boundaries, for the first seed.

try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None

if plt and len(sys.argv) > 1:
    X, y = draw(400, np.random.default_rng(0))
    side = np.linspace(-7, 7, 281)
    grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    figure, axes = plt.subplots(1, 5, figsize=(18, 4), sharex=True, sharey=True)
    for axis, (name, clf) in zip(axes, methods("linear, poly(2) on all").items(), strict=True):
        clf.fit(X, y)
        for label, colour in ((1, "tab:red"), (-1, "tab:blue")):
            axis.scatter(*X[y == label].T, s=6, color=colour, alpha=0.5)
        axis.scatter(*X[clf.support_].T, s=22, facecolors="none", edgecolors="black", linewidths=0.5)
        axis.contour(side, side, bayes(grid).reshape(281, 281), levels=[0], colors="tab:green", linewidths=2)
        decision = clf.decision_function(grid).reshape(281, 281)
        axis.contour(side, side, decision, levels=[0], colors="black", linestyles="--")
        axis.set(title=f"{name}: {len(clf.support_)} support vectors", xlim=(-6, 6), ylim=(-7, 7))
    figure.suptitle("Decision boundaries (dashed) and that of Bayes' rule (green)")
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=110)
