//! Kernels of sequences and of histograms: laws, storage, prediction of new rows, what is refused;
//! how kernels align.

use std::path::Path;

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Rows, Sequences, Table, Target},
    gram::{Budget, BuildOptions, GramSet, GramSource, Stack, Storage, gram_block},
    kernels::{Alphabet, Function, KernelSpec, Normalize, Scoring, Text, language},
    linalg::{Matrix, dot},
    methods::non_negative,
    request::MethodSpec,
    request::Scheme,
    trace::Silent,
    train::{diagnose, diagnose_precomputed, verify},
};
use mercer_testkit::{
    histogram_functions, naive_kernel,
    strings::{
        SmallGraph, all_string_kernels, naive_alignment, naive_string_kernel, naive_wl,
        random_graphs, random_sequences,
    },
};

fn sequences(texts: &[String]) -> Rows {
    Rows::new(Matrix::default(), vec![Sequences::new("s", texts).unwrap()]).unwrap()
}

fn spec(kernel: Text) -> KernelSpec {
    KernelSpec::new(Function::Text(kernel), vec![0], format!("{kernel:?}"))
}

#[test]
fn string_kernels_agree_with_their_naive_twin_and_are_symmetric_and_positive_semidefinite() {
    let mut rng = Rng::new(1);
    for kernel in all_string_kernels() {
        let (x, z) =
            (random_sequences(kernel.alphabet(), 12, 2), random_sequences(kernel.alphabet(), 5, 3));
        let (px, pz) = (spec(kernel).points(&sequences(&x)), spec(kernel).points(&sequences(&z)));
        let (own, cross, diagonal) = (px.block(&px), pz.block(&px), px.diagonal());
        for i in 0..x.len() {
            for j in 0..z.len() {
                let want = naive_string_kernel(kernel, &z[j], &x[i]);
                assert!(
                    (cross[(j, i)] - want).abs() <= 1e-12 * want,
                    "{kernel:?}: {} {} {want}",
                    z[j],
                    x[i]
                );
            }
            assert_eq!(own[(i, i)], diagonal[i], "{kernel:?}");
            // Both shifts are added in the other order.
            assert!(
                (0..x.len()).all(|j| (own[(i, j)] - own[(j, i)]).abs() <= 1e-12 * own[(i, j)]),
                "{kernel:?}"
            );
        }
        let largest = diagonal.iter().copied().fold(0.0, f64::max);
        for _ in 0..20 {
            let a: Vec<f64> = x.iter().map(|_| rng.normal()).collect();
            let form: f64 = (0..x.len()).map(|i| a[i] * dot(own.row(i), &a)).sum();
            assert!(form >= -1e-12 * largest * 144.0, "{kernel:?}: {form}");
        }
    }
}

/// Words too long for their letters to stand side by side in a key are hashed; they must still be
/// told apart.
#[test]
fn long_words_are_exact_too() {
    let long = "ACDEFGHIKLMNPQRSTVWY".repeat(4);
    let other = long.replacen('W', "V", 1);
    for (k, alphabet) in
        [(26, Alphabet::Protein), (64, Alphabet::Protein), (7, Alphabet::Free), (64, Alphabet::Dna)]
    {
        let kernel = Text::Spectrum { k, alphabet };
        let points = spec(kernel).points(&sequences(&[long.clone(), other.clone()]));
        let block = points.block(&points);
        assert_eq!(block[(0, 1)], naive_string_kernel(kernel, &long, &other), "{kernel:?}");
        assert_eq!(block[(0, 0)], naive_string_kernel(kernel, &long, &long), "{kernel:?}");
    }
}

/// Every storage form under every normalisation against the normalised matrix, and new rows against
/// the normalised cross block.
#[test]
fn stored_string_terms_act_like_the_normalised_matrix_on_old_and_new_rows() {
    let text =
        |texts: Vec<String>| Dataset::from_rows(sequences(&texts), vec!["s".into()]).unwrap();
    let (train, test) = (text(random_dna(40, 60, 4)), text(random_dna(9, 75, 5)));
    let bank =
        language::parse("spectrum(2..3), mismatch(3, 1), wd(1..3|8), wd(2, shift = 2), wdsum(4)")
            .unwrap();
    let kernels = bank.resolve(&train).unwrap();
    assert_eq!(kernels.len(), 9);
    assert_eq!(kernels[0].name, "spectrum(2, dna) on s");
    assert_eq!(kernels[7].name, "wd(2, 2, dna) on s");
    let a: Vec<f64> =
        (0..40).map(|i| if i % 4 == 0 { 0.0 } else { f64::from(i % 5) - 2.0 }).collect();
    for normalize in [
        Normalize::Trace,
        Normalize::Multiplicative,
        Normalize::Spherical,
        Normalize::Center,
        Normalize::None,
    ] {
        let own = gram_block(&train, None, &kernels, normalize).unwrap();
        for (storage, accuracy) in [
            (Storage::Auto, 1e-9),
            (Storage::LowRank, 1e-9),
            (Storage::Dense, 1e-12),
            (Storage::DenseF32, 1e-6),
        ] {
            let options = BuildOptions {
                normalize,
                storage,
                rank_tolerance: 1e-13,
                budget: Budget { bytes: 1 << 30 },
                ..BuildOptions::default()
            };
            let set = GramSet::from_rows(train.rows(), &kernels, &options).unwrap();
            for (t, k) in own.iter().enumerate() {
                let size = k.data().iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let mut out = vec![0.0; 40];
                set.apply(t, &a, &mut out);
                for i in 0..40 {
                    let want = dot(k.row(i), &a);
                    let what = format!(
                        "{} {normalize:?} {storage:?}: {} instead of {want}",
                        kernels[t].name, out[i]
                    );
                    assert!((out[i] - want).abs() <= 80.0 * accuracy * size, "{what}");
                }
            }
        }
        // A model's decision values are Σ_m θ_m Σ_i a_i k_m(x_i, x) + b with the block that
        // `gram_block` normalises.
        let cross = gram_block(&test, Some(&train), &kernels, normalize).unwrap();
        let y = Target::Classes {
            names: vec!["0".into(), "1".into()],
            labels: (0..40).map(|i| i % 2).collect(),
        };
        let request = TrainSpec {
            method: MethodSpec::named("uniform").unwrap(),
            kernels: bank.to_string(),
            normalize,
            c: if normalize == Normalize::Trace { 40.0 } else { 1.0 },
            ..TrainSpec::default()
        };
        let model = mercer::train(&train, &y, None, &request, &mut Silent).unwrap();
        let (machine, decision) = (&model.machines[0], model.decision(&test).unwrap());
        for i in 0..9 {
            let term = |(k, w): (&Matrix, &f64)| {
                let pairs = machine.support.iter().zip(&machine.dual_coef);
                w * pairs.map(|(&j, a)| a * k[(i, j)]).sum::<f64>()
            };
            let want =
                machine.intercept + cross.iter().zip(&machine.weights).map(term).sum::<f64>();
            assert!(
                (decision[(i, 0)] - want).abs() < 1e-6 * want.abs().max(1.0),
                "{normalize:?}: {want}"
            );
        }
    }
}

fn random_dna(n: usize, length: usize, seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|i| (0..length - i % 3).map(|_| ['A', 'C', 'G', 'T'][rng.below(4)]).collect())
        .collect()
}

/// Sequences with the word GATTACA somewhere are of one class; numbers beside them help a little.
fn motif(n: usize, seed: u64) -> (Dataset, Target) {
    let mut rng = Rng::new(seed);
    let mut texts = random_dna(n, 50, seed);
    let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
    for (text, _) in texts.iter_mut().zip(&labels).filter(|(_, l)| **l == 1) {
        let at = rng.below(40);
        text.replace_range(at..at + 7, "GATTACA");
    }
    let numbers = labels.iter().map(|&l| l as f64 + 2.0 * rng.normal()).collect();
    let rows = Rows::new(
        Matrix::new(n, 1, numbers).unwrap(),
        vec![Sequences::new("dna", &texts).unwrap()],
    )
    .unwrap();
    let data = Dataset::from_rows(rows, vec!["signal".into(), "dna".into()]).unwrap();
    (data, Target::Classes { names: vec!["no".into(), "yes".into()], labels })
}

#[test]
fn models_of_sequences_are_certified_saved_and_predict_raw_new_ones() {
    let (data, target) = motif(160, 7);
    let (new, truth) = motif(100, 8);
    for name in ["uniform", "gmkl", "l1", "single", "smkl"] {
        let spec = TrainSpec {
            method: MethodSpec::named(name).unwrap(),
            kernels: "rbf(auto) on all; spectrum(2..6), wd(1..3) on cols(dna)".into(),
            c: 10.0,
            ..TrainSpec::default()
        };
        let model = mercer::train(&data, &target, None, &spec, &mut Silent).unwrap();
        let back = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(back.predictor, model.predictor);
        assert!(matches!(model.status().as_str(), "optimal" | "stationary"), "{name}");
        assert_eq!(model.decision(&new).unwrap(), back.decision(&new).unwrap());
        let (Target::Classes { labels, .. }, Target::Classes { labels: truth, .. }) =
            (back.predict(&new).unwrap(), &truth)
        else {
            panic!("classes");
        };
        let right = labels.iter().zip(truth).filter(|(a, b)| a == b).count();
        assert!(right >= 85, "{name}: {right} of 100");
        let found = verify(&model, &data, &target, None).unwrap();
        assert!(found.agrees, "{name}: {:?}", found.findings);
        // A damaged file is refused, wherever the damage is.
        let bytes = model.to_bytes().unwrap();
        assert!((0..bytes.len()).step_by(97).all(|at| {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            Model::from_bytes(&bad).is_err()
        }));
    }
    // Numbers where text was, and the other way round.
    let spec = TrainSpec { kernels: "linear; spectrum(3)".into(), ..TrainSpec::default() };
    let model = mercer::train(&data, &target, None, &spec, &mut Silent).unwrap();
    let names = || vec!["signal".to_string(), "dna".to_string()];
    let numbers = Dataset::new(Matrix::zeros(2, 2), names()).unwrap();
    let e = model.decision(&numbers).unwrap_err().to_string();
    assert!(e.contains("column `dna`: holds numbers where the model needs text"), "{e}");
}

#[test]
fn a_table_with_a_column_of_text_is_read_and_what_makes_no_sense_is_refused() {
    let table = |text: &str| Table::parse(text.as_bytes(), b',', Path::new("t.csv")).unwrap();
    let data =
        table("a,seq,b,y\n1,ACGT,2,u\n3,ACCT,4,v\n5,GGGG,6,u\n").dataset(&["y"], None).unwrap();
    assert_eq!(data.columns(), ["a", "b", "seq"]);
    let names = |bank: &str| -> Vec<String> {
        language::parse(bank).unwrap().resolve(&data).unwrap().into_iter().map(|k| k.name).collect()
    };
    assert_eq!(
        names("linear, wd(1..2)"),
        ["linear on all", "wd(1, dna) on seq", "wd(2, dna) on seq"]
    );
    assert_eq!(
        names("spectrum(2, free) on view(seq); rbf(1) on cols(a)"),
        ["spectrum(2, free) on seq", "rbf(1) on a"]
    );
    let refused =
        |bank: &str| language::parse(bank).unwrap().resolve(&data).unwrap_err().to_string();
    for (bank, part) in [
        ("linear", "column `seq`: holds text, `ACGT` in row 1, and no kernel reads it"),
        ("auto", "column `seq`"),
        ("spectrum(2), rbf(1) on cols(seq)", "column `seq`: holds text, and only string kernels"),
        ("spectrum(2) on cols(a)", "column `a`: holds numbers, and string kernels"),
        ("spectrum(2) on bands(2)", "bands are of numeric columns"),
        ("mismatch(3, 1, free)", "mismatches run over all letters"),
        ("mismatch(20, 10)", "within 10 mismatches"),
    ] {
        let e = refused(bank);
        assert!(e.contains(part), "{bank}: {e}");
    }
    let plain = table("a,y\n1,u\n3,v\n").dataset(&["y"], None).unwrap();
    let e = language::parse("spectrum(2)").unwrap().resolve(&plain).unwrap_err().to_string();
    assert!(e.contains("no column of text"), "{e}");
    let text = table("s,y\nAA,u\nAC,v\n").dataset(&["y"], None).unwrap();
    let e = language::parse("linear; spectrum(1)").unwrap().resolve(&text).unwrap_err().to_string();
    assert!(e.contains("no numeric column"), "{e}");
}

/// Histograms of `cols` shares, some of them zero.
fn histograms(n: usize, cols: usize, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    let mut share = || if rng.below(3) == 0 { 0.0 } else { rng.uniform() };
    Matrix::new(n, cols, (0..n * cols).map(|_| share()).collect()).unwrap()
}

#[test]
fn histogram_kernels_agree_with_their_naive_twin_and_are_positive_semidefinite() {
    let mut rng = Rng::new(1);
    for cols in [1, 4] {
        let (x, z) = (histograms(25, cols, 2), histograms(7, cols, 3));
        for f in histogram_functions() {
            let (own, cross) = (f.block(&x, &x), f.block(&z, &x));
            for i in 0..25 {
                for j in 0..7 {
                    let want = naive_kernel(f, z.row(j), x.row(i));
                    assert!((cross[(j, i)] - want).abs() <= 1e-13 * want.max(1.0), "{f:?}");
                }
                assert!((0..25).all(|j| own[(i, j)] == own[(j, i)]), "{f:?}");
            }
            for _ in 0..20 {
                let a: Vec<f64> = (0..25).map(|_| rng.normal()).collect();
                let form: f64 = (0..25).map(|i| a[i] * dot(own.row(i), &a)).sum();
                assert!(form >= -1e-12 * 25.0 * cols as f64, "{f:?}: {form}");
            }
        }
    }
}

#[test]
fn histogram_kernels_are_stored_normalised_and_predict_and_negative_numbers_are_refused() {
    let n = 60;
    let (mut x, mut new) = (histograms(n, 4, 5), histograms(11, 4, 6));
    // A row without any share has k(x, x) = 0 and no place on the sphere.
    (0..n).for_each(|i| x[(i, 0)] += 0.05);
    (0..11).for_each(|i| new[(i, 0)] += 0.05);
    let labels: Vec<usize> =
        (0..n).map(|i| usize::from(x[(i, 0)] + x[(i, 1)] > x[(i, 2)] + x[(i, 3)])).collect();
    let (x, new) = (Dataset::new(x, vec![]).unwrap(), Dataset::new(new, vec![]).unwrap());
    let y = Target::Classes { names: vec!["0".into(), "1".into()], labels };
    let bank =
        "chi2, chi2(auto), intersection, gauss(chi2, auto), gauss(hellinger, 0.5), gauss(l2, 1)"
            .to_string();
    for normalize in [
        Normalize::Trace,
        Normalize::Multiplicative,
        Normalize::Spherical,
        Normalize::Center,
        Normalize::None,
    ] {
        let spec = TrainSpec {
            method: MethodSpec::named("uniform").unwrap(),
            kernels: bank.clone(),
            standardize: false,
            normalize,
            c: if normalize == Normalize::Trace { 60.0 } else { 1.0 },
            ..TrainSpec::default()
        };
        let model = mercer::train(&x, &y, None, &spec, &mut Silent).unwrap();
        let kernels = language::parse(&bank).unwrap().resolve(&x).unwrap();
        let cross = gram_block(&new, Some(&x), &kernels, normalize).unwrap();
        let (machine, decision) = (&model.machines[0], model.decision(&new).unwrap());
        for i in 0..new.len() {
            let term = |(k, w): (&Matrix, &f64)| {
                let pairs = machine.support.iter().zip(&machine.dual_coef);
                w * pairs.map(|(&j, a)| a * k[(i, j)]).sum::<f64>()
            };
            let want =
                machine.intercept + cross.iter().zip(&machine.weights).map(term).sum::<f64>();
            assert!(
                (decision[(i, 0)] - want).abs() < 1e-6 * want.abs().max(1.0),
                "{normalize:?}: {want}"
            );
        }
        let below =
            Dataset::new(Matrix::new(1, 4, vec![0.1, -0.2, 0.0, 0.0]).unwrap(), vec![]).unwrap();
        let e = model.decision(&below).unwrap_err().to_string();
        assert!(e.contains("column `x2`: row 1 is -0.2") && e.contains("not negative"), "{e}");
    }
    let standardised = TrainSpec { kernels: "intersection".into(), ..TrainSpec::default() };
    let e = mercer::train(&x, &y, None, &standardised, &mut Silent).unwrap_err().to_string();
    assert!(
        e.contains("intersection is for numbers that are not negative; switch standardisation off"),
        "{e}"
    );
}

/// exp(−d / mean d): the width of the CLMKL paper's image experiment.
#[test]
fn automatic_widths_of_chi2_are_the_mean_distance() {
    let x = histograms(9, 3, 7);
    let chi2 =
        |i: usize, j: usize| -naive_kernel(Function::Chi2 { gamma: 1.0 }, x.row(i), x.row(j)).ln();
    let mean =
        (0..9).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| chi2(i, j)).sum::<f64>()
            / 36.0;
    let data = Dataset::new(x.clone(), vec![]).unwrap();
    let kernels = language::parse("chi2(auto), gauss(chi2, auto)").unwrap().resolve(&data).unwrap();
    let (Function::Chi2 { gamma }, Function::Gauss { width, .. }) =
        (kernels[0].function, kernels[1].function)
    else {
        panic!("{kernels:?}")
    };
    // Four digits, so that the name is the number.
    assert!(
        (gamma * mean - 1.0).abs() < 1e-3 && (width / mean - 1.0).abs() < 1e-3,
        "{gamma} {width} {mean}"
    );
}

#[test]
fn a_sigmoid_is_used_where_it_is_positive_semidefinite_and_refused_elsewhere() {
    let mut rng = Rng::new(8);
    let x = Matrix::new(30, 2, (0..60).map(|_| rng.normal()).collect()).unwrap();
    let labels = (0..30).map(|i| usize::from(x[(i, 0)] > 0.0)).collect();
    let (x, y) = (
        Dataset::new(x, vec![]).unwrap(),
        Target::Classes { names: vec!["0".into(), "1".into()], labels },
    );
    let fit = |kernels: &str| {
        mercer::train(
            &x,
            &y,
            None,
            &TrainSpec { kernels: kernels.into(), ..TrainSpec::default() },
            &mut Silent,
        )
    };
    // A small slope around 0 is nearly linear; a negative offset puts −1 on the diagonal of small
    // rows.
    assert_eq!(fit("sigmoid(1e-6, 0), linear").unwrap().status().as_str(), "optimal");
    let e = fit("sigmoid(1, -2)").unwrap_err().to_string();
    assert!(e.contains("kernel `sigmoid(1, -2) on all`: not positive semidefinite"), "{e}");
}

/// H K H.
fn centred(k: &Matrix) -> Matrix {
    let n = k.rows();
    let h = |i: usize, j: usize| f64::from(i == j) - 1.0 / n as f64;
    let times = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| {
        let value = |i: usize, j: usize| (0..n).map(|l| a(i, l) * b(l, j)).sum();
        Matrix::new(n, n, (0..n * n).map(|at| value(at / n, at % n)).collect()).unwrap()
    };
    let left = times(&h, &|i, j| k[(i, j)]);
    times(&|i, j| left[(i, j)], &h)
}

fn frobenius(a: &Matrix, b: &Matrix) -> f64 {
    a.data().iter().zip(b.data()).map(|(x, y)| x * y).sum()
}

/// Three classes in three columns, one of them noise.
fn three_classes(n: usize, seed: u64) -> (Dataset, Target) {
    let mut rng = Rng::new(seed);
    let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
    let x = labels.iter().flat_map(|&l| {
        [l as f64 + rng.normal(), rng.normal(), f64::from(l == 1) + 0.5 * rng.normal()]
    });
    let x = Matrix::new(n, 3, x.collect()).unwrap();
    (
        Dataset::new(x, vec![]).unwrap(),
        Target::Classes { names: ["a", "b", "c"].map(String::from).to_vec(), labels },
    )
}

#[test]
fn a_diagnosis_says_what_plain_matrices_say() {
    let (data, classes) = three_classes(36, 3);
    let values = Target::Values((0..36).map(|i| data.features()[(i, 0)] + 1.5).collect());
    let bank = "linear on each; rbf(0.5|2), poly(2) on all";
    for target in [&classes, &values] {
        let spec = TrainSpec { kernels: bank.into(), standardize: false, ..TrainSpec::default() };
        let found = diagnose(&data, target, &spec).unwrap();
        let kernels = language::parse(bank).unwrap().resolve(&data).unwrap();
        let raw = gram_block(&data, None, &kernels, Normalize::Multiplicative).unwrap();
        let flat: Vec<Matrix> = raw.iter().map(centred).collect();
        let same = |i: usize, j: usize| match target {
            Target::Classes { labels, .. } => f64::from(labels[i] == labels[j]),
            Target::Values(y) => y[i] * y[j],
        };
        let goal = centred(
            &Matrix::new(36, 36, (0..36 * 36).map(|at| same(at / 36, at % 36)).collect()).unwrap(),
        );
        let alignment =
            |a: &Matrix, b: &Matrix| frobenius(a, b) / (frobenius(a, a) * frobenius(b, b)).sqrt();
        for (t, report) in found.kernels.iter().enumerate() {
            assert_eq!(report.name, kernels[t].name);
            assert!((report.alignment - alignment(&flat[t], &goal)).abs() < 1e-8, "{report:?}");
            let trace = |k: &Matrix| (0..36).map(|i| k[(i, i)]).sum::<f64>();
            assert!((report.trace - trace(&raw[t])).abs() < 1e-6 * report.trace, "{report:?}");
            let spread = trace(&flat[t]).powi(2) / frobenius(&flat[t], &flat[t]);
            assert!((report.effective_rank - spread).abs() < 1e-6 * spread, "{report:?} {spread}");
            for (s, between) in found.between[t].iter().enumerate() {
                assert!((between - alignment(&flat[t], &flat[s])).abs() < 1e-8);
            }
        }
        // One column has rank 1 and no finite condition.
        assert!(found.kernels[0].rank == Some(1) && found.kernels[0].condition == f64::INFINITY);
        assert!((found.kernels[0].effective_rank - 1.0).abs() < 1e-9);
    }
    // Eigenvalues 1, 2, …, 10, rotated by a reflection.
    let n = 10;
    let h = |i: usize, j: usize| f64::from(i == j) - 2.0 / n as f64;
    let entry = |i: usize, j: usize| (0..n).map(|l| h(i, l) * (l + 1) as f64 * h(l, j)).sum();
    let data: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
    let target = Target::Values((0..n).map(|i| i as f64).collect());
    let spec = TrainSpec { normalize: Normalize::None, ..TrainSpec::default() };
    let found =
        diagnose_precomputed(Stack { rows: n, cols: n, terms: 1, data: &data }, &target, &spec)
            .unwrap();
    assert!((found.kernels[0].condition - 10.0).abs() < 1e-6, "{:?}", found.kernels[0]);
}

#[test]
fn non_negative_least_squares_beats_every_subset() {
    let mut rng = Rng::new(4);
    for _ in 0..200 {
        let m = 1 + rng.below(5);
        let z = Matrix::new(
            m,
            m + 1,
            (0..m * (m + 1)).map(|_| rng.normal().abs() + 0.3 * rng.normal()).collect(),
        )
        .unwrap();
        let mut a = Matrix::zeros(m, m);
        for i in 0..m {
            for j in 0..m {
                a[(i, j)] = dot(z.row(i), z.row(j))
                    / (dot(z.row(i), z.row(i)) * dot(z.row(j), z.row(j))).sqrt();
            }
        }
        let b: Vec<f64> = (0..m).map(|_| rng.normal()).collect();
        let value = |v: &[f64]| (0..m).map(|i| v[i] * (dot(a.row(i), v) - 2.0 * b[i])).sum::<f64>();
        let v = non_negative(&a, &b).unwrap();
        assert!(v.iter().all(|x| *x >= 0.0));
        for i in 0..m {
            let slope = b[i] - dot(a.row(i), &v);
            assert!(slope < 1e-8 && (v[i] == 0.0 || slope.abs() < 1e-8), "{slope} at {}", v[i]);
        }
        for _ in 0..100 {
            let other: Vec<f64> = v.iter().map(|x| (x + 0.3 * rng.normal()).max(0.0)).collect();
            assert!(value(&v) <= value(&other) + 1e-10);
        }
    }
}

#[test]
fn alignment_gives_the_weights_that_plain_matrices_give() {
    let (data, target) = three_classes(60, 5);
    let two = Target::Classes {
        names: vec!["0".into(), "1".into()],
        labels: (0..60)
            .map(|i| usize::from(data.features()[(i, 0)] + 0.3 * data.features()[(i, 2)] > 1.0))
            .collect(),
    };
    let bank = "linear on each; rbf(1) on all, each; poly(2)";
    let spec = |name: &str| TrainSpec {
        method: MethodSpec::named(name).unwrap(),
        kernels: bank.into(),
        standardize: false,
        ..TrainSpec::default()
    };
    let kernels = language::parse(bank).unwrap().resolve(&data).unwrap();
    let flat: Vec<Matrix> = gram_block(&data, None, &kernels, Normalize::Multiplicative)
        .unwrap()
        .iter()
        .map(centred)
        .collect();
    let Target::Classes { labels, .. } = &two else { panic!() };
    let y: Vec<f64> = labels.iter().map(|&l| 2.0 * l as f64 - 1.0).collect();
    let goal = Matrix::new(60, 60, (0..3600).map(|at| y[at / 60] * y[at % 60]).collect()).unwrap();
    let own: Vec<f64> = flat.iter().map(|k| frobenius(k, &goal) / frobenius(k, k).sqrt()).collect();
    let total: f64 = own.iter().sum();
    let one = mercer::train(&data, &two, None, &spec("align"), &mut Silent).unwrap();
    for (w, a) in one.machines[0].weights.iter().zip(&own) {
        assert!((w - a / total).abs() < 1e-8, "{w} {}", a / total);
    }
    let joint = mercer::train(&data, &two, None, &spec("alignf"), &mut Silent).unwrap();
    let theta = &joint.machines[0].weights;
    assert!((theta.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    // The alignment of a combination: no other that was tried is larger.
    let reached = |theta: &[f64]| {
        let mut k = Matrix::zeros(60, 60);
        for (f, w) in flat.iter().zip(theta) {
            k.data_mut().iter_mut().zip(f.data()).for_each(|(k, f)| *k += w * f);
        }
        frobenius(&k, &goal) / frobenius(&k, &k).sqrt()
    };
    let best = reached(theta);
    let mut rng = Rng::new(6);
    assert!(best >= reached(&one.machines[0].weights));
    for t in 0..theta.len() {
        let alone: Vec<f64> = (0..theta.len()).map(|s| f64::from(s == t)).collect();
        assert!(best >= reached(&alone) - 1e-9);
    }
    for _ in 0..500 {
        let other: Vec<f64> = theta.iter().map(|w| (w + 0.05 * rng.normal()).max(0.0)).collect();
        assert!(best >= reached(&other) - 1e-9);
    }
    for name in ["align", "alignf"] {
        for (scheme, shared) in
            [(Scheme::OneVsRest, false), (Scheme::OneVsRest, true), (Scheme::OneVsOne, true)]
        {
            let spec = TrainSpec { multi_class: scheme, shared_weights: shared, ..spec(name) };
            let model = mercer::train(&data, &target, None, &spec, &mut Silent).unwrap();
            assert_eq!(model.status().as_str(), "optimal", "{name} {scheme:?}");
            // The second column is noise: alignment sees that.
            let w = &model.machines[0].weights;
            assert!(w[1] < w[0] && (w.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{name}: {w:?}");
            assert!(verify(&model, &data, &target, None).unwrap().agrees);
        }
    }
    let values = Target::Values((0..60).map(|i| data.features()[(i, 2)]).collect());
    let model = mercer::train(&data, &values, None, &spec("alignf"), &mut Silent).unwrap();
    assert!(model.machines[0].weights[2] > 0.9, "{:?}", model.machines[0].weights);
}

#[test]
fn local_alignment_with_landmarks_is_the_product_of_naive_scores() {
    let (x, z) =
        (random_sequences(Alphabet::Protein, 9, 11), random_sequences(Alphabet::Protein, 4, 12));
    for (scoring, open, extend) in
        [(Scoring::Blosum62, 11, 1), (Scoring::Pam50, 3, 2), (Scoring::Blosum62, 0, 0)]
    {
        let kernel = KernelSpec {
            landmarks: x[..5].to_vec(),
            ..spec(Text::Alignment { scoring, open, extend })
        };
        let (px, pz) = (kernel.points(&sequences(&x)), kernel.points(&sequences(&z)));
        let scores = |s: &str| -> Vec<f64> {
            x[..5].iter().map(|l| f64::from(naive_alignment(scoring, open, extend, s, l))).collect()
        };
        let cross = pz.block(&px);
        for (i, a) in z.iter().enumerate() {
            for (j, b) in x.iter().enumerate() {
                assert_eq!(cross[(i, j)], dot(&scores(a), &scores(b)), "{scoring:?} {a} {b}");
            }
        }
        assert!(px.diagonal().iter().zip(&x).all(|(d, s)| *d == dot(&scores(s), &scores(s))));
    }
}

/// A known pair: HEAGAWGHEE and PAWHEAE, of which AWGHE and AW-HE align.
#[test]
fn a_known_alignment_has_its_score() {
    // A 4, W 11, a gap of one letter −8, H 8, E 5.
    assert_eq!(
        naive_alignment(Scoring::Blosum62, 8, 8, "HEAGAWGHEE", "PAWHEAE"),
        4 + 11 - 8 + 8 + 5
    );
    let kernel = KernelSpec {
        landmarks: vec!["PAWHEAE".into()],
        ..spec(Text::Alignment { scoring: Scoring::Blosum62, open: 8, extend: 8 })
    };
    let points = kernel.points(&sequences(&["HEAGAWGHEE".to_string()]));
    assert_eq!(points.diagonal(), [400.0]);
}

fn written(graphs: &[SmallGraph], json: bool) -> Vec<String> {
    let text = |(labels, edges): &SmallGraph| {
        if json {
            return serde_json::json!({ "labels": labels, "edges": edges }).to_string();
        }
        let edges: Vec<String> = edges.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        format!("{}; {}", labels.join(" "), edges.join(" "))
    };
    graphs.iter().map(text).collect()
}

#[test]
fn graphs_are_compared_by_their_subtrees() {
    let (x, z) = (random_graphs(20, 13), random_graphs(6, 14));
    for rounds in [0, 1, 3] {
        for json in [true, false] {
            let kernel = spec(Text::Wl { iterations: rounds });
            let (px, pz) = (
                kernel.points(&sequences(&written(&x, json))),
                kernel.points(&sequences(&written(&z, !json))),
            );
            let cross = pz.block(&px);
            for (i, a) in z.iter().enumerate() {
                for (j, b) in x.iter().enumerate() {
                    assert_eq!(cross[(i, j)], naive_wl(rounds, a, b), "{rounds} {a:?} {b:?}");
                }
            }
        }
    }
}

#[test]
fn models_of_alignments_and_graphs_are_saved_and_predict_new_rows() {
    // Rings of five against chains of five, and proteins with or without a common piece.
    let (ring, chain) = ("0-1 1-2 2-3 3-4 4-0", "0-1 1-2 2-3 3-4");
    let mut rng = Rng::new(15);
    let mut rows = |n: usize| -> (Vec<String>, Vec<String>) {
        let graphs = (0..n).map(|i| {
            let labels: Vec<&str> = (0..5).map(|_| ["C", "N"][rng.below(2)]).collect();
            format!("{}; {}", labels.join(" "), if i % 2 == 0 { ring } else { chain })
        });
        let graphs: Vec<String> = graphs.collect();
        let amino: Vec<char> = "ACDEFGHIKLMNPQRSTVWY".chars().collect();
        let proteins = (0..n).map(|i| {
            let random: String = (0..30).map(|_| amino[rng.below(20)]).collect();
            if i % 2 == 0 {
                format!("{}MKWVTFISLLFLFSSAYS{}", &random[..9], &random[9..])
            } else {
                random
            }
        });
        (graphs, proteins.collect())
    };
    let ((graphs, proteins), (new_graphs, new_proteins)) = (rows(60), rows(30));
    let data = |g: &[String], p: &[String]| {
        let both = vec![Sequences::new("g", g).unwrap(), Sequences::new("p", p).unwrap()];
        Dataset::from_rows(
            Rows::new(Matrix::default(), both).unwrap(),
            vec!["g".into(), "p".into()],
        )
        .unwrap()
    };
    let (train, new) = (data(&graphs, &proteins), data(&new_graphs, &new_proteins));
    let y = Target::Classes {
        names: vec!["a".into(), "b".into()],
        labels: (0..60).map(|i| i % 2).collect(),
    };
    let bank = "wl(0..2) on cols(g); alignment(blosum62) on cols(p)";
    // All kernels have weight: rows are read by those that do.
    let request =
        TrainSpec { kernels: bank.into(), method: MethodSpec::Uniform {}, ..TrainSpec::default() };
    let model = mercer::train(&train, &y, None, &request, &mut Silent).unwrap();
    assert_eq!(model.kernel_names()[3], "alignment(blosum62, 11, 1) on p");
    let back = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(back, model);
    let Target::Classes { labels, .. } = back.predict(&new).unwrap() else { panic!() };
    assert!(labels.iter().enumerate().filter(|(i, l)| i % 2 == **l).count() >= 29, "{labels:?}");
    for (bad, part) in [
        ("C C; 0-2", "an edge joins node 2"),
        ("C C; 0_1", "`0_1` is no edge"),
        ("{\"labels\": [1], \"edges\": [[0]]}", "row 1 is no graph"),
    ] {
        let e = model.decision(&data(&[bad.to_string()], &proteins[..1])).unwrap_err().to_string();
        assert!(e.contains("column `g`") && e.contains(part), "{e}");
    }
    let words = data(&proteins, &proteins);
    assert!(
        language::parse("wl(1) on cols(g); spectrum(2) on cols(p)")
            .unwrap()
            .resolve(&words)
            .is_ok(),
        "one label each"
    );
}
