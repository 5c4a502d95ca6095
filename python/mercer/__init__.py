"""Multiple kernel learning with certified duality gaps.

>>> from mercer import GMKLClassifier
>>> clf = GMKLClassifier("rbf(2^-3..2^6), poly(1..3) on all, each", C=10, v=0.5)
>>> clf.fit(X, y).duality_gap_                                  # doctest: +SKIP
"""

from mercer import kernels
from mercer._align import AlignFMKLClassifier, AlignFMKLRegressor, AlignMKLClassifier, AlignMKLRegressor
from mercer._compare import compare
from mercer._diagnose import diagnose
from mercer._displays import ComparisonDisplay, ConvergenceDisplay, KernelWeightsDisplay, RegionDisplay
from mercer._gmkl import GMKLClassifier, GMKLRegressor
from mercer._gram import gram
from mercer._input import GramView
from mercer._io import load
from mercer._local import (
    CLMKLClassifier,
    CLMKLRegressor,
    GLMKLClassifier,
    GLMKLRegressor,
    GSMKLClassifier,
    GSMKLRegressor,
    HLMKLClassifier,
    HLMKLRegressor,
    LMKLClassifier,
    LMKLRegressor,
)
from mercer._lp import LpMKLClassifier, LpMKLRegressor
from mercer._mercer import version as _version
from mercer._single import SingleKernelClassifier, SingleKernelRegressor
from mercer._smkl import SMKLClassifier, SMKLRegressor
from mercer._uniform import UniformMKLClassifier, UniformMKLRegressor
from mercer._vcmkl import VCMKLClassifier

__version__ = _version()

__all__ = [
    "AlignFMKLClassifier",
    "AlignFMKLRegressor",
    "AlignMKLClassifier",
    "AlignMKLRegressor",
    "CLMKLClassifier",
    "CLMKLRegressor",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "GLMKLClassifier",
    "GLMKLRegressor",
    "GMKLClassifier",
    "GMKLRegressor",
    "GSMKLClassifier",
    "GSMKLRegressor",
    "GramView",
    "HLMKLClassifier",
    "HLMKLRegressor",
    "KernelWeightsDisplay",
    "LMKLClassifier",
    "LMKLRegressor",
    "LpMKLClassifier",
    "LpMKLRegressor",
    "RegionDisplay",
    "SMKLClassifier",
    "SMKLRegressor",
    "SingleKernelClassifier",
    "SingleKernelRegressor",
    "UniformMKLClassifier",
    "UniformMKLRegressor",
    "VCMKLClassifier",
    "compare",
    "diagnose",
    "gram",
    "kernels",
    "load",
]
