"""
Which kernels matter?
=====================

Twenty columns, of which the first three decide the class (Toy 1 of the GMKL paper). One Gaussian kernel of each of five
widths looks at each column, one hundred kernels in all. How is the weight spread over the columns by equal weights and
by `gmkl` with v = 0 (L2), 0.5 and 1 (L1)?

Run it as ``python plot_01_which_kernels_matter.py [FIGURE.png]``. Without matplotlib, or without a file name, it only
prints.
"""

import sys

import numpy as np
from sklearn.model_selection import GridSearchCV

from mercer import GMKLClassifier, UniformMKLClassifier

# %%
# The data: each of the three columns adds a curve, and noise of deviation 1 is added before the sign is taken.

COLUMNS, RELEVANT = 20, 3


def toy1(n, rng):
    X = rng.uniform(size=(n, COLUMNS))
    signal = (-2 * np.sin(2 * X[:, :RELEVANT]) + 1 - np.cos(2)).sum(axis=1)
    return X, np.where(signal + rng.normal(size=n) > 0, 1, -1)


rng = np.random.default_rng(0)
X, y = toy1(300, rng)
X_test, y_test = toy1(2000, rng)

# %%
# Four fits on the same bank, C by cross-validation for each. The share of a column is the weight of its kernels over
# the weight of all; "99 %" is the number of kernels that carry so much of the weight.

BANK = "rbf(auto) on each"
methods = {
    "uniform": UniformMKLClassifier(BANK),
    "gmkl v=0 (L2)": GMKLClassifier(BANK, v=0),
    "gmkl v=0.5": GMKLClassifier(BANK, v=0.5),
    "gmkl v=1 (L1)": GMKLClassifier(BANK, v=1),
}

shares = {}
print(f"{'method':<14} {'C':>5} {'accuracy':>8} {'kernels':>8} {'99 %':>5} {'gap':>8}   share of x1, x2, x3")
for name, method in methods.items():
    model = GridSearchCV(method, {"C": [0.01, 0.1, 1.0, 10.0]}, cv=5).fit(X, y).best_estimator_
    by_column = model.kernel_weights_.reshape(COLUMNS, -1).sum(axis=1)
    shares[name] = by_column / by_column.sum()
    kept = np.count_nonzero(model.kernel_weights_)
    heaviest = np.cumsum(np.sort(model.kernel_weights_)[::-1])
    carrying = 1 + np.count_nonzero(heaviest < 0.99 * heaviest[-1])
    print(
        f"{name:<14} {model.C:>5} {model.score(X_test, y_test):>8.3f} {kept:>8} {carrying:>5} {model.duality_gap_:>8.1e}   "
        f"{shares[name][:RELEVANT].sum():.2f}"
    )

# %%
# The picture: one panel per fit, the three columns that matter in another colour.

try:
    import matplotlib
except ImportError:
    matplotlib = None

if matplotlib is not None and len(sys.argv) > 1:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(shares), 1, sharex=True, sharey=True, figsize=(7, 7), layout="constrained")
    colours = ["tab:orange" if j < RELEVANT else "tab:blue" for j in range(COLUMNS)]
    for axis, (name, share) in zip(axes, shares.items(), strict=True):
        axis.bar(np.arange(1, COLUMNS + 1), share, color=colours)
        axis.set_title(name, loc="left", fontsize="medium")
        axis.set_ylabel("share")
    axes[-1].set_xlabel("column (orange: those that decide the class)")
    axes[-1].set_xticks(np.arange(1, COLUMNS + 1))
    figure.savefig(sys.argv[1], dpi=120)
    print(f"figure in {sys.argv[1]}")
