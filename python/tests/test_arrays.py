"""Arrays as they come: in any order, of any number type, misaligned, read-only, from a file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer
from mercer import CLMKLClassifier, GMKLClassifier, GMKLRegressor, GramView

RNG = np.random.default_rng(0)
#: Small whole numbers, so that every type below holds the same values.
X = RNG.integers(0, 9, size=(40, 4)).astype(float)
Y = (X[:, 0] + X[:, 1] > 8).astype(int)
K = np.stack([X @ X.T, (X @ X.T + 1) ** 2], axis=-1)


def misaligned(a, _):
    """Starts one byte after a place where a number may stand."""
    buffer = np.empty(a.nbytes + 1, np.uint8)
    out = buffer[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    assert not out.flags.aligned or a.dtype.itemsize == 1
    return out


def read_only(a, _):
    out = a.copy()
    out.flags.writeable = False
    return out


def strided(a, _):
    out = np.zeros(tuple(2 * size for size in a.shape), a.dtype)[tuple(slice(None, None, 2) for _ in a.shape)]
    out[...] = a
    return out


def backwards(a, _):
    return a[::-1].copy()[::-1]


def mapped(a, folder):
    # A file of its own: an array that is mapped must not be written over.
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, a)
    return np.load(path, mmap_mode="r")


def byte_swapped(a, _):
    return a.astype(a.dtype.newbyteorder())


FORMS = {
    "Fortran": lambda a, _: np.asfortranarray(a),
    "misaligned": misaligned,
    "misaligned Fortran": lambda a, _: misaligned(a.T.copy(), _).T,
    "misaligned float32": lambda a, _: misaligned(a.astype(np.float32), _),
    "read-only": read_only,
    "strided": strided,
    "backwards": backwards,
    "byte-swapped": byte_swapped,
    "memory-mapped": mapped,
} | {np.dtype(kind).name: lambda a, _, kind=kind: a.astype(kind) for kind in ("f4", "f8", "i4", "i8", "u2", "O")}


@pytest.mark.parametrize("form", FORMS)
def test_features(form, tmp_path):
    given = FORMS[form](X, tmp_path)
    expected = GMKLClassifier("rbf(1), linear").fit(X, Y)
    clf = GMKLClassifier("rbf(1), linear").fit(given, Y)
    assert_array_equal(clf.decision_function(X), expected.decision_function(X))
    assert_array_equal(expected.decision_function(given), expected.decision_function(X))
    assert_array_equal(mercer.gram(given, "linear"), mercer.gram(X, "linear"))
    views = GMKLClassifier("linear on view(a), view(b)").fit({"a": given, "b": X}, Y)
    plain = GMKLClassifier("linear on view(a), view(b)").fit({"a": X, "b": X}, Y)
    assert_array_equal(views.decision_function({"a": given, "b": X}), plain.decision_function({"a": X, "b": X}))


@pytest.mark.parametrize("form", FORMS)
def test_kernel_values(form, tmp_path):
    given = FORMS[form](K, tmp_path)
    # A type of fewer digits holds other values.
    K_ = np.asarray(given, dtype=np.float64)
    expected = GMKLClassifier("precomputed").fit(K_, Y)
    clf = GMKLClassifier("precomputed").fit(given, Y)
    assert_array_equal(clf.decision_function(given), expected.decision_function(K_))
    assert_allclose(mercer.diagnose(given, Y, "precomputed").alignment, mercer.diagnose(K_, Y, "precomputed").alignment)
    one = FORMS[form](K[:, :, 0], tmp_path)
    view = GMKLClassifier("precomputed(k); linear on view(x)").fit({"k": GramView(one), "x": X}, Y)
    plain = GMKLClassifier("precomputed(k); linear on view(x)").fit({"k": GramView(K_[:, :, 0]), "x": X}, Y)
    new = {"k": GramView(one[:7]), "x": X[:7]}
    assert_array_equal(view.decision_function(new), plain.decision_function({"k": GramView(K_[:7, :, 0]), "x": X[:7]}))


@pytest.mark.parametrize("form", FORMS)
def test_targets_and_weights(form, tmp_path):
    weight, values = np.where(X[:, 1] > 3, 2.0, 1.0), X[:, 2] + X[:, 3]
    given = [FORMS[form](a, tmp_path) for a in (Y.astype(float), weight)]
    clf = GMKLClassifier("linear").fit(X, given[0].astype(int) if form == "object" else given[0], given[1])
    assert_array_equal(clf.decision_function(X), GMKLClassifier("linear").fit(X, Y, weight).decision_function(X))
    reg = GMKLRegressor("linear").fit(X, FORMS[form](values, tmp_path))
    assert_array_equal(reg.predict(X), GMKLRegressor("linear").fit(X, values).predict(X))


@pytest.mark.parametrize("form", FORMS)
def test_memberships(form, tmp_path):
    shares = np.column_stack([X[:, 0], 8 - X[:, 0]]) / 8
    fits = [CLMKLClassifier("linear, rbf(1)", regions=lambda Z, a=a: a[: len(Z)]) for a in (shares, FORMS[form](8 * shares, tmp_path) / 8)]
    plain, clf = (one.fit(X, Y) for one in fits)
    assert_array_equal(clf.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("kind", [np.float16, np.bool_, np.uint8, np.int8, np.longdouble])
def test_other_numbers(kind):
    given = (X > 4).astype(kind)
    expected = GMKLClassifier("linear, rbf(1)").fit(given.astype(float), Y).decision_function(given.astype(float))
    assert_array_equal(GMKLClassifier("linear, rbf(1)").fit(given, Y).decision_function(given), expected)


def test_what_is_fit_to_read_is_not_copied():
    """A stack of kernel values can be most of the memory there is."""
    peak = []

    class Watched(np.ndarray):
        def __array_finalize__(self, source):
            peak.append(self.nbytes)

    given = K.view(Watched)
    peak.clear()
    mercer._mercer.diagnose(given, mercer._input.Answers.classes(Y, [0, 1]), spec="{}")
    assert not peak
