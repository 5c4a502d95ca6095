"""The tables of the comparison of defaults, and which half of them each belongs to.

The halves were fixed before any number was looked at: the names in alphabetical order, the first to choose with, the second to confirm
with, and so on in turn. WDBC is scikit-learn's breast cancer data, so it takes part once.
"""

import csv
import os
from pathlib import Path

import numpy as np
from sklearn import datasets

DATA = Path(os.environ.get("MERCER_DATA_DIR", Path(__file__).resolve().parents[2] / "shared" / "data"))
#: Rows drawn from the generators: the splits take at most 600 of them.
GENERATED = 600


def table(path, target=-1, leave_out=()):
    """X and y of a CSV with a header: the named target (or the last column), without the columns to leave out."""
    with open(DATA / path, newline="") as file:
        head, *rows = csv.reader(file)
    name = head[target] if isinstance(target, int) else target
    features = [j for j, column in enumerate(head) if column != name and column not in leave_out]
    X = np.array([[float(row[j]) for j in features] for row in rows])
    return X, np.array([row[head.index(name)] for row in rows])


def values(path, target=-1, leave_out=()):
    """As `table`, with numbers to predict."""
    X, y = table(path, target, leave_out)
    return X, y.astype(float)


def bundled(loader):
    """A data set of scikit-learn's."""
    return lambda: loader(return_X_y=True)


def generated(maker):
    """One of Friedman's three problems; noise with a tenth of the deviation of what is to be found."""

    def load():
        X, y = maker(GENERATED, random_state=0)
        return X, y + 0.1 * y.std() * np.random.default_rng(0).standard_normal(GENERATED)

    return load


#: Name -> (loader, "class" or "value"), in alphabetical order.
SETS = {
    "breast_cancer": (bundled(datasets.load_breast_cancer), "class"),
    "breast_wisconsin": (lambda: table("breast_wisconsin/breast_wisconsin.csv"), "class"),
    "diabetes": (bundled(datasets.load_diabetes), "value"),
    "digits": (bundled(datasets.load_digits), "class"),
    "friedman1": (generated(datasets.make_friedman1), "value"),
    "friedman2": (generated(datasets.make_friedman2), "value"),
    "friedman3": (generated(datasets.make_friedman3), "value"),
    "glass": (lambda: table("glass/glass.csv"), "class"),
    "heart_statlog": (lambda: table("heart_statlog/heart_statlog.csv"), "class"),
    "ionosphere": (lambda: table("ionosphere/ionosphere.csv"), "class"),
    "iris": (bundled(datasets.load_iris), "class"),
    "liver_bupa": (lambda: table("liver_bupa/liver_bupa.csv"), "class"),
    "music_geo": (lambda: values("music_geo/music_default68.csv", "latitude", ("longitude", "label")), "value"),
    "nir_diesel": (lambda: values("nir_diesel_swri/diesel_cetane.csv"), "value"),
    "nir_gasoline": (lambda: values("nir_gasoline/nir_gasoline.csv"), "value"),
    "nir_wheat_kalivas": (lambda: values("nir_wheat_kalivas/nir_wheat_kalivas.csv"), "value"),
    "nir_wheat_kernels": (lambda: values("nir_wheat_kernels/nir_wheat_kernels.csv", leave_out=("split",)), "value"),
    "nir_yarn": (lambda: values("nir_yarn/nir_yarn.csv", leave_out=("train",)), "value"),
    "pima": (lambda: table("pima/pima.csv"), "class"),
    "sonar": (lambda: table("sonar/sonar.csv"), "class"),
    "spambase": (lambda: table("spambase/spambase.csv"), "class"),
    "vertebral": (lambda: table("vertebral/vertebral_2C.csv"), "class"),
    "vowel": (lambda: table("vowel/vowel.csv"), "class"),
    "wine": (bundled(datasets.load_wine), "class"),
    "wpbc": (lambda: table("wpbc/wpbc_complete194.csv"), "class"),
}
HALVES = {"choose": list(SETS)[0::2], "confirm": list(SETS)[1::2]}
