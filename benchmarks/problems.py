"""The five problems of the suite: a table, what is learned, and the kernels, in mercer's language and in NumPy."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification

#: Half the width of the tube in regression.
EPSILON = 0.1
#: Both the kernel axis first and last are held only below this size.
ROOM = 1 << 30


@dataclass
class Problem:
    """Training rows with their kernels: Gaussians exp(−γ d²) and polynomials (⟨x, z⟩ + 1)^k of some columns each."""

    name: str
    X: np.ndarray
    y: np.ndarray
    C: float
    #: In mercer's language.
    bank: str
    #: (columns, γ, degrees), in the order of the bank.
    scopes: list = field(repr=False)
    normalize: str | None = None
    regression: bool = False

    @property
    def shape(self):
        """Kernels and rows."""
        return sum(len(gammas) + len(degrees) for _, gammas, degrees in self.scopes), len(self.y)

    @property
    def is_large(self):
        """Is one stack all that should be held?"""
        M, n = self.shape
        return 8 * M * n * n > ROOM

    def stack(self):
        """The kernels as one writes them in NumPy, without waste: (M, n, n), f64."""
        M, n = self.shape
        out, at = np.empty((M, n, n)), 0
        for columns, gammas, degrees in self.scopes:
            view = self.X[:, columns]
            products = view @ view.T
            squares = np.diag(products)
            distances = np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0)
            for gamma in gammas:
                np.exp(np.multiply(distances, -gamma, out=out[at]), out=out[at])
                at += 1
            for degree in degrees:
                out[at] = (products + 1) ** degree
                at += 1
        if self.normalize == "trace":
            for K in out:
                K /= np.trace(K)
        return out


def _rbf(gammas):
    return "rbf(" + "|".join(f"{(2 * g) ** -0.5:.17g}" for g in gammas) + ")"


def _paper(name, X, y):
    """The bank of the GMKL paper: ten widths and three degrees on all columns and on each."""
    gammas, degrees = [0.5 * 4.0**-e for e in range(-3, 7)], (1, 2, 3)
    columns = list(range(X.shape[1]))
    scopes = [(c, gammas, degrees) for c in (columns, *([j] for j in columns))]
    return Problem(name, X, y, 100.0, "rbf(2^-3..2^6), poly(1..3) on all, each", scopes, normalize="trace")


def _standardised(x):
    spread = x.std(0)
    return (x - x.mean(0)) / np.where(spread > 0, spread, 1)


def _toy():
    """P1, Toy 1 of the GMKL paper: 150 rows, 273 kernels."""
    rng = np.random.default_rng(1)
    X = rng.random((150, 20))
    signal = (-2 * np.sin(2 * X[:, :3]) + 1 - np.cos(2)).sum(1) + rng.standard_normal(150)
    return _paper("P1", X, np.where(signal >= 0, 1, -1))


def _wdbc():
    """P2, breast cancer: 284 rows, 403 kernels."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(2).permutation(len(y))[:284]
    return _paper("P2", _standardised(X[rows]), np.where(y[rows] == 1, 1, -1))


def _digits():
    """P3, even digits against odd: 1,000 rows, four widths on the image and on its quarters."""
    X, t = load_digits(return_X_y=True)
    rows = np.random.default_rng(3).permutation(len(t))[:1000]
    X, y = X[rows] / 16, np.where(t[rows] % 2 == 0, 1, -1)
    pixels, halves = np.arange(64).reshape(8, 8), (slice(0, 4), slice(4, 8))
    views = [pixels, *(pixels[a, b] for a in halves for b in halves)]
    scopes, groups = [], []
    for view in views:
        columns = view.ravel().tolist()
        gammas = [k / (2 * X[:, columns].var(0).sum()) for k in (0.25, 1, 4, 16)]
        scopes.append((columns, gammas, ()))
        groups.append(f"{_rbf(gammas)} on cols({', '.join(f'{row[0] + 1}-{row[-1] + 1}' for row in view)})")
    return Problem("P3", X, y, 1.0, "; ".join(groups), scopes)


def _large():
    """P4, generated: 5,000 rows, ten widths on 50 columns."""
    X, t = make_classification(
        5000, 50, n_informative=15, n_redundant=10, n_clusters_per_class=4, flip_y=0.02, random_state=4
    )
    gammas = list(np.logspace(-2, 1, 10) / 100)
    X, y = _standardised(X), np.where(t == 1, 1, -1)
    return Problem("P4", X, y, 1.0, f"{_rbf(gammas)} on all", [(list(range(50)), gammas, ())])


def _diabetes():
    """P5, regression: 300 rows, a width on each of ten columns and one on all."""
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(5).permutation(len(y))[:300]
    X, y = _standardised(X[rows]), _standardised(y[rows])
    columns, wide = list(range(10)), [1 / 20]
    scopes = [*(([j], [0.5], ()) for j in columns), (columns, wide, ())]
    return Problem("P5", X, y, 1.0, f"rbf(1) on each; {_rbf(wide)} on all", scopes, regression=True)


PROBLEMS = {"P1": _toy, "P2": _wdbc, "P3": _digits, "P4": _large, "P5": _diabetes}
