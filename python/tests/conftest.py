"""Small data sets, and kernels written out in NumPy to hold the core against."""

import json

import numpy as np
import pytest

from mercer import VCMKLClassifier, _mercer
from mercer._io import estimators

#: One classifier for every method of the catalogue, and one regressor where the method has one.
METHODS = {entry["info"]["name"]: entry for entry in json.loads(_mercer.methods())}
CLASSIFIERS = [estimators()[name]["classification"] for name in METHODS]
#: Those with one weight vector per machine and every loss: all but the rules of vcmkl.
ONE_FUNCTION = [Estimator for Estimator in CLASSIFIERS if Estimator is not VCMKLClassifier]
REGRESSORS = [estimators()[name]["regression"] for name in METHODS if "regression" in estimators()[name]]

#: Four kernels on all features, in the kernel language and below in NumPy.
BANK = "rbf(0.5|2), poly(2), linear on all"


def numpy_bank(X, Z):
    """The kernels of BANK between the rows of X and Z, shape (n, m, 4)."""
    squared = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=-1)
    inner = X @ Z.T
    return np.stack([np.exp(-squared / (2 * 0.5**2)), np.exp(-squared / (2 * 2**2)), (inner + 1) ** 2, inner], axis=-1)


def multiplicative(stack, train):
    """Unit feature-space variance, constants from the training stack."""
    n = train.shape[0]
    variance = np.einsum("iim->m", train) / n - train.sum(axis=(0, 1)) / n**2
    return stack / variance


@pytest.fixture
def binary():
    """Two classes that no straight line separates."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=80) > 0.7).astype(int)
    return X, y


@pytest.fixture
def ternary():
    rng = np.random.default_rng(8)
    centres = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])
    y = np.arange(90) % 3
    return centres[y] + rng.normal(size=(90, 2)), y


@pytest.fixture
def regression():
    rng = np.random.default_rng(9)
    X = rng.uniform(-2, 2, size=(70, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=70)
