"""What a user is told: rows counted from 0, values as Python writes them, and what to do instead."""

import datetime
import re
import sys
import warnings

import numpy as np
import pytest

import mercer
from mercer import CLMKLClassifier, GMKLClassifier, GMKLRegressor, GramView
from mercer._params import n_threads
from mercer.kernels import Callable

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)
K = X @ X.T
#: The row that is wrong in every case below, counted from 0.
BAD = 3


def spoiled(values, value, *at):
    """A copy with `value` in row BAD."""
    values = np.array(values)
    values[(BAD, *at)] = value
    return values


def fit(X=X, kernels="linear", y=Y, weight=None, estimator=GMKLClassifier, **params):
    return estimator(kernels, **params).fit(X, y, weight)


def texts(bad, good="ACGT"):
    return [good] * BAD + [bad] + [good] * (39 - BAD)


def with_gap():
    pd = pytest.importorskip("pandas")
    return fit(pd.DataFrame({"s": texts(None), "a": X[:, 0]}), "spectrum(2)")


def memberships(_):
    return spoiled(np.full((40, 2), 0.5), 0.9)


def unknown_region():
    train = np.column_stack([X[:, :2], np.arange(40) % 2])
    clf = CLMKLClassifier("linear", regions="x3", standardize=False).fit(train, Y)
    clf.predict(spoiled(train[:10], 7, 2))


ROWS = {
    "NaN": lambda: fit(spoiled(X, np.nan, 2)),
    "infinity": lambda: fit(spoiled(X, np.inf, 2)),
    "NaN of new rows": lambda: fit().predict(spoiled(X, np.nan, 2)),
    "NaN in gram": lambda: mercer.gram(spoiled(X, np.nan, 2), "linear"),
    "weight": lambda: fit(weight=spoiled(np.ones(40), -1)),
    "empty text": lambda: fit(texts(""), "spectrum(2)"),
    "missing text": with_gap,
    "negative": lambda: fit(spoiled(np.abs(X), -1, 2), "chi2", standardize=False),
    "negative, after a row without weight": lambda: fit(spoiled(np.abs(X), -1, 2), "chi2", standardize=False, weight=np.r_[0.0, np.ones(39)]),
    "negative of new rows": lambda: fit(np.abs(X), "chi2", standardize=False).predict(spoiled(np.abs(X), -1, 2)),
    "graph": lambda: fit(texts("C O; 0-9", "C O; 0-1"), "wl(1)"),
    "view": lambda: fit({"a": X[:, :2], "b": spoiled(X[:, 2:], np.nan)}),
    "sphere": lambda: fit(spoiled(X, 0), normalize="spherical", standardize=False),
    "kernel values": lambda: fit(K, "precomputed").predict(spoiled(K, np.nan, 1)),
    "kernel value in fit": lambda: fit(spoiled(K, np.nan, 5), "precomputed"),
    "asymmetry": lambda: fit(spoiled(K, 99.0, 5), "precomputed"),
    "memberships": lambda: fit(estimator=CLMKLClassifier, regions=memberships),
    "region": unknown_region,
    "masked cell": lambda: fit(np.ma.masked_array(X, mask=spoiled(np.zeros_like(X, bool), True))),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_count_from_zero(case):
    with pytest.raises(ValueError, match=r"\b(row 3|entry \(3, 5\)|entry \(5, 3\))") as told:
        ROWS[case]()
    assert not re.search(r"row 4|\(4,|, 4\)|line ", str(told.value)), told.value


def test_rows_of_folds_are_rows_of_the_data():
    """A search prepares its folds anew; what is wrong in one of them is named by its place in the data."""
    values = spoiled(np.abs(X), -1, 2)
    with pytest.raises(ValueError, match="row 3 is -1"):
        fit(values, "chi2", standardize=False, C="auto")
    with pytest.raises(ValueError, match=r"entry \(3, 5\)"):
        fit(spoiled(K, np.nan, 5), "precomputed", C="auto")


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("rbf", "rbf(auto)"),
        (["rbf", "linear"], "rbf(auto); linear"),
        ("laplace on each", "laplace(auto) on each"),
        ("poly, linear on all", "poly(3), linear on all"),
        ("gauss(l1)", "gauss(l1, auto)"),
    ],
    ids=str,
)
def test_kernels_without_brackets(given, means):
    assert fit(kernels=given).kernel_names_ == fit(kernels=means).kernel_names_


@pytest.mark.parametrize("word", ["sigmoid", "spectrum", "mismatch", "wd", "wdsum", "alignment", "wl", "gauss"])
def test_kernels_that_need_brackets_show_how(word):
    with pytest.raises(ValueError, match=rf"as in `{word}\(.*\)`") as told:
        fit(kernels=word)
    example = re.search(r"as in `(.*)`", str(told.value)).group(1)
    assert mercer._mercer.parse_kernels(example)


@pytest.mark.parametrize(
    "act",
    [
        lambda: fit(class_weight={np.int64(5): np.float64(2)}),
        lambda: fit(y=np.zeros(40, int)),
        lambda: fit(y=np.full(40, "a")),
        lambda: fit(loss=np.str_("none")),
        lambda: fit(tol=np.float64("nan")),
        lambda: fit(max_iter=np.int64(0)),
        lambda: fit(n_jobs=np.float64(2.0)),
        lambda: fit(estimator=CLMKLClassifier, regions=lambda Z: np.arange(len(Z)) % (2 if len(Z) == 40 else 3)).predict(X[:9]),
    ],
)
def test_values_are_shown_as_python_writes_them(act):
    with pytest.raises((ValueError, TypeError)) as told:
        act()
    assert "np." not in str(told.value)


def test_functions_are_called_what_they_are_called():
    def cosine(A, B):
        return A @ B.T

    clf = fit(kernels=[lambda A, B: A @ B.T, cosine, lambda A, B: (A @ B.T) ** 2, "linear"])
    assert clf.kernel_names_ == ["lambda", "cosine", "lambda 2", "linear on all"]
    assert repr(Callable(cosine)) == "Callable(cosine)"


def test_an_impossible_interior_solver_says_why():
    with pytest.raises(ValueError, match="hinge or epsilon-insensitive loss") as told:
        fit(loss="logistic", solver="interior")
    assert "one of the other solvers" in str(told.value)


DATES = np.arange(40).astype("datetime64[D]")
CITIES = ["Rio", "Oslo"] * 20


def frames():
    """Frames with one column that is no number, by the kind of its trouble."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    days = [datetime.date(2020, 1, 1 + k % 28) for k in range(40)]
    yield "categorical", frame.assign(e=pd.Categorical(CITIES))
    yield "categorical", frame.assign(e=pd.Categorical([1, 2] * 20))
    yield "categorical", frame.assign(e=pd.Categorical([True, False] * 20))
    for column in (pd.Series(DATES), pd.to_timedelta(np.arange(40), "D"), pd.period_range("2020", periods=40, freq="D"), days):
        yield "dates", frame.assign(e=column)
    yield "True, False and missing", frame.assign(e=pd.Series([True, None] * 20, dtype=object))
    if "polars" in sys.modules or _there("polars"):
        import polars as pl

        table = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
        yield "categorical", table.with_columns(pl.Series("e", CITIES).cast(pl.Categorical))
        yield "categorical", table.with_columns(pl.Series("e", CITIES).cast(pl.Enum(["Rio", "Oslo"])))
        yield "dates", table.with_columns(pl.Series("e", days))
        yield "dates", table.with_columns(pl.Series("e", days).cast(pl.Datetime))
        yield "dates", table.with_columns(pl.Series("e", [datetime.timedelta(k) for k in range(40)]))
    if _there("pyarrow"):
        import pyarrow as pa

        columns = {name: X[:, j] for j, name in enumerate("abcd")}
        yield "categorical", pa.table(columns | {"e": pa.array(CITIES).dictionary_encode()})
        yield "dates", pa.table(columns | {"e": pa.array(days)})


def _there(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def test_columns_that_are_no_numbers_are_told_what_to_do():
    advice = {"categorical": "OneHotEncoder", "dates": "days since", "True, False and missing": "astype"}
    for kind, frame in frames():
        for act in (fit, lambda frame: mercer.gram(frame, "linear"), lambda frame: fit({"v": frame})):
            with pytest.raises(ValueError, match=f"column `e` .*{kind}.*{re.escape(advice[kind])}") as told:
                act(frame)
            assert "spectrum" not in str(told.value)


def test_booleans_and_nullable_numbers_are_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = fit(frame.assign(e=Y.astype(float))).decision_function(frame.assign(e=Y.astype(float)))
    for column in (Y.astype(bool), Y.astype(bool).astype(object), pd.array(Y, "Int64"), pd.array(Y.astype(bool), "boolean")):
        given = frame.assign(e=column)
        np.testing.assert_array_equal(fit(given).decision_function(given), expected)


def test_a_text_column_may_be_a_category_or_a_sequence():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"column `city`: holds text, `Rio` in row 0.*encode categories.*spectrum\(3\)"):
        fit(pd.DataFrame(X, columns=list("abcd")).assign(city=CITIES))


@pytest.mark.parametrize("values", [DATES, DATES - DATES[0]], ids=["datetime64", "timedelta64"])
def test_arrays_of_dates_are_refused(values):
    days = np.repeat(values[:, None], 3, axis=1)
    for act in (
        lambda: fit(days),
        lambda: fit(days.astype(object)),
        lambda: fit({"a": X, "b": days}),
        lambda: fit(np.repeat(values[:, None], 40, axis=1), "precomputed"),
        lambda: fit(y=values, estimator=GMKLRegressor),
        lambda: fit(weight=values),
        lambda: fit().predict(days),
        lambda: mercer.gram(days, "linear"),
    ):
        with pytest.raises(ValueError, match="holds dates or times"):
            act()


class Container:
    """Stands for AnnData: rows of it are containers again, so that NumPy never comes to an end."""

    obs = X = object()

    def __len__(self):
        return 40

    def __getitem__(self, at):
        raise AssertionError("nobody may walk through a container")


class Several(Container):
    """Stands for MuData."""

    mod = object()


@pytest.mark.parametrize(("container", "advice"), [(Container(), "data.X"), (Several(), "data.mod.items()")])
def test_containers_of_matrices_are_refused_at_once(container, advice):
    for act in (fit, lambda c: fit({"a": c}), lambda c: fit(c, "precomputed"), lambda c: mercer.gram(c, "linear"), fit().predict):
        with pytest.raises(TypeError, match=re.escape(advice)):
            act(container)


def test_a_frame_may_have_columns_called_obs_and_x():
    pd = pytest.importorskip("pandas")
    assert fit(pd.DataFrame(X, columns=["obs", "X", "mod", "d"])).n_features_in_ == 4


def test_lazy_frames_are_to_be_collected():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"\.collect\(\)"):
        fit(pl.DataFrame({"a": X[:, 0]}).lazy())


def test_stacks_the_other_way_round_are_recognised():
    stack = np.stack([K, K + 1.0], axis=-1)
    clf = fit(stack, "precomputed")
    for act in (lambda X: fit(X, "precomputed"), lambda X: mercer.diagnose(X, Y, "precomputed")):
        with pytest.raises(ValueError, match=re.escape("np.stack(X, axis=-1)")):
            act([K, K + 1.0])
        with pytest.raises(ValueError, match=re.escape("np.moveaxis(X, 0, -1)")):
            act(np.moveaxis(stack, -1, 0))
    with pytest.raises(ValueError, match=re.escape("np.stack(X, axis=-1)")):
        clf.predict([K[:7], K[:7]])
    with pytest.raises(ValueError, match=re.escape("np.moveaxis(X, 0, -1)")):
        clf.predict(np.moveaxis(stack[:7], -1, 0))
    # As many kernels as rows, in the right order: nothing to recognise.
    fit(np.repeat(K[:, :, None], 40, axis=2), "precomputed", C=1e-3)


def test_masks_are_not_ignored():
    mask = np.abs(X) > 1.5
    masked = np.ma.masked_array(X, mask=mask)
    whole = np.ma.masked_array(Y, mask=Y > 0)
    for act in (
        lambda: fit(masked),
        lambda: fit({"a": masked}),
        lambda: fit({"a": GramView(np.ma.masked_array(K, mask=K > 3))}, "precomputed(a)"),
        lambda: fit(np.ma.masked_array(K, mask=K > 3), "precomputed"),
        lambda: fit(y=whole),
        lambda: fit(weight=np.ma.masked_array(np.ones(40), mask=Y > 0)),
        lambda: fit().predict(masked),
        lambda: mercer.gram(masked, "linear"),
    ):
        with pytest.raises(ValueError, match="masked cells"):
            act()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = fit(np.ma.masked_array(X), y=np.ma.masked_array(Y))
    np.testing.assert_array_equal(clf.decision_function(X), fit().decision_function(X))


def test_threads_end_where_the_program_ends_them():
    assert n_threads(4096) == 4096
    for many in (4097, 30_000, 10**9):
        with pytest.raises(ValueError, match=f"`n_jobs` must be at most 4096, got {many}"):
            fit(n_jobs=many)
