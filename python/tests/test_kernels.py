"""Kernels of sequences and histograms, kernel objects, functions as kernels; held against scikit-learn and plain Python."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer import GMKLClassifier, GMKLRegressor, UniformMKLClassifier
from mercer._mercer import number_kernels, parse_kernels
from mercer.kernels import (
    RBF,
    Alignment,
    Callable,
    Cauchy,
    Chi2,
    Gauss,
    Intersection,
    Laplacian,
    Linear,
    Mismatch,
    Polynomial,
    Precomputed,
    Sigmoid,
    Spectrum,
    WeightedDegree,
    WeisfeilerLehman,
    to_text,
)


@pytest.fixture
def histograms():
    rng = np.random.default_rng(1)
    X, Z = (rng.dirichlet(np.ones(6), size=n) * (rng.uniform(size=(n, 6)) > 0.2) for n in (15, 9))
    return X, Z


@pytest.fixture
def dna():
    """Sequences with GATTACA somewhere are of class yes."""
    rng = np.random.default_rng(2)
    texts = ["".join(rng.choice(list("ACGT"), size=50)) for _ in range(120)]
    y = np.arange(120) % 2
    at = rng.integers(0, 43, size=120)
    texts = [t[:a] + "GATTACA" + t[a + 7 :] if c else t for t, a, c in zip(texts, at, y, strict=True)]
    return texts, np.array(["no", "yes"])[y]


def test_kernels_of_numbers_are_those_of_scikit_learn(histograms):
    X, Z = histograms
    distance = -additive_chi2_kernel(Z, X)
    for kernel, want in [
        (Chi2(0.7), chi2_kernel(Z, X, gamma=0.7)),
        (Gauss("chi2", 1.3), np.exp(-distance / 1.3)),
        # Σ 2xz/(x+z) = (Σ x + Σ z − χ²) / 2
        (Chi2(), (Z.sum(1)[:, None] + X.sum(1)[None, :] - distance) / 2),
        (Laplacian(2.0), laplacian_kernel(Z, X, gamma=0.5)),
        (Cauchy(0.4), 1 / (1 + ((Z[:, None, :] - X[None]) ** 2).sum(-1) / 0.4**2)),
        (Gauss("l1", 2.0), laplacian_kernel(Z, X, gamma=0.5)),
        (Polynomial(3, 0.5), polynomial_kernel(Z, X, degree=3, gamma=1, coef0=0.5)),
        (RBF(0.6), rbf_kernel(Z, X, gamma=1 / (2 * 0.6**2))),
        (Intersection(), np.minimum(Z[:, None, :], X[None, :, :]).sum(-1)),
        (Gauss("hellinger", 0.4), np.exp(-((np.sqrt(Z)[:, None, :] - np.sqrt(X)[None]) ** 2).sum(-1) / 0.4)),
        (Gauss("l2", 0.4), np.exp(-np.sqrt(((Z[:, None, :] - X[None]) ** 2).sum(-1)) / 0.4)),
        (Sigmoid(0.3, 0.1), sigmoid_kernel(Z, X, gamma=0.3, coef0=0.1)),
    ]:
        assert_allclose(mercer.gram(Z, kernel, X)[:, :, 0], want, rtol=1e-12, atol=1e-14, err_msg=repr(kernel))


def test_every_kernel_of_numbers_has_a_class():
    words = {getattr(getattr(mercer.kernels, name), "_word", None) for name in mercer.kernels.__all__}
    assert {word for word, _, _ in number_kernels()} <= words


def test_automatic_chi2_is_one_over_the_mean_distance(histograms):
    X, _ = histograms
    distance = -additive_chi2_kernel(X)
    gamma = 1 / distance[np.triu_indices(15, 1)].mean()
    assert_allclose(mercer.gram(X, Chi2("auto"))[:, :, 0], np.exp(-gamma * distance), rtol=2e-3)


def test_a_gaussian_as_wide_as_the_deviation(binary):
    X, _ = binary
    X = X * 10.0 ** np.arange(X.shape[1])
    K = mercer.gram(X, RBF("deviation").on("each"))
    for m, column in enumerate(X.T):
        d2 = (column[:, None] - column) ** 2
        # The width is rounded to four digits, so the exponent is off by a thousandth of itself at most.
        assert_allclose(K[:, :, m], np.exp(-d2 / (2 * column.var())), rtol=0, atol=1e-3)


def test_the_default_bank_has_a_kernel_per_column_beside_those_of_all(binary):
    X, y = binary
    names = list(GMKLClassifier().fit(X, y).kernel_names_)
    assert len(names) == 8 + X.shape[1]
    assert names[8:] == [f"rbf(1) on x{j + 1}" for j in range(X.shape[1])]
    assert names == list(UniformMKLClassifier("rbf(auto), poly(1..3) on all; rbf(deviation) on each").fit(X, y).kernel_names_)
    wide = np.random.default_rng(0).normal(size=(12, 101))
    assert len(GMKLClassifier().fit(wide, wide[:, 0] > 0).kernel_names_) == 8


def spectrum(a, b, k):
    words = [b[j : j + k] for j in range(len(b) - k + 1)]
    return sum(words.count(a[i : i + k]) for i in range(len(a) - k + 1))


def wd(a, b, d):
    return sum(a[i : i + d] == b[i : i + d] for i in range(min(len(a), len(b)) - d + 1))


def test_string_kernels_count_what_they_say(dna):
    texts = dna[0][:12]
    for kernel, value in [(Spectrum(3), lambda a, b: spectrum(a, b, 3)), (WeightedDegree(2), lambda a, b: wd(a, b, 2))]:
        want = [[value(a, b) for b in texts] for a in texts]
        assert_array_equal(mercer.gram(texts, kernel)[:, :, 0], want)
    sums = [[sum(2 * (4 - k) / 12 * wd(a, b, k) for k in (1, 2, 3)) for b in texts] for a in texts[:3]]
    assert_allclose(mercer.gram(texts[:3], WeightedDegree(3, sum=True), texts)[:, :, 0], sums)
    near = mercer.gram(texts, Mismatch(3, 1, "dna"))[:, :, 0]
    assert (near >= mercer.gram(texts, Spectrum(3))[:, :, 0]).all() and (np.linalg.eigvalsh(near) > -1e-8).all()


def containers(texts):
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return {
        "list": texts,
        "array": np.array(texts),
        "object array": np.array(texts, dtype=object),
        "series": pd.Series(texts, name="sequence"),
        "frame": pd.DataFrame({"sequence": texts}),
        "string frame": pd.DataFrame({"sequence": pd.array(texts, dtype="string")}),
        "arrow frame": pd.DataFrame({"sequence": pd.array(texts, dtype=pd.ArrowDtype(pa.string()))}),
        "polars": pl.DataFrame({"sequence": texts}),
        "polars series": pl.Series("sequence", texts),
        "arrow": pa.table({"sequence": texts}),
        "views": {"sequence": texts},
    }


def test_sequences_come_in_many_containers(dna):
    texts, y = dna
    bank = [Spectrum("2..5"), WeightedDegree([1, 2])]
    wanted = GMKLClassifier(bank).fit(texts[:80], y[:80])
    assert wanted.kernel_names_[0] == "spectrum(2, dna) on sequence" and len(wanted.kernel_names_) == 6
    decision = wanted.decision_function(texts[80:])
    assert (wanted.predict(texts[80:]) == y[80:]).mean() > 0.8
    new = containers(texts[80:])
    for name, X in containers(texts[:80]).items():
        clf = clone(wanted).fit(X, y[:80])
        assert_array_equal(clf.decision_function(new[name]), decision, err_msg=name)
        assert_array_equal(clf.decision_function(texts[80:]), decision, err_msg=name)


def test_parquet_comes_through_frames(dna, tmp_path):
    pd, pl, _ = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    texts, y = dna
    numbers = np.random.default_rng(4).normal(size=len(texts))
    frame = pd.DataFrame({"a": numbers, "n": np.arange(len(texts)) % 7, "dna": texts})
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = GMKLClassifier("linear on each; spectrum(2..3) on cols(dna)").fit(frame[:90], y[:90])
    decision = wanted.decision_function(frame[90:])
    read = [
        pd.read_parquet(tmp_path / "t.parquet"),
        pd.read_parquet(tmp_path / "t.parquet", dtype_backend="pyarrow"),
        pl.read_parquet(tmp_path / "t.parquet"),
    ]
    for same in read:
        clf = clone(wanted).fit(same[:90], y[:90])
        assert_array_equal(clf.decision_function(same[90:]), decision, err_msg=str(type(same)))


def test_text_stands_beside_numbers_and_models_of_it_are_saved(dna, tmp_path):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    texts, y = dna
    numbers = np.random.default_rng(3).normal(size=(120, 2))
    frame = pd.DataFrame({"a": numbers[:, 0], "dna": texts, "b": numbers[:, 1]})
    clf = GMKLClassifier("linear on each; spectrum(3..5) on cols(dna)").fit(frame[:90], y[:90])
    assert list(clf.feature_names_in_) == ["a", "b", "dna"] and clf.n_features_in_ == 3
    clf.save(tmp_path / "m.mercer")
    for new in (frame[90:], frame[90:][["dna", "b", "a"]], pl.from_pandas(frame[90:])):
        assert_array_equal(mercer.load(tmp_path / "m.mercer").decision_function(new), clf.decision_function(frame[90:]))
    by_view = GMKLClassifier("linear on each; spectrum(3..5) on view(dna)")
    by_view.fit({"n": numbers[:90], "dna": texts[:90]}, y[:90])
    assert_allclose(by_view.decision_function({"dna": texts[90:], "n": numbers[90:]}), clf.decision_function(frame[90:]))
    for wrong, match in [
        (frame.drop(columns="dna"), "of text"),
        (frame.assign(dna=1.0), "of text"),
        (frame.assign(dna=None), "of text|no text"),
        (frame.assign(dna=[None, *texts[1:]]), "row 0 has no text"),
        (frame.assign(dna=["", *texts[1:]]), "row 1 is an empty text"),
    ]:
        with pytest.raises(ValueError, match=match):
            clf.predict(wrong)
    with pytest.raises(ValueError, match="column `dna`: holds text"):
        GMKLClassifier("linear").fit(frame, y)
    with pytest.raises(ValueError, match="neither numbers nor texts"):
        GMKLClassifier("spectrum(2)").fit(frame.assign(a=pd.date_range("2020-01-01", periods=120)), y)


def test_sequences_go_through_model_selection(dna):
    texts, y = dna
    scores = cross_val_score(UniformMKLClassifier("spectrum(3..5)"), texts, y, cv=3)
    assert scores.mean() > 0.75
    search = GridSearchCV(GMKLClassifier("spectrum(3..5)"), {"C": [0.1, 10]}, cv=3).fit(texts, y)
    assert search.best_score_ > 0.75


KERNELS = [
    Linear(),
    RBF([0.5, 1]),
    RBF("auto").on("all", "each"),
    RBF("deviation").on("each"),
    Polynomial(2, c=0.5),
    Laplacian(3),
    Chi2(),
    Chi2(0.5),
    Chi2("auto").on(columns=["a", 2]),
    Gauss("hellinger"),
    Intersection(),
    Sigmoid(0.5, offset=-1),
    Spectrum(3),
    Spectrum((2, 3), alphabet="protein").on(view="v"),
    Mismatch(5, 1),
    Mismatch(5, 1, alphabet="dna"),
    WeightedDegree("1..20"),
    WeightedDegree(3, shift=2, sum=True, alphabet="rna"),
    Alignment(),
    Alignment("pam50", open=9, extend=2),
    WeisfeilerLehman("0..3"),
    Precomputed(),
    Callable(rbf_kernel),
    Callable(rbf_kernel, name="mine"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_repr_is_the_constructor(kernel):
    assert eval(repr(kernel)) == kernel
    if not isinstance(kernel, (Precomputed, Callable)):
        # What is written is what the core reads, and it reads its own writing.
        assert parse_kernels(parse_kernels(str(kernel))) == parse_kernels(to_text([kernel]))


def test_functions_are_kernels_too(binary):
    X, y = binary
    rows, new = X[:60], X[60:]

    def half(A, B):
        return rbf_kernel(A, B, gamma=0.5)

    bank = [half, Callable(polynomial_kernel, name="cubic"), RBF([0.5, 2])]
    clf = GMKLClassifier(bank, C=10).fit(rows, y[:60])
    assert clf.kernel_names_[0].endswith("half") and clf.kernel_names_[1:] == ["cubic", "rbf(0.5) on all", "rbf(2) on all"]
    stack = np.concatenate(
        [half(rows, rows)[..., None], polynomial_kernel(rows)[..., None], mercer.gram(rows, RBF([0.5, 2]))], axis=2
    )
    ready = GMKLClassifier(Precomputed(), C=10).fit(stack, y[:60])
    assert_array_equal(clf.kernel_weights_, ready.kernel_weights_)
    cross = np.concatenate(
        [half(new, rows)[..., None], polynomial_kernel(new, rows)[..., None], mercer.gram(new, RBF([0.5, 2]), rows)],
        axis=2,
    )
    assert_array_equal(clf.decision_function(new), ready.decision_function(cross))
    assert GMKLRegressor(half).fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.9
    assert cross_val_score(clf, X, y, cv=3).mean() > 0.7
    with pytest.raises(ValueError, match="array \\(rows, rows\\)"):
        GMKLClassifier(lambda A, B: np.zeros(3)).fit(X, y)
    with pytest.raises(ValueError, match="finite"):
        GMKLClassifier(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


def centred_alignment(K, L):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return (K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum())


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_diagnose_says_what_numpy_says(binary, kind):
    X, y = binary
    y, goal = (np.array(["u", "v"])[y], np.equal.outer(y, y)) if kind == "classes" else (X[:, 0] + 1, None)
    goal = np.outer(y, y) if goal is None else goal.astype(float)
    bank = [RBF([0.5, 2]), Linear().on("each")]
    found = mercer.diagnose(X, y, bank, standardize=False)
    grams = mercer.gram(X, bank, normalize="multiplicative")
    assert found.kernel_names[0] == "rbf(0.5) on all" and list(found.frame().index) == found.kernel_names
    for t, K in enumerate(np.moveaxis(grams, 2, 0)):
        assert_allclose(found.alignment[t], centred_alignment(K, goal), rtol=1e-6)
        assert_allclose(found.trace[t], np.trace(K))
        H = np.eye(80) - 1 / 80
        values = np.linalg.eigvalsh(H @ K @ H)
        assert_allclose(found.effective_rank[t], values.sum() ** 2 / (values**2).sum(), rtol=1e-6)
        for s, L in enumerate(np.moveaxis(grams, 2, 0)):
            assert_allclose(found.between[t, s], centred_alignment(K, L), rtol=1e-6, atol=1e-12)
    ready = mercer.diagnose(mercer.gram(X, bank), y, "precomputed")
    assert_allclose(ready.alignment, found.alignment)
    named = mercer.diagnose(X, y, [rbf_kernel, Callable(polynomial_kernel, name="cubic")])
    assert named.kernel_names == ["rbf_kernel", "cubic"] and (named.between >= 0).all()
    assert np.isinf(found.condition[-1])


def test_diagnose_takes_sequences(dna):
    texts, y = dna
    found = mercer.diagnose(texts, y, [Spectrum("1..6")])
    assert found.alignment.argmax() >= 3 and found.between.shape == (6, 6)
    with pytest.raises(ValueError, match="one class"):
        mercer.diagnose(texts, ["a"] * len(texts), Spectrum(2))


def test_alignment_scores_are_those_of_biotite():
    """Needs biotite, an implementation from outside."""
    align = pytest.importorskip("biotite.sequence.align")
    sequence = pytest.importorskip("biotite.sequence")
    rng = np.random.default_rng(5)
    texts = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), size=n)) for n in rng.integers(5, 60, size=8)]
    texts[3] = texts[1][:4] + texts[2]
    for scoring, name in [("blosum62", "BLOSUM62"), ("pam50", "PAM50")]:
        letters = sequence.ProteinSequence.alphabet
        matrix = align.SubstitutionMatrix(letters, letters, name)
        score = np.array(
            [
                [
                    align.align_optimal(
                        sequence.ProteinSequence(a),
                        sequence.ProteinSequence(b),
                        matrix,
                        gap_penalty=(-7, -2),
                        local=True,
                        max_number=1,
                    )[0].score
                    for b in texts
                ]
                for a in texts
            ],
            dtype=float,
        )
        assert_array_equal(mercer.gram(texts, Alignment(scoring, 7, 2))[:, :, 0], score @ score.T)


def test_graphs_are_texts():
    ring, chain = "0-1 1-2 2-0", "0-1 1-2"
    graphs = [f"C {label} C; {edges}" for label in "CNO" for edges in (ring, chain)] * 4
    y = np.array([g.endswith(ring) for g in graphs])
    clf = GMKLClassifier(WeisfeilerLehman("0..2")).fit(graphs, y)
    assert clf.score(['{"labels": ["C", "N", "C"], "edges": [[0, 1], [1, 2], [2, 0]]}', f"C C C; {chain}"], [True, False]) == 1
    assert clf.kernel_weights_[0] == 0
    with pytest.raises(ValueError, match="row 0 is no graph"):
        clf.predict(["C C; 0-7"])
