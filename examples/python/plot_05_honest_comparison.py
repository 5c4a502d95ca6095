"""
Which method, honestly?
=======================

Toy 1 of the GMKL paper: 20 columns of which three matter. Several methods over the same ten random splits, each
choosing C inside the training part; paired tests, corrected for the overlap of the splits, say which differences are
real.

Run it as ``python plot_05_honest_comparison.py [FOLDER]``. With a folder it writes the page and, where matplotlib is,
two figures.
"""

import sys
from pathlib import Path

import numpy as np

import mercer

# %%
# The data.

rng = np.random.default_rng(1)
X = rng.uniform(size=(200, 20))
signal = (-2 * np.sin(2 * X[:, :3]) + 1 - np.cos(2)).sum(axis=1)
y = np.sign(signal + rng.normal(size=200))

# %%
# The comparison. Equal weights and the best single kernel always take part.

methods = ["l1", "l2", "gmkl(v=0.5)", "smkl"]
found = mercer.compare(X, y, methods, kernels="rbf(0.5|1|2), poly(1..2) on all, each", repeats=10, random_state=1)
print(found[["mean", "sd", "kernels", "difference", "p", "seconds"]].round(3))
print(found.verdict)

# %%
# Which kernels come out again and again?

print(found.weights().query("method == 'gmkl(v=0.5)'").head(6).round(3).to_string(index=False))

# %%
# The page and the figures.

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
    found.report(folder / "comparison.html")
    try:
        shown = mercer.ComparisonDisplay.from_comparison(found)
        shown.figure_.savefig(folder / "comparison.png")
        clf = mercer.GMKLClassifier("rbf(0.5|1|2), poly(1..2) on all, each", C=10).fit(X, y)
        mercer.KernelWeightsDisplay.from_estimator(clf, top=12).figure_.savefig(folder / "weights.png")
    except ImportError as error:
        print(error)
