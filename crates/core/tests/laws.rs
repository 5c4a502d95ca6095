//! Laws over lists: adding a row to a list in `testkit` subjects the newcomer to every law here.

use mercer::{
    data::{Dataset, Rng},
    gram::{Approx, Budget, BuildOptions, Gram, GramSet, GramSource, Scratch, Storage},
    kernels::{Function, KernelSpec, Normalize, Normalizer, language},
    linalg::{Matrix, dot, sq_distance},
    localize::LocalizedGramSet,
    loss::{EpsilonInsensitive, Hinge, Loss},
    machine::{Combined, Machine, Smo, Stop, Task},
    request::LossName,
};
use mercer_testkit::{
    all_functions, all_losses, all_weight_sets, for_classes_only, histogram_functions,
    naive_kernel, smooth_losses,
};

fn normal(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| rng.normal()).collect()).unwrap()
}

#[test]
fn kernels_agree_with_their_naive_twin_and_are_symmetric_and_positive_semidefinite() {
    for cols in [1, 3] {
        let (x, z) = (normal(25, cols, 1), normal(7, cols, 2));
        let mut rng = Rng::new(3);
        for f in all_functions() {
            let block = f.block(&z, &x);
            let own = f.block(&x, &x);
            let largest = f.diagonal(&x).iter().copied().fold(0.0, f64::max);
            for i in 0..25 {
                for j in 0..7 {
                    let want = naive_kernel(f, z.row(j), x.row(i));
                    // A few roundings of the largest value.
                    assert!(
                        (block[(j, i)] - want).abs() <= 1e-13 * largest.max(want.abs()),
                        "{f:?}"
                    );
                }
                assert!((own[(i, i)] - f.diagonal(&x)[i]).abs() <= 1e-15 * largest);
                assert!((0..25).all(|j| own[(i, j)] == own[(j, i)]), "{f:?}");
            }
            for _ in 0..20 {
                let a: Vec<f64> = (0..25).map(|_| rng.normal()).collect();
                let form: f64 = (0..25).map(|i| a[i] * dot(own.row(i), &a)).sum();
                assert!(form >= -1e-12 * largest * 25.0, "{f:?}: {form}");
            }
        }
    }
}

/// The lists above are complete. The sigmoid is in none: on some rows it is not positive
/// semidefinite.
#[test]
fn every_kernel_of_numbers_stands_in_a_list() {
    let listed: Vec<Function> = all_functions().into_iter().chain(histogram_functions()).collect();
    for kernel in language::number_kernels().iter().filter(|kernel| kernel.word != "sigmoid") {
        let found = listed.iter().any(|&f| language::number_kernel(f) == Some(kernel));
        assert!(found, "mercer_testkit lists no `{}`", kernel.usage);
    }
}

#[test]
fn every_loss_stands_in_the_list_and_says_what_epsilon_is_where_it_reads_it() {
    for name in LossName::ALL {
        assert!(
            all_losses().iter().any(|fitting| fitting.name() == name),
            "mercer_testkit lists no `{}`",
            name.as_str()
        );
        let said = name.epsilon_help().is_some_and(|help| help.contains(name.as_str()));
        assert_eq!(said, name.default_epsilon(2.0).is_some(), "{}", name.as_str());
    }
}

#[test]
fn losses_satisfy_fenchel_young_and_their_bias_is_best() {
    let mut rng = Rng::new(4);
    for fitting in all_losses() {
        let loss = fitting.loss();
        for y in [-1.0, 1.0, 0.37] {
            if for_classes_only(loss) && y == 0.37 {
                continue;
            }
            let (low, high) = loss.dual_interval(y);
            for _ in 0..200 {
                // ℓ(f) + ℓ*(u) ≥ u f, for u = −a inside the dual interval.
                let u = -(rng.uniform() * (high.min(3.0) - low.max(-3.0)) + low.max(-3.0));
                let f = 4.0 * rng.normal();
                assert!(
                    loss.value(y, f) + loss.conjugate(y, u) >= u * f - 1e-12,
                    "{} y={y} u={u} f={f}",
                    loss.name()
                );
                // The modulus of strong convexity: the conjugate at a midpoint lies below the chord
                // by at least κ/8 times the square.
                let w = -(rng.uniform() * (high.min(3.0) - low.max(-3.0)) + low.max(-3.0));
                let chord = 0.5 * (loss.conjugate(y, u) + loss.conjugate(y, w));
                let least = 0.125 * loss.conjugate_modulus() * (u - w).powi(2);
                assert!(
                    chord - loss.conjugate(y, 0.5 * (u + w)) >= least - 1e-12,
                    "{} {u} {w}",
                    loss.name()
                );
            }
            // Equality at some f: the conjugate is not merely a bound.
            let u = -0.5 * (low.max(-1.0) + high.min(1.0));
            let best = (-40_000..40_000)
                .map(|i| u * f64::from(i) * 1e-3 - loss.value(y, f64::from(i) * 1e-3))
                .fold(f64::MIN, f64::max);
            assert!((best - loss.conjugate(y, u)).abs() < 1e-5, "{} y={y}: {best}", loss.name());
        }
        let y: Vec<f64> = (0..41).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let f: Vec<f64> = (0..41).map(|_| rng.normal()).collect();
        let cost: Vec<f64> = (0..41).map(|_| 0.1 + rng.uniform()).collect();
        let b = loss.best_bias(&y, &f, &cost);
        let at = |b: f64| loss.total(&y, &f, b, &cost);
        for step in [1e-4, 1e-2, 0.3, 2.0] {
            assert!(
                at(b) <= at(b + step) + 1e-12 && at(b) <= at(b - step) + 1e-12,
                "{}",
                loss.name()
            );
        }
    }
}

#[test]
fn slopes_and_curvatures_are_differences() {
    let mut rng = Rng::new(8);
    let h = 1e-5;
    for loss in smooth_losses() {
        for y in [-1.0, 1.0] {
            for _ in 0..200 {
                let f = 4.0 * rng.normal();
                let difference = (loss.value(y, f + h) - loss.value(y, f - h)) / (2.0 * h);
                assert!(
                    (difference - loss.slope(y, f)).abs() < 1e-8 * (1.0 + f.abs()),
                    "{} at {f}",
                    loss.name()
                );
                let second = (loss.slope(y, f + h) - loss.slope(y, f - h)) / (2.0 * h);
                assert!((second - loss.curvature(y, f)).abs() < 1e-8, "{} at {f}", loss.name());
                // −slope is the multiplier of f: Fenchel–Young holds with equality there.
                let u = loss.slope(y, f);
                let (low, high) = loss.dual_interval(y);
                assert!(-u >= low && -u <= high);
                let slack = loss.value(y, f) + loss.conjugate(y, u) - u * f;
                assert!(slack.abs() < 1e-13 * (1.0 + f * f), "{} at {f}: {slack:e}", loss.name());
            }
        }
    }
}

#[test]
fn weight_sets_answer_their_questions_best() {
    let mut rng = Rng::new(5);
    for (name, set) in all_weight_sets() {
        for n in [1, 2, 7] {
            let start = set.start(n);
            assert!(
                (set.load(&start) - 1.0).abs() < 1e-9 && start.iter().all(|&t| t == start[0]),
                "{name}"
            );
            for round in 0..30 {
                let draw = |rng: &mut Rng| -> Vec<f64> {
                    (0..n)
                        .map(|m| {
                            if round % 3 == 0 && m == 0 {
                                0.0
                            } else {
                                -rng.uniform().max(1e-300).ln()
                            }
                        })
                        .collect()
                };
                let (s, q) = (draw(&mut rng), draw(&mut rng));
                let point: Vec<f64> = (0..n).map(|_| 2.0 * rng.normal()).collect();
                let (linear, response, nearest) =
                    (set.support_point(&s), set.best_response(&q), set.project(&point));
                let cost = |theta: &[f64]| -> f64 {
                    q.iter().zip(theta).map(|(q, t)| if *q == 0.0 { 0.0 } else { q / t }).sum()
                };
                let distance =
                    |t: &[f64]| -> f64 { t.iter().zip(&point).map(|(a, b)| (a - b).powi(2)).sum() };
                for theta in [&linear, &response, &nearest] {
                    assert!(
                        set.load(theta) <= 1.0 + 1e-12 && theta.iter().all(|&t| t >= 0.0),
                        "{name}: outside"
                    );
                }
                if s.iter().any(|&x| x > 0.0) {
                    assert!((set.support(&s) - dot(&s, &linear)).abs() <= 1e-15, "{name}");
                }
                for _ in 0..30 {
                    let mut other: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
                    set.tighten(&mut other);
                    assert!((set.load(&other) - 1.0).abs() < 1e-9, "{name}: not tight");
                    assert!(dot(&s, &other) <= dot(&s, &linear) + 1e-10, "{name}: support beaten");
                    assert!(
                        cost(&response) <= cost(&other) * (1.0 + 1e-9),
                        "{name}: response beaten"
                    );
                    assert!(
                        distance(&nearest) <= distance(&other) + 1e-9,
                        "{name}: projection beaten"
                    );
                }
            }
            for theta in [0.03, 0.4, 1.7] {
                let [_, slope, bend] = set.phi(theta);
                let h = 1e-5;
                let difference = (set.phi(theta + h)[0] - set.phi(theta - h)[0]) / (2.0 * h);
                let second = (set.phi(theta + h)[1] - set.phi(theta - h)[1]) / (2.0 * h);
                assert!((difference - slope).abs() < 1e-6 * slope.max(1.0), "{name}: slope");
                assert!((second - bend).abs() < 1e-5 * bend.max(1.0), "{name}: curvature");
            }
        }
    }
}

/// Every storage form of every kernel under every normalisation, against the matrix itself.
#[test]
fn stored_terms_act_like_the_normalised_matrix() {
    let x = normal(40, 2, 6);
    let kernels: Vec<KernelSpec> = all_functions()
        .into_iter()
        .flat_map(|function| [vec![0], vec![0, 1]].map(|columns| (function, columns)))
        .map(|(function, columns)| {
            KernelSpec::new(function, columns.clone(), format!("{function:?} on {columns:?}"))
        })
        .collect();
    let a: Vec<f64> =
        (0..40).map(|i| if i % 4 == 0 { 0.0 } else { f64::from(i % 5) - 2.0 }).collect();
    let scale: Vec<f64> = (0..40).map(|i| f64::from(i % 3) * 0.5).collect();
    for normalize in [
        Normalize::Trace,
        Normalize::Multiplicative,
        Normalize::Spherical,
        Normalize::Center,
        Normalize::None,
    ] {
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
            let set = GramSet::from_table(&x, &kernels, &options).unwrap();
            let forms = set.quad_forms(&a);
            for (t, spec) in kernels.iter().enumerate() {
                let rows = x.select_cols(&spec.columns);
                let mut k = spec.function.block(&rows, &rows);
                Normalizer::fit_block(normalize, &spec.name, &k).unwrap().apply_train(&mut k);
                let size = k.data().iter().fold(0.0f64, |m, v| m.max(v.abs()));
                let near = |got: f64, want: f64, extent: f64| {
                    let what =
                        format!("{} {normalize:?} {storage:?}: {got} instead of {want}", spec.name);
                    assert!((got - want).abs() <= accuracy * size * extent, "{what}");
                };
                let mut out = vec![0.0; 40];
                set.apply(t, &a, &mut out);
                (0..40).for_each(|i| near(out[i], dot(k.row(i), &a), 80.0));
                near(forms[t], (0..40).map(|i| a[i] * dot(k.row(i), &a)).sum(), 6400.0);
                set.row(t, 11, &mut out);
                (0..40).for_each(|j| near(out[j], k[(11, j)], 1.0));
                let mut gram = Gram::zeros(40);
                set.accumulate(t, 2.0, Some(&scale), &mut gram);
                gram.mirror();
                (0..40)
                    .for_each(|j| near(gram.row(5)[j], 2.0 * scale[5] * k[(5, j)] * scale[j], 2.0));
            }
            // combine is the sum of what accumulate adds.
            let weights: Vec<f64> =
                (0..kernels.len()).map(|t| if t % 3 == 1 { 0.0 } else { 0.1 * t as f64 }).collect();
            let mut sum = Gram::zeros(40);
            for (t, &w) in weights.iter().enumerate() {
                set.accumulate(t, w, None, &mut sum);
            }
            sum.mirror();
            let combined = set.combine(&weights);
            let size = (0..40).map(|i| combined.row(i)[i]).fold(0.0, f64::max);
            for i in 0..40 {
                assert!(
                    combined
                        .row(i)
                        .iter()
                        .zip(sum.row(i))
                        .all(|(a, b)| (a - b).abs() <= 1e-12 * size)
                );
            }
        }
    }
}

#[test]
fn factors_beyond_half_of_the_budget_lie_in_files_and_act_the_same() {
    let x = normal(600, 6, 3);
    let data = Dataset::new(x.clone(), vec![]).unwrap();
    let kernels =
        language::parse("rbf(2^-1..2^4), poly(1..3) on all, each").unwrap().resolve(&data).unwrap();
    let single: Vec<KernelSpec> = kernels.into_iter().filter(|k| k.columns.len() == 1).collect();
    let build = |x: &Matrix, bytes: u64| {
        let (normalize, storage) = (Normalize::Trace, Storage::LowRank);
        let (approx, seed, budget) = (Approx::None, 0, Budget { bytes });
        let options =
            BuildOptions { normalize, storage, rank_tolerance: 1e-10, budget, approx, seed };
        GramSet::from_table(x, &single, &options).unwrap()
    };
    let resident = build(&x, 1 << 30);
    // The table counts beside the terms.
    let spilled = build(&x, resident.bytes() + x.resident());
    assert!(
        !resident.describe().contains("in files") && spilled.describe().contains("in files"),
        "{}",
        spilled.describe()
    );
    assert!(spilled.bytes() < resident.bytes());
    let weights: Vec<f64> = (0..single.len()).map(|t| 1.0 / (t + 1) as f64).collect();
    let a: Vec<f64> = (0..600).map(|i| f64::from(i % 7) - 3.0).collect();
    assert_eq!(resident.combine(&weights), spilled.combine(&weights));
    assert_eq!(resident.quad_forms(&a), spilled.quad_forms(&a));
    for t in 0..single.len() {
        assert_eq!(resident.extension(t, &a), spilled.extension(t, &a));
    }
    // With few rows bases are shared, too, where they lie in files, and only there.
    let few = x.select_rows(&(0..300).collect::<Vec<_>>());
    let resident = build(&few, 1 << 30);
    let spilled = build(&few, resident.bytes() + few.resident());
    assert!(
        spilled.describe().contains("in files") && spilled.bytes() < resident.bytes(),
        "{}",
        spilled.describe()
    );
    let (ours, theirs) = (spilled.quad_forms(&a[..300]), resident.quad_forms(&a[..300]));
    assert!(
        ours.iter().zip(&theirs).all(|(x, y)| (x - y).abs() <= 1e-8 * y),
        "{ours:?} {theirs:?}"
    );
    let (ours, theirs) = (spilled.combine(&weights), resident.combine(&weights));
    let near = |i: usize| {
        ours.row(i).iter().zip(theirs.row(i)).all(|(x, y)| (x - y).abs() <= 1e-9 * theirs.row(0)[0])
    };
    assert!((0..300).all(near));
    // Writing to what lies in a file works on a copy.
    let file = x.to_file().unwrap();
    let mut copy = file.clone();
    copy.data_mut()[0] += 1.0;
    assert!(file == x && copy != x && file.resident() == 0 && copy.resident() > 0);
}

/// However far entries in single precision lead astray, the gap is that of the exact kernel, and it
/// closes.
#[test]
fn single_precision_leads_to_exact_solutions() {
    let (n, x) = (150, normal(150, 5, 6));
    let data = Dataset::new(x.clone(), vec![]).unwrap();
    let kernels =
        language::parse("rbf(2^-1..2^3), poly(1..2) on each").unwrap().resolve(&data).unwrap();
    let options = BuildOptions {
        normalize: Normalize::Trace,
        budget: Budget { bytes: 1 << 30 },
        ..BuildOptions::default()
    };
    let set = GramSet::from_table(&x, &kernels, &options).unwrap();
    let weights = vec![1.0; kernels.len()];
    let y: Vec<f64> = (0..n).map(|i| (x[(i, 0)] * x[(i, 1)] + 0.3 * x[(i, 2)]).signum()).collect();
    for (kink, c) in [0.0, 0.2].into_iter().flat_map(|kink| [1.0, 1e2, 1e4].map(|c| (kink, c))) {
        let tube = EpsilonInsensitive::new(kink).unwrap();
        let loss: &dyn Loss = if kink > 0.0 { &tube } else { &Hinge };
        let (smo, cost) = (Smo { kink }, vec![c; n]);
        let task = Task { y: &y, cost: &cost, loss, intercept: true };
        let kernel =
            Combined::new(&set, &weights, options.budget, &smo, Some(&Scratch::default())).unwrap();
        assert!(matches!(kernel, Combined::Single(_)));
        let found =
            smo.solve(&kernel, &task, None, Stop { absolute: 0.0, relative: 1e-6 }).unwrap();
        assert!(
            found.gap() <= 1e-6 * found.primal,
            "{kink} {c}: {} of {}",
            found.gap(),
            found.primal
        );
        let exact = Combined::Dense(set.combine(&weights)).times(&found.a);
        // The forms that came with the last product are those of the terms, to the last bit.
        let (all, mut image): (Vec<usize>, _) = ((0..set.n_terms()).collect(), vec![0.0; n]);
        let forms = found.forms.of(&set, &all, &found.a);
        assert_eq!(forms, set.quad_forms(&found.a));
        for (t, form) in forms.into_iter().enumerate() {
            set.apply(t, &found.a, &mut image);
            let own = dot(&found.a, &image);
            assert!((form - own).abs() <= 1e-9 * own.abs().max(1e-12), "{t}: {form} {own}");
        }
        assert!(
            exact.iter().zip(&found.f).all(|(e, f)| (e - f).abs() <= 1e-9 * (1.0 + e.abs())),
            "{kink} {c}"
        );
    }
}

/// Low-rank terms and matrices together: every way to sum them is the same sum.
#[test]
fn sums_in_every_form_agree() {
    let (n, x) = (150, normal(150, 5, 4));
    let data = Dataset::new(x.clone(), vec![]).unwrap();
    let kernels =
        language::parse("rbf(2^-1..2^3), poly(1..2) on all, each").unwrap().resolve(&data).unwrap();
    let options = BuildOptions {
        normalize: Normalize::Trace,
        storage: Storage::Auto,
        rank_tolerance: 1e-12,
        budget: Budget { bytes: 1 << 30 },
        approx: Approx::None,
        seed: 0,
    };
    let set = GramSet::from_table(&x, &kernels, &options).unwrap();
    let factors = (0..kernels.len()).filter(|&t| set.factor(t).is_some()).count();
    assert!(factors > 0 && factors < kernels.len(), "{}", set.describe());
    let weights: Vec<f64> =
        (0..kernels.len()).map(|t| if t % 4 == 1 { 0.0 } else { 1.0 / (t + 1) as f64 }).collect();
    let whole = set.combine(&weights);
    let trace: f64 = (0..n).map(|i| whole.row(i)[i]).sum();
    let off = |k: &Gram| {
        (0..n)
            .map(|i| whole.row(i).iter().zip(k.row(i)).map(|(a, b)| (a - b).powi(2)).sum::<f64>())
            .sum::<f64>()
            .sqrt()
    };
    let a: Vec<f64> =
        (0..n).map(|i| if i % 3 == 0 { 0.0 } else { f64::from(i as u32 % 7) - 3.0 }).collect();
    let (exact, size) = (whole.times(&a), dot(&a, &a).sqrt());
    let only = |w: &[f64], factors: bool| -> Vec<f64> {
        (0..w.len()).map(|t| if set.factor(t).is_some() == factors { w[t] } else { 0.0 }).collect()
    };
    let matrices = |w: &[f64]| only(w, false);
    // Each takes the memory of the one before.
    let scratch = Scratch::default();
    for weights in [weights.clone(), matrices(&weights), only(&weights, true), weights.clone()] {
        let (near, whole) =
            (set.combine_single(&weights, &scratch).unwrap(), set.combine(&weights));
        let (rounded, exact) = (near.rows().widened(), whole.times(&a));
        let entries = |k: &Gram| (0..n).flat_map(|i| k.row(i).to_vec()).collect::<Vec<f64>>();
        let far = sq_distance(&entries(&rounded), &entries(&whole)).sqrt();
        assert!(far <= 1e-3 * trace, "{far}");
        let fixed = near.exact();
        assert!((0..n).all(|i| {
            fixed.row(i).iter().zip(whole.row(i)).all(|(x, k)| (x - k).abs() <= 1e-14 * trace)
        }));
        assert!(
            near.times(&a).iter().zip(&exact).all(|(x, e)| (x - e).abs() <= 1e-12 * trace * size)
        );
    }
    for share in [1e-1, 1e-2, 1e-4] {
        let mut rough = set.combine_truncated(&weights, share);
        rough.mirror();
        // What is left out is positive semidefinite, so its norm is at most its trace.
        assert!(off(&rough) <= (share + 1e-6) * trace, "{share}");
    }
    // Sums of scaled terms, with factors scaled where copies of them fit and otherwise entry by
    // entry.
    let scales = [
        (0..n).map(|i| f64::from(i as u32 % 3)).collect(),
        a.iter().map(|a| a.abs()).collect::<Vec<f64>>(),
    ];
    let memberships =
        Matrix::new(n, 2, (0..n).flat_map(|i| [scales[0][i], scales[1][i]]).collect()).unwrap();
    let other: Vec<f64> = weights.iter().rev().copied().collect();
    for (both, bytes) in [[weights.clone(), other.clone()], [matrices(&weights), matrices(&other)]]
        .into_iter()
        .flat_map(|both| [1 << 30, 0].map(|bytes| (both.clone(), bytes)))
    {
        let local = LocalizedGramSet::cross(&set, &memberships, Budget { bytes });
        let out = local.combine(&both.concat());
        let sums = both.each_ref().map(|w| set.combine(w));
        for i in 0..n {
            for j in 0..=i {
                let want: f64 =
                    (0..2).map(|r| scales[r][i] * scales[r][j] * sums[r].row(i)[j]).sum();
                assert!((out.row(i)[j] - want).abs() <= 1e-12 * trace * 100.0, "{i} {j}");
            }
        }
    }
    let all: Vec<usize> = (0..kernels.len()).collect();
    for (forms, a) in
        set.quad_forms_of_each(&all, &[a.clone(), exact.clone()]).iter().zip([&a, &exact])
    {
        assert_eq!(forms, &set.quad_forms(a));
        let mut image = vec![0.0; n];
        for (t, form) in forms.iter().enumerate() {
            set.apply(t, a, &mut image);
            assert!((dot(a, &image) - form).abs() <= 1e-11 * (dot(a, a) * set.trace(t)), "{t}");
        }
    }
}
