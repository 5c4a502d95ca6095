"""Data frames, views, labels, kernel objects; and everything that must be refused, with a message that helps."""

import numpy as np
import pytest
from conftest import BANK
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import (
    GMKLClassifier,
    GMKLRegressor,
    LpMKLClassifier,
    SingleKernelClassifier,
    SMKLClassifier,
    UniformMKLClassifier,
)
from mercer._mercer import parse_kernels
from mercer.kernels import RBF, Laplacian, Linear, Polynomial, to_text


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [-1, 1], [3, 17], [1.0, 2.0], [False, True], np.array(["a", "b"], dtype=object)],
    ids=["str", "sign", "int", "float", "bool", "object"],
)
def test_labels_keep_their_type(labels, binary):
    X, y = binary
    labels = np.asarray(labels)
    clf, plain = GMKLClassifier(BANK).fit(X, labels[y]), GMKLClassifier(BANK).fit(X, y)
    assert clf.classes_.dtype == labels.dtype and clf.predict(X).dtype == labels.dtype
    assert_array_equal(clf.decision_function(X), plain.decision_function(X))
    assert_array_equal(clf.predict(X), labels[plain.predict(X)])


def test_data_frame_scopes(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame(X, columns=["age", "body mass", "x1"])
    clf = GMKLClassifier('rbf(1) on cols(age, "body mass"); linear on each').fit(frame, y)
    assert list(clf.feature_names_in_) == ["age", "body mass", "x1"]
    assert len(clf.kernel_names_) == 4 and any("age" in name for name in clf.kernel_names_)
    by_number = GMKLClassifier("rbf(1) on cols(1-2); linear on each").fit(X, y)
    assert_array_equal(clf.decision_function(frame), by_number.decision_function(X))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["x1", "age", "body mass"]])
    with pytest.raises(ValueError, match="column `sex`: holds text"):
        GMKLClassifier().fit(frame.assign(sex="f"), y)
    with pytest.raises(ValueError, match="height"):
        GMKLClassifier("linear on cols(height)").fit(frame, y)
    assert_array_equal(GMKLClassifier().fit(frame.assign(x1=frame.x1 > 0), y).n_features_in_, 3)


def test_generated_names_never_reorder(binary):
    """Columns named like the core's own x1, x2, … in another order are still matched by position once checked."""
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame(X, columns=["x3", "x1", "x2"])
    clf, plain = GMKLClassifier(BANK).fit(frame, y), GMKLClassifier(BANK).fit(X, y)
    assert_array_equal(clf.decision_function(frame), plain.decision_function(X))


def test_views(binary):
    X, y = binary
    views = {"sound": X[:, :2], "image": X[:, 2:]}
    clf = GMKLClassifier("rbf(1) on view(sound), view(image); linear on all").fit(views, y)
    by_number = GMKLClassifier("rbf(1) on cols(1-2), cols(3); linear on all").fit(X, y)
    assert clf.n_features_in_ == 3 and list(clf.feature_names_in_) == ["sound.1", "sound.2", "image.1"]
    assert_array_equal(clf.decision_function(views), by_number.decision_function(X))
    assert_array_equal(clf.predict(dict(reversed(views.items()))), by_number.predict(X))
    for wrong in ({"sound": X[:, :2]}, views | {"smell": X}, {"sound": X[:, :1], "image": X[:, 1:]}):
        with pytest.raises(ValueError, match="views with columns"):
            clf.predict(wrong)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit({"sound": X[:, :2], "image": X[:-1, 2:]}, y)
    with pytest.raises(ValueError, match="smell"):
        GMKLClassifier("linear on view(smell)").fit(views, y)
    with pytest.raises(ValueError, match="at least one view"):
        GMKLClassifier().fit({}, y)


def test_kernel_objects(binary):
    X, y = binary
    bank = [RBF([0.5, 2]).on("all"), Polynomial(2).on("each"), Linear().on(columns=[1, 3]), Laplacian(1)]
    assert to_text(bank) == "rbf(0.5|2) on all; poly(2) on each; linear on cols(1, 3); laplace(1)"
    assert repr(bank[2]) == "Linear().on('cols(1, 3)')" and eval(repr(bank[0])) == bank[0]
    assert str(RBF(1e-7)) == "rbf(1e-07)" and str(Polynomial(3, c=0.5)) == "poly(3, 0.5)"
    assert str(RBF(np.float64(2)).on(columns=['a "b"'], view="c d")) == 'rbf(2) on cols("a ""b"""), view("c d")'
    clf = clone(GMKLClassifier(bank)).fit(X, y)
    text = GMKLClassifier(to_text(bank)).fit(X, y)
    assert clf.kernel_names_ == text.kernel_names_
    assert_array_equal(clf.decision_function(X), text.decision_function(X))
    assert parse_kernels(to_text(bank))


def test_float32_and_fortran_order(binary):
    X, y = binary
    X = X.astype(np.float32)
    expected = GMKLClassifier(BANK).fit(X.astype(np.float64), y).decision_function(X.astype(np.float64))
    assert_array_equal(GMKLClassifier(BANK).fit(np.asfortranarray(X), y).decision_function(X[::1]), expected)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"C": -1}, ValueError, "C"),
        ({"C": 0}, ValueError, "C"),
        ({"C": np.nan}, ValueError, "`C`"),
        ({"C": np.inf}, ValueError, "`C`"),
        ({"C": "big"}, ValueError, "`C`"),
        ({"v": -0.1}, ValueError, "v"),
        ({"v": 1.1}, ValueError, "v"),
        ({"p": 0.5}, ValueError, "p"),
        ({"tol": 0}, ValueError, "tol"),
        ({"tol": -1}, ValueError, "tol"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"max_iter": 1.5}, TypeError, "max_iter"),
        ({"loss": "log_loss"}, ValueError, "'hinge', 'squared_hinge', 'logistic', 'squared'"),
        ({"loss": "epsilon_insensitive"}, ValueError, "'hinge', 'squared_hinge', 'logistic', 'squared'"),
        ({"solver": "newton"}, ValueError, "'auto', 'level', 'alternating'"),
        ({"normalize": "unit"}, ValueError, "'multiplicative', 'trace', 'spherical', 'center', None"),
        ({"multi_class": "crammer_singer"}, ValueError, "'ovr', 'ovo'"),
        ({"shared_weights": "yes"}, TypeError, "shared_weights"),
        ({"fit_intercept": None}, TypeError, "fit_intercept"),
        ({"standardize": "auto"}, TypeError, "standardize"),
        ({"class_weight": "heavy"}, ValueError, "balanced"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": "two"}, TypeError, "n_jobs"),
        ({"memory": "much"}, ValueError, "memory"),
        ({"memory": 1}, MemoryError, "budget"),
        ({"kernels": "rbf(0.5"}, ValueError, r"\^"),
        ({"kernels": "gauss(1)"}, ValueError, r"gauss\(1\)\n\s*\^"),
        ({"kernels": ""}, ValueError, r"\^"),
        ({"kernels": "rbf(-1)"}, ValueError, r"\^"),
        ({"kernels": "linear on cols(9)"}, ValueError, "9"),
        ({"kernels": []}, TypeError, "kernels"),
        ({"kernels": 3}, TypeError, "kernels"),
    ],
    ids=str,
)
def test_bad_parameters(params, error, message, binary):
    with pytest.raises(error, match=message):
        GMKLClassifier(**params).fit(*binary)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "'epsilon_insensitive', 'squared'"),
        ({"loss": "logistic"}, "'epsilon_insensitive', 'squared'"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
    ],
    ids=str,
)
def test_bad_regression_parameters(params, message, regression):
    with pytest.raises(ValueError, match=message):
        GMKLRegressor(**params).fit(*regression)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (LpMKLClassifier(p=0.5), ValueError, "p"),
        (LpMKLClassifier(p=-np.inf), ValueError, "p"),
        (LpMKLClassifier(p=np.nan), ValueError, "p"),
        (LpMKLClassifier(p="inf"), TypeError, "p"),
        (LpMKLClassifier(solver="newton"), ValueError, "'reduced_gradient', 'silp'"),
        (LpMKLClassifier(p=2, solver="silp"), ValueError, "solver"),
        (SingleKernelClassifier(folds=1), ValueError, "folds"),
        (SingleKernelClassifier(folds=1000), ValueError, "folds"),
        (SingleKernelClassifier(random_state=-1), ValueError, "random_state"),
        (SMKLClassifier(penalty="lasso"), ValueError, "lasso"),
        (SMKLClassifier(penalty=None), TypeError, "penalty"),
        (SMKLClassifier(eps=0), ValueError, "eps"),
    ],
    ids=str,
)
def test_bad_parameters_of_methods(estimator, error, message, binary):
    with pytest.raises(error, match=message):
        estimator.fit(*binary)


def test_bad_data(binary):
    X, y = binary
    holed, endless = X.copy(), X.copy()
    holed[4, 1], endless[4, 2] = np.nan, np.inf
    for bad, message in [
        (holed, "column `x2`: row 4 is NaN"),
        (endless, "column `x3`: row 4 is inf"),
        (X[:0], "minimum of 2 is required"),
        (X[:1], "minimum of 2 is required"),
        (X[:, :0], "minimum of 1 is required"),
        (X[:, 0], "2D array"),
        (X[:-1], "inconsistent numbers of samples"),
        (X[:, :, None], "dim 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            GMKLClassifier().fit(bad, y[: len(bad)] if len(bad) < 2 else y)
    with pytest.raises(ValueError, match="one class"):
        GMKLClassifier().fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="Unknown label type"):
        GMKLClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        GMKLRegressor().fit(X, holed[:, 1])
    clf = GMKLClassifier(BANK).fit(X, y)
    for bad, message in [(holed, "NaN"), (X[:, :2], "expecting 3 features")]:
        with pytest.raises(ValueError, match=message):
            clf.predict(bad)


def test_constant_columns_are_no_obstacle(binary):
    X, y = binary
    X = np.column_stack([X, np.full(80, 3.0)])
    assert_allclose(UniformMKLClassifier("rbf(1) on all").fit(X, y).score(X, y), 1, atol=0.2)


def test_a_failed_fit_leaves_nothing_half_done(binary):
    X, y = binary
    clf = GMKLClassifier(BANK).fit(X, y)
    with pytest.raises(ValueError):
        clf.set_params(kernels="rbf(").fit(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        clf.predict(X)
