"""Several views, ready-made Gram matrices, sparse matrices, rows that lack a view, preprocessing."""

import os
from pathlib import Path

import numpy as np
import pytest
from conftest import BANK
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_predict

import mercer
from mercer import GMKLClassifier, GMKLRegressor, GramView, SingleKernelClassifier, UniformMKLClassifier

DATA = Path(os.environ.get("MERCER_DATA_DIR", Path(__file__).parents[2] / ".." / "shared" / "data"))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    return X, np.where(X[:, 0] + X[:, 2] ** 2 > 0.6, "yes", "no")


def test_two_levels_of_columns_are_views(rows):
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", "u"), ("a", "v"), ("b", "u"), ("b", "v")]))
    bank = "rbf(1) on view(a), view(b)"
    clf = GMKLClassifier(bank).fit(frame, y)
    by_dict = GMKLClassifier(bank).fit({"a": X[:, :2], "b": X[:, 2:]}, y)
    assert list(clf.feature_names_in_) == ["a.u", "a.v", "b.u", "b.v"]
    assert_array_equal(clf.decision_function(frame), by_dict.decision_function({"a": X[:, :2], "b": X[:, 2:]}))


def test_gram_view_is_the_kernel_it_came_from(rows, tmp_path):
    X, y = rows
    train, test = np.arange(60), np.arange(60, 80)
    K = mercer.gram(X, "rbf(0.8)")[:, :, 0]
    views = {"x": X[train], "k": GramView(K[np.ix_(train, train)])}
    new = {"k": GramView(K[np.ix_(test, train)]), "x": X[test]}
    clf = UniformMKLClassifier("precomputed(k); linear on view(x)", standardize=False).fit(views, y[train])
    plain = UniformMKLClassifier("rbf(0.8); linear", standardize=False).fit(X[train], y[train])
    assert clf.kernel_names_ == ["precomputed on view k", "linear on view x"]
    assert_allclose(clf.decision_function(new), plain.decision_function(X[test]), atol=1e-6)
    clf.save(tmp_path / "m.mercer")
    assert_array_equal(mercer.load(tmp_path / "m.mercer").decision_function(new), clf.decision_function(new))
    with pytest.raises(ValueError, match="square"):
        GMKLClassifier("precomputed(k)").fit({"k": GramView(K[:, :50])}, y)
    with pytest.raises(ValueError, match="holds kernel values"):
        GMKLClassifier("linear on view(k)").fit(views, y[train])


@pytest.mark.parametrize("how", ["shift", "clip", "flip"])
def test_indefinite_matrices(rows, how):
    X, y = rows
    K = np.tanh(2 * X @ X.T - 0.5)
    with pytest.raises(ValueError, match="shift, clip or flip"):
        GMKLClassifier("precomputed").fit(K, y)
    with pytest.warns(UserWarning, match="eigenvalues are negative"):
        clf = UniformMKLClassifier("precomputed", indefinite=how).fit(K, y)
    with pytest.warns(UserWarning, match="eigenvalues are negative"):
        viewed = UniformMKLClassifier("precomputed(k)", indefinite=how).fit({"k": GramView(K)}, y)
    assert_allclose(clf.decision_function(K), viewed.decision_function({"k": GramView(K)}), atol=1e-8)
    assert clf.get_params()["indefinite"] == how


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_is_dense(kind):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((90, 12)) < 0.3, rng.normal(size=(90, 12)), 0.0)
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=90)
    bank = "rbf(1|3), poly(2), laplace(2) on all; linear on cols(1-4), cols(5-12)"
    dense = GMKLRegressor(bank, standardize=False, loss="squared", tol=1e-8).fit(X, y)
    thin = GMKLRegressor(bank, loss="squared", tol=1e-8).fit(kind(X), y)
    assert thin.kernel_names_ == dense.kernel_names_
    assert_allclose(thin.predict(kind(X)), dense.predict(X), atol=1e-4)
    assert_allclose(thin.predict(kind(X)), thin.predict(X), atol=1e-10)


def test_cross_validation_of_sparse_rows():
    rng = np.random.default_rng(2)
    X = sparse.random(100, 30, density=0.2, random_state=3, format="csr")
    y = (np.asarray(X.sum(axis=1)).ravel() + 0.2 * rng.normal(size=100) > 3).astype(int)
    assert (cross_val_predict(GMKLClassifier("rbf(auto), linear"), X, y, cv=3) == y).mean() > 0.6


@pytest.mark.parametrize("rule", ["zero", "mean"])
def test_missing_views(rows, rule, tmp_path):
    X, y = rows
    gone = X.copy()
    gone[::7, 2:] = np.nan
    views = {"a": X[:, :2], "b": gone[:, 2:]}
    bank = "rbf(1), linear on view(a), view(b)"
    with pytest.raises(ValueError, match="view `b`: 12 of 80 rows have nothing in it, the first is row 0"):
        GMKLClassifier(bank).fit(views, y)
    with pytest.warns(UserWarning, match="view `b` is missing in 12 of 80 rows"):
        clf = GMKLClassifier(bank, missing=rule).fit(views, y)
    decision = clf.decision_function(views)
    assert np.isfinite(decision).all()
    clf.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.missing == rule
    assert_array_equal(again.decision_function(dict(reversed(views.items()))), decision)
    part = GMKLClassifier(bank).fit({"a": X[:, :2], "b": X[:, 2:]}, y)
    with pytest.raises(ValueError, match="view `b`"):
        part.predict(views)
    # A row with some numbers is no missing row.
    with pytest.raises(ValueError, match=r"b\.1"):
        GMKLClassifier(bank, missing=rule).fit({"a": X[:, :2], "b": np.where(np.arange(4)[2:] == 2, gone[:, 2:], 1.0)}, y)


def test_preprocessing(rows):
    X, y = rows
    spectra = np.cumsum(np.hstack([X, X[:, ::-1], X]), axis=1)
    done = np.diff(spectra.reshape(80, 6, 2).mean(axis=2), n=2)
    done = (done - done.mean(axis=1, keepdims=True)) / done.std(axis=1, keepdims=True)
    clf = UniformMKLClassifier("rbf(auto) on bands(2)", preprocess="average(2), difference(2), snv").fit(spectra, y)
    by_hand = UniformMKLClassifier("rbf(auto) on bands(2)").fit(done, y)
    assert clf.n_features_in_ == 12
    assert_allclose(clf.decision_function(spectra), by_hand.decision_function(done), atol=1e-8)
    with pytest.raises(ValueError, match="expected a step"):
        GMKLClassifier(preprocess="smooth(3)").fit(spectra, y)
    search = GridSearchCV(GMKLClassifier("rbf(auto)"), {"preprocess": [None, "snv"]}, cv=2).fit(spectra, y)
    assert set(search.cv_results_["param_preprocess"]) == {None, "snv"}


def test_mfeat_from_a_dict():
    """Six views of handwritten digits, every tenth row to learn from and the rows after them to test."""
    path = DATA / "mfeat_digits" / "mfeat_6views.npz"
    if not path.exists():
        pytest.skip(f"{path} is not at hand")
    arrays = np.load(path)
    y = arrays["label"]
    names = ["fac", "fou", "kar", "mor", "pix", "zer"]
    train, test = slice(0, 2000, 10), slice(1, 2000, 10)
    bank = "; ".join(f"rbf(auto), linear on view({name})" for name in names)
    clf = GMKLClassifier(bank, C=10).fit({name: arrays[name][train] for name in names}, y[train])
    assert len(clf.kernel_names_) == 36 and clf.status_ == "optimal"
    assert clf.score({name: arrays[name][test] for name in names}, y[test]) > 0.95


def test_a_single_kernel_may_be_ready_made(rows):
    X, y = rows
    views = {"noise": np.random.default_rng(5).normal(size=(80, 2)), "k": GramView(mercer.gram(X, BANK)[:, :, 0])}
    clf = SingleKernelClassifier("precomputed(k); rbf(1) on view(noise)").fit(views, y)
    assert_array_equal(clf.kernel_weights_, [1, 0])


def test_sparse_views_beside_dense_ones(tmp_path):
    rng = np.random.default_rng(4)
    words = sparse.random(90, 12, density=0.3, random_state=5, format="csr")
    more = sparse.random(90, 5, density=0.4, random_state=6, format="coo")
    age = rng.normal(size=(90, 2))
    y = np.where(words.toarray()[:, 0] + age[:, 0] > 0.2, "yes", "no")
    bank = "linear, rbf(1), poly(2) on view(words); rbf(1) on view(age); linear on view(more)"
    train, test = slice(0, 60), slice(60, 90)
    views = {"words": words[train], "age": age[train], "more": more.tocsr()[train]}
    new = {"age": age[test], "more": more.tocsr()[test], "words": words[test]}
    clf = GMKLClassifier(bank, C=10, standardize=False).fit(views, y[train])
    dense = {name: block.toarray() if sparse.issparse(block) else block for name, block in views.items()}
    twin = GMKLClassifier(bank, C=10, standardize=False).fit(dense, y[train])
    assert clf.n_features_in_ == 19 and set(clf.feature_names_in_) == set(twin.feature_names_in_)
    new_dense = {name: block.toarray() if sparse.issparse(block) else block for name, block in new.items()}
    assert_allclose(clf.decision_function(new), twin.decision_function(new_dense), atol=2e-3)
    clf.save(tmp_path / "m.mercer")
    assert_array_equal(mercer.load(tmp_path / "m.mercer").decision_function(new), clf.decision_function(new))
    assert_allclose(mercer.gram(views, "rbf(1) on view(words)"), mercer.gram(dense, "rbf(1) on view(words)"))
    with pytest.raises(ValueError, match="columns"):
        clf.predict({name: block for name, block in new.items() if name != "more"})
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(views | {"more": more.tocsr()[:50]}, y[train])
