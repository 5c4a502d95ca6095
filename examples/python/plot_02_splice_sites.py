"""
Which lengths of words matter at a splice site?
===============================================

Splice sites are found by what stands around them: short signals at fixed positions. A weighted degree kernel of degree d
counts the positions at which two sequences have the same d letters; one kernel per degree, and the weights that a method
learns, say which lengths carry the signal.

The data are generated: 60 letters of random DNA. True sites have the signal ``TTTCAG`` around position 30, each letter of it
kept with a probability of 85 %, and a pyrimidine-rich stretch before it.
"""

# %%
# The data
# --------

import numpy as np

from mercer import AlignMKLClassifier, GMKLClassifier, UniformMKLClassifier, diagnose
from mercer.kernels import Spectrum, WeightedDegree

rng = np.random.default_rng(1)


def sequence(site):
    letters = rng.choice(list("ACGT"), size=60)
    if site:
        stretch = rng.uniform(size=12) < 0.7
        letters[16:28][stretch] = rng.choice(list("CT"), size=int(stretch.sum()))
        kept = rng.uniform(size=6) < 0.85
        letters[28:34][kept] = np.array(list("TTTCAG"))[kept]
    return "".join(letters)


y = np.arange(600) % 2
dna = [sequence(site) for site in y]
train, test = slice(0, 300), slice(300, 600)

# %%
# Before learning
# ---------------
#
# How does each kernel agree with the classes?

bank = [WeightedDegree("1..8"), Spectrum([2, 4])]
print(diagnose(dna[train], y[train], bank).frame().round(3).to_string())

# %%
# Weights
# -------

for method in (UniformMKLClassifier, AlignMKLClassifier, GMKLClassifier):
    clf = method(bank, C=1).fit(dna[train], y[train])
    print(f"{method.__name__:22s} accuracy {clf.score(dna[test], y[test]):.3f}  gap {clf.duality_gap_:.0e}")
print(clf.weights_frame().round(3).to_string())

# %%
# New sequences
# -------------
#
# A model predicts raw sequences, whatever their length.

print(clf.predict(["ACGT" * 4 + "CTTCTTTCTTCT" + "TTTCAG" + "ACGTACGT", "ACGT" * 15]))
