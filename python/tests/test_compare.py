"""`mercer.compare` and the displays."""

import builtins
import json

import numpy as np
import pytest

import mercer
from mercer import CLMKLClassifier, GMKLClassifier

pd = pytest.importorskip("pandas")

BANK = "rbf(1|3), linear on all, each"


@pytest.fixture
def result(binary):
    X, y = binary
    return mercer.compare(X, y, ["l1", "gmkl(v=0.5)"], kernels=BANK, grid="C=1|10", repeats=4, random_state=1)


def test_a_frame_with_baselines_tests_and_a_page(result, tmp_path):
    assert isinstance(result, pd.DataFrame)
    assert list(result.index) == ["uniform", "single", "l1", "gmkl(v=0.5)"]
    assert result.loc["uniform", "kernels"] == result.loc["uniform", "of"] == 12
    assert np.isnan(result.loc["uniform", "p"]) and 0 <= result.loc["l1", "p"] <= 1
    assert result["mean"].between(0.4, 1).all() and (result["low"] <= result["mean"]).all()
    assert result.attrs["metric"] == "accuracy" and "equal weights" in result.verdict
    runs = result.runs()
    assert len(runs) == 16 and runs["error"].isna().all()
    mean = runs.groupby("method")["score"].mean()
    np.testing.assert_allclose(mean[result.index], result["mean"])
    weights = result.weights()
    np.testing.assert_allclose(weights.groupby("method")["share"].sum(), 1.0)
    tests = result.tests()
    np.testing.assert_allclose(tests, tests.T)
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Which differences are real" in page and "http" not in page
    # A selection is a plain frame.
    assert type(result[["mean"]]) is pd.DataFrame


def test_the_same_whatever_the_threads_and_from_the_journal(binary, result, tmp_path):
    X, y = binary
    asked = {"kernels": BANK, "grid": "C=1|10", "repeats": 4, "random_state": 1}
    journal = tmp_path / "runs.jsonl"
    again = mercer.compare(X, y, "l1, gmkl(v=0.5)", n_jobs=1, journal=journal, **asked)
    clock = ["seconds", "search_seconds"]
    pd.testing.assert_frame_equal(pd.DataFrame(again).drop(columns=clock), pd.DataFrame(result).drop(columns=clock))
    resumed = mercer.compare(X, y, ["l1", "gmkl(v=0.5)"], journal=journal, **asked)
    pd.testing.assert_frame_equal(pd.DataFrame(resumed), pd.DataFrame(again))
    with pytest.raises(OSError, match="other data"):
        mercer.compare(X[:-1], y[:-1], ["l1", "gmkl(v=0.5)"], journal=journal, **asked)


def test_values_groups_time_and_ready_made_kernels(regression, capsys):
    X, y = regression
    frame = pd.DataFrame(X, columns=["a", "b"])
    groups = np.arange(len(y)) // 7
    asked = {"kernels": BANK, "grid": "C=1", "folds": 3, "repeats": 1}
    found = mercer.compare(frame, y, "l2", metric="nmse", groups=groups, verbose=1, **asked)
    assert not found.attrs["higher_is_better"] and len(found.runs()) == 9
    assert "9 of 9 runs" in capsys.readouterr().err
    ordered = mercer.compare(frame, y, "l2", kernels=BANK, grid="C=1", folds=3, time_ordered=True)
    assert len(ordered.runs()) == 9
    ready = mercer.compare(mercer.gram(X, BANK), y, "l2", kernels="precomputed", grid="C=1", repeats=2)
    assert ready.loc["l2", "of"] == 9


def test_mistakes_are_named(binary):
    X, y = binary
    for wrong, told in [
        ({"methods": "gmk"}, "gmkl"),
        ({"metric": "rmse"}, "metric"),
        ({"grid": "C"}, "name=values"),
        ({"train": 1.5}, "train"),
        ({"repeats": 0}, "repeats"),
    ]:
        with pytest.raises(ValueError, match=told):
            mercer.compare(X, y, **({"methods": "l1", "kernels": BANK} | wrong))


def test_displays_draw_what_was_learned(binary, result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = binary
    clf = GMKLClassifier(BANK, C=10).fit(X, y)
    shown = mercer.KernelWeightsDisplay.from_estimator(clf, top=5)
    widths = sorted((bar.get_width() for bar in shown.ax_.patches), reverse=True)
    np.testing.assert_allclose(widths, np.sort(clf.kernel_weights_)[::-1][:5])
    trace = mercer.ConvergenceDisplay.from_estimator(clf)
    assert trace.ax_.get_yscale() == "log" and len(trace.ax_.lines[0].get_xdata()) == len(clf.trace_)
    plane = X[:, :2]
    local = CLMKLClassifier("rbf(1), linear on all", C=10, n_clusters=2, random_state=0).fit(plane, y)
    regions = mercer.RegionDisplay.from_estimator(local, plane, resolution=20)
    assert regions.memberships.shape == (400, 2)
    with pytest.raises(TypeError, match="no regions"):
        mercer.RegionDisplay.from_estimator(clf, plane)
    with pytest.raises(ValueError, match="2 columns"):
        mercer.RegionDisplay.from_estimator(local, X)
    compared = mercer.ComparisonDisplay.from_comparison(result)
    assert [t.get_text() for t in compared.ax_.get_yticklabels()] == list(result.index)
    matplotlib.pyplot.close("all")


def test_without_matplotlib_the_error_says_what_to_install(binary, monkeypatch):
    X, y = binary
    clf = GMKLClassifier(BANK).fit(X, y)
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        mercer.KernelWeightsDisplay.from_estimator(clf)


def test_the_frame_reads_what_the_program_writes(result):
    found = json.loads(result._json)
    assert {"lines", "between", "verdict", "stability", "runs"} <= set(found)
