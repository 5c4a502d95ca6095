"""Multiple kernel learning with certified duality gaps.

>>> from mercer import GMKLClassifier
>>> clf = GMKLClassifier("rbf(2^-3..2^6), poly(1..3) on all, each", C=10, v=0.5)
>>> clf.fit(X, y).duality_gap_                                  # doctest: +SKIP
"""

from mercer import kernels
from mercer._gmkl import GMKLClassifier, GMKLRegressor
from mercer._gram import gram
from mercer._io import load
from mercer._lp import LpMKLClassifier, LpMKLRegressor
from mercer._mercer import version as _version
from mercer._single import SingleKernelClassifier, SingleKernelRegressor
from mercer._smkl import SMKLClassifier, SMKLRegressor
from mercer._uniform import UniformMKLClassifier, UniformMKLRegressor
from mercer._vcmkl import VCMKLClassifier

__version__ = _version()

__all__ = [
    "GMKLClassifier",
    "GMKLRegressor",
    "LpMKLClassifier",
    "LpMKLRegressor",
    "SMKLClassifier",
    "SMKLRegressor",
    "SingleKernelClassifier",
    "SingleKernelRegressor",
    "UniformMKLClassifier",
    "UniformMKLRegressor",
    "VCMKLClassifier",
    "gram",
    "kernels",
    "load",
]
