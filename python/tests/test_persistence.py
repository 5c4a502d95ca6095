"""Pickles, copies and model files."""

import copy
import csv
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import BANK, CLASSIFIERS, REGRESSORS, numpy_bank
from numpy.testing import assert_array_equal

import mercer
from mercer import GMKLClassifier, LpMKLClassifier, SingleKernelClassifier, SMKLClassifier
from mercer._io import labels
from mercer._mercer import Model

ALL = CLASSIFIERS + REGRESSORS
LEARNED = ["kernel_weights_", "kernel_names_", "support_", "dual_coef_", "intercept_", "n_features_in_", "n_iter_"]
LEARNED += ["primal_objective_", "dual_objective_", "duality_gap_", "status_", "trace_", "warnings_"]


def fitted(Estimator, binary, regression):
    X, y = binary if Estimator.__name__.endswith("Classifier") else regression
    return Estimator(BANK, C=250, tol=1e-4, max_iter=321, normalize="trace").fit(X, y), X


def assert_same(a, b, X):
    assert type(a) is type(b)
    for name in LEARNED:
        np.testing.assert_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize("way", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))], ids=["deepcopy", "pickle"])
def test_copies(Estimator, way, binary, regression):
    estimator, X = fitted(Estimator, binary, regression)
    assert_same(estimator, way(estimator), X)


@pytest.mark.parametrize("Estimator", ALL)
def test_model_file(Estimator, tmp_path, binary, regression):
    estimator, X = fitted(Estimator, binary, regression)
    y = (binary if Estimator.__name__.endswith("Classifier") else regression)[1]
    estimator.save(tmp_path / "m.mercer")
    loaded = mercer.load(str(tmp_path / "m.mercer"))
    assert_same(estimator, loaded, X)
    for name in ("C", "tol", "max_iter", "normalize", "loss", "kernels", "standardize"):
        assert getattr(loaded, name) == getattr(estimator, name), name
    # Its parameters can be fitted again, with the same result.
    assert_array_equal(loaded.fit(X, y).predict(X), estimator.predict(X))


@pytest.mark.parametrize(
    "estimator",
    [
        LpMKLClassifier(p=np.inf),
        LpMKLClassifier(p=1.5, solver="alternating", fit_intercept=False),
        SingleKernelClassifier(folds=3, random_state=7),
        SMKLClassifier(penalty="gl", eps=1e-3, group_by="scope"),
        LpMKLClassifier(penalties=[1.0, 2.0, 0.5, 1.0]),
        GMKLClassifier(loss="logistic", multi_class="ovo", shared_weights=True, class_weight="balanced"),
    ],
    ids=str,
)
def test_model_file_keeps_parameters(estimator, tmp_path, ternary):
    X, y = ternary
    estimator.set_params(kernels=BANK).fit(X, y).save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert_same(estimator, loaded, X)
    assert_array_equal(loaded.decision_function(X), estimator.decision_function(X))
    # The memory budget is recorded, because it decides the storage.
    assert loaded.get_params() == estimator.get_params() | {"memory": loaded.memory}
    assert hasattr(loaded, "predict_proba") == (estimator.loss == "logistic")


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1], [1.0, 2.0], [False, True], ["10", "9"]], ids=str)
def test_model_file_keeps_labels(names, tmp_path, binary):
    X, y = binary
    classes = np.asarray(names)
    estimator = GMKLClassifier(BANK, class_weight={names[0]: 2.0}).fit(X, classes[y])
    estimator.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.classes_.dtype.kind == classes.dtype.kind
    assert_array_equal(loaded.predict(X), estimator.predict(X))
    assert loaded.class_weight == {names[0]: 2.0}


def test_labels_from_texts():
    assert_array_equal(labels(["1", "2", "10"]), [1, 2, 10])
    assert_array_equal(labels(["1", "1.0"]), ["1", "1.0"])
    assert_array_equal(labels(["-1.5", "nan"]), ["-1.5", "nan"])
    assert_array_equal(labels(["False", "True"]), [False, True])
    assert_array_equal(labels(["False", "Maybe"]), ["False", "Maybe"])


def test_model_files_of_earlier_code():
    """One stored file per method; `crates/core/tests/golden.rs` requires the very bits, which depend on the processor."""
    folder = Path(__file__).parents[2] / "crates" / "core" / "tests" / "golden"
    rows = np.loadtxt(folder / "rows.csv", delimiter=",", skiprows=1, usecols=range(4))
    with open(folder / "decisions.csv", newline="") as file:
        methods, *values = csv.reader(file)
    for method, wanted in zip(methods, np.array(values, dtype=float).T, strict=True):
        loaded = mercer.load(folder / f"{method}.mercer")
        np.testing.assert_allclose(loaded.decision_function(rows), wanted, rtol=0, atol=1e-9, err_msg=method)
        assert list(loaded.classes_) == ["no", "yes"]


def test_model_file_of_a_data_frame(tmp_path, binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = GMKLClassifier(BANK).fit(frame, y)
    estimator.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    assert_array_equal(loaded.decision_function(frame), estimator.decision_function(frame))


def test_model_file_of_views(tmp_path, binary):
    X, y = binary
    views = {"sound": X[:, :2], "image": X[:, 2:]}
    estimator = GMKLClassifier("rbf(1) on view(sound), view(image)").fit(views, y)
    estimator.save(tmp_path / "m.mercer")
    assert_array_equal(mercer.load(tmp_path / "m.mercer").decision_function(views), estimator.decision_function(views))


def test_model_file_of_several_classes_and_of_a_stack(tmp_path, ternary):
    X, y = ternary
    stack = numpy_bank(X, X)
    estimator = GMKLClassifier("precomputed").fit(stack, y)
    estimator.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    assert loaded.kernels == "precomputed" and loaded.n_features_in_ == 90
    assert_same(estimator, loaded, stack)


def test_bytes_round_trip(binary):
    X, y = binary
    model = GMKLClassifier(BANK).fit(X, y)._model
    assert Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    assert "80 training rows" in repr(model)


def test_damaged_files_are_refused(tmp_path, binary):
    X, y = binary
    path = tmp_path / "m.mercer"
    GMKLClassifier(BANK).fit(X, y).save(path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (whole[:-1], whole[:middle], b"", b"not a model", flipped, whole + b"x"):
        path.write_bytes(damaged)
        with pytest.raises((OSError, ValueError)):
            mercer.load(path)
    with pytest.raises(FileNotFoundError):
        mercer.load(tmp_path / "absent.mercer")
    with pytest.raises(OSError):
        GMKLClassifier(BANK).fit(X, y).save(tmp_path / "no folder" / "m.mercer")


def test_nothing_to_save_before_fit(tmp_path):
    for method in (lambda e: e.save(tmp_path / "m"), lambda e: e.weights_frame()):
        with pytest.raises(ValueError, match="not fitted"):
            method(GMKLClassifier())
