"""
Veto and consensus
==================

Points inside a square belong to a class, points around it do not, and nobody says on which side of the square a point
outside lies. No line separates the two. Four linear rules do: a point is inside if every rule agrees, and the first veto
puts it outside. Which rule rejected a point, and by how much?

Run it as ``python plot_04_veto_and_consensus.py [FIGURE.png]``. Without matplotlib, or without a file name, it only
prints.
"""

import sys

import numpy as np

from mercer import UniformMKLClassifier, VCMKLClassifier

# %%
# The data: equal numbers inside and outside a square with sides of length 2.


def square(n, rng):
    points = rng.uniform(-2, 2, size=(20 * n, 2))
    inside = np.abs(points).max(axis=1) < 1
    rows = np.concatenate([np.flatnonzero(inside)[: n // 2], np.flatnonzero(~inside)[: n // 2]])
    return points[rows], np.where(inside[rows], "inside", "outside")


rng = np.random.default_rng(0)
X, y = square(300, rng)
X_test, y_test = square(2000, rng)

# %%
# One linear machine, four linear rules, and as many rules as cross-validation asks for.

fits = {
    "one linear machine": UniformMKLClassifier("linear", C=10).fit(X, y),
    "four rules": VCMKLClassifier("linear", n_rules=4, consensus="inside", C=10).fit(X, y),
    "rules chosen": VCMKLClassifier("linear", n_rules="auto", consensus="inside", C=10, n_init=1).fit(X, y),
}
for name, clf in fits.items():
    rules = getattr(clf, "n_rules_", 1)
    print(f"{name:<20} rules {rules}   accuracy {clf.score(X_test, y_test):.3f} on new points")

# %%
# A veto has a name: the rule with the smallest value, and how far it is from agreeing.

clf = fits["four rules"]
for point in ([1.5, 0.2], [0.3, -1.2], [-1.8, 1.7], [0.5, 0.5]):
    veto = clf.veto([point])[0]
    told = f"rejected by rule {veto['rule'] + 1}" if veto["rule"] >= 0 else "every rule agrees"
    print(f"{point!s:<13} {told:<22} {veto['amount']:+.2f}")

# %%
# The regions: white where all rules agree, a colour for each rule that vetoes; lines are the rules.

if len(sys.argv) > 1:
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    side = np.linspace(-2, 2, 300)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    region = clf.veto(grid)["rule"].reshape(300, 300)
    values = clf.rule_values(grid).reshape(300, 300, -1)
    colours = ["#ffffff", "#c6dbef", "#fdd0a2", "#c7e9c0", "#dadaeb"]
    figure, axes = plt.subplots(figsize=(5.6, 5))
    axes.imshow(region, extent=(-2, 2, -2, 2), origin="lower", cmap=ListedColormap(colours), vmin=-1, vmax=3)
    for m in range(clf.n_rules_):
        axes.contour(side, side, values[:, :, m], levels=[0], colors="0.4", linewidths=0.8)
    owner = clf.veto(X)["rule"]
    dark = np.array(["#08519c", "#d94801", "#238b45", "#6a51a3"])
    out = y == "outside"
    axes.scatter(*X[~out].T, s=9, color="black", label="inside")
    axes.scatter(*X[out].T, s=9, marker="x", linewidths=0.8, color=np.where(owner[out] >= 0, dark[owner[out]], "red"))
    axes.set(title="Each colour: the rule that vetoes", xlabel="x1", ylabel="x2", xlim=(-2, 2), ylim=(-2, 2))
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=150)
    print(f"figure in {sys.argv[1]}")
