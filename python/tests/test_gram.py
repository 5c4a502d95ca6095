"""Kernel values without a model."""

import numpy as np
import pytest
from conftest import BANK, multiplicative, numpy_bank
from numpy.testing import assert_allclose, assert_array_equal

import mercer
from mercer.kernels import RBF, Laplacian


def test_equals_numpy(binary):
    X, _ = binary
    assert_allclose(mercer.gram(X, BANK), numpy_bank(X, X), rtol=1e-12, atol=1e-13)
    assert_allclose(mercer.gram(X[50:], BANK, X[:50]), numpy_bank(X[50:], X[:50]), rtol=1e-12, atol=1e-13)
    l1 = np.abs(X[:, None] - X[None]).sum(axis=-1)
    assert_allclose(mercer.gram(X, [Laplacian(2)])[:, :, 0], np.exp(-l1 / 2), rtol=1e-12)


def test_constants_come_from_the_training_rows(binary):
    X, _ = binary
    expected = multiplicative(numpy_bank(X[50:], X[:50]), numpy_bank(X[:50], X[:50]))
    assert_allclose(mercer.gram(X[50:], BANK, X[:50], normalize="multiplicative"), expected, rtol=1e-10, atol=1e-12)
    spherical = mercer.gram(X, BANK, normalize="spherical")
    assert_allclose(np.einsum("iim->im", spherical), 1)
    assert_allclose(mercer.gram(X, BANK, normalize="center").sum(axis=0), 0, atol=1e-9)
    assert_allclose(np.einsum("iim->m", mercer.gram(X, BANK, normalize="trace")), 1)


def test_frames_and_views(binary):
    pd = pytest.importorskip("pandas")
    X, _ = binary
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = mercer.gram(X, "rbf(1) on cols(1-2)")
    assert_array_equal(mercer.gram(frame, "rbf(1) on cols(a, b)"), expected)
    assert_array_equal(mercer.gram(frame[:9], [RBF(1).on(columns=["a", "b"])], X), expected[:9])
    assert_array_equal(mercer.gram({"u": X[:, :2], "w": X[:, 2:]}, "rbf(1) on view(u)"), expected)


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("rbf(",), {}, r"\^"),
        (("linear",), {"Z": np.ones((3, 2))}, "same columns"),
        (("linear",), {"normalize": "unit"}, "normalize"),
        (("linear on view(u)",), {}, "u"),
    ],
)
def test_bad_requests(args, options, message, binary):
    with pytest.raises(ValueError, match=message):
        mercer.gram(binary[0], *args, **options)


def test_too_large_is_refused_before_it_is_allocated():
    X = np.zeros((100_000, 1))
    with pytest.raises(MemoryError, match="budget"):
        mercer.gram(X, "rbf(1..100)")
