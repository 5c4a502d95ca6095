//! Predictions by the fast roads (directions in feature space, distances shared by kernels, one
//! pass for all degrees) are those of the plain one, Σ coef_i k(x_i, x), row by row.

use mercer::{
    data::{Rng, Rows, Sequences, Sparse},
    gram::Combination,
    kernels::{
        Alphabet, Frequencies, Function, KernelSpec, Monomials, Normalize, Points, Scoring, Text,
        Waves,
    },
    linalg::{Matrix, dot, threads},
    model::{Expansion, Predictor},
};
use mercer_testkit::strings::random_sequences;

const DENSE: usize = 3;
const SPARSE: usize = 5;
const TEXT: usize = DENSE + SPARSE;

/// Three dense columns, five sparse ones, one of sequences.
fn rows(n: usize, seed: u64) -> Rows {
    let mut rng = Rng::new(seed);
    let dense =
        Matrix::new(n, DENSE, (0..n * DENSE).map(|_| rng.normal().abs()).collect()).unwrap();
    let some =
        (0..n * SPARSE).map(|_| if rng.below(3) == 0 { rng.normal().abs() } else { 0.0 }).collect();
    let sparse = Sparse::from_dense(&Matrix::new(n, SPARSE, some).unwrap());
    let texts = Sequences::new("s", random_sequences(Alphabet::Protein, n, seed)).unwrap();
    Rows::new(dense, vec![texts]).unwrap().with_sparse(sparse).unwrap()
}

fn bank(training: &Rows) -> Vec<KernelSpec> {
    let protein = Alphabet::Protein;
    let numbers = |function, columns: &[usize]| {
        KernelSpec::new(function, columns.to_vec(), format!("{function:?}"))
    };
    let text = |text| KernelSpec::new(Function::Text(text), vec![TEXT], format!("{text:?}"));
    let poly = |degree, offset| Function::Poly { degree, offset };
    let mut alignment = text(Text::Alignment { scoring: Scoring::Blosum62, open: 11, extend: 1 });
    alignment.landmarks =
        training.sequence(TEXT).unwrap().iter().take(6).map(String::from).collect();
    vec![
        numbers(Function::Linear, &[0, 1, 2]),
        numbers(Function::Linear, &[1]),
        numbers(Function::Linear, &[2, 3, 5, 7]),
        numbers(poly(1, 0.7), &[0, 4, 6]),
        numbers(poly(2, 1.0), &[0, 1]),
        numbers(poly(3, 0.5), &[0, 1, 2]),
        numbers(Function::Rbf { width: 1.0 }, &[0, 1, 2]),
        numbers(Function::Rbf { width: 2.0 }, &[0, 1, 2]),
        numbers(Function::Rbf { width: 1.5 }, &[3, 4, 5, 6, 7]),
        numbers(Function::Laplace { width: 1.0 }, &[0, 1, 2]),
        numbers(Function::Chi2Sum, &[1, 2, 3]),
        text(Text::Spectrum { k: 1, alphabet: protein }),
        text(Text::Mismatch { k: 2, m: 1, alphabet: protein }),
        text(Text::Wd { degree: 1, shift: 0, alphabet: protein }),
        text(Text::Wd { degree: 2, shift: 0, alphabet: protein }),
        text(Text::WdSum { degree: 3, shift: 2, alphabet: protein }),
        alignment,
    ]
}

/// Functions of different kernels and rows: the second has every kernel, the third another choice
/// of rows for each.
fn functions(kernels: &[KernelSpec], n: usize) -> Vec<Expansion> {
    let mut rng = Rng::new(7);
    let mut function = |m: usize| {
        let mut out = Expansion { constant: rng.normal(), terms: Vec::new() };
        for (t, kernel) in kernels.iter().enumerate().filter(|(t, _)| m == 1 || t % 3 != m) {
            let map = Monomials::of(kernel.function, kernel.columns.len(), 100);
            let basis = if let Some(map) = map.filter(|_| (t + m).is_multiple_of(2)) {
                Combination::Monomials { coef: (0..map.len()).map(|_| rng.normal()).collect() }
            } else if kernel.function.spectrum().is_some() && (t + m).is_multiple_of(2) {
                Combination::Waves { coef: (0..12).map(|_| rng.normal()).collect(), seed: 5 }
            } else {
                // Pivots of a factor come in any order.
                let index: Vec<usize> =
                    (0..n).rev().filter(|i| m < 2 || rng.below(2) == i % 2).collect();
                Combination::Samples { coef: index.iter().map(|_| rng.normal()).collect(), index }
            };
            out.terms.push((t, basis, rng.normal()));
        }
        out
    };
    (0..4).map(&mut function).collect()
}

/// Row by row and kernel by kernel.
fn plain(
    functions: &[Expansion],
    kernels: &[KernelSpec],
    training: &Rows,
    x: &Rows,
    spherical: bool,
) -> Matrix {
    let mut out = Matrix::zeros(x.len(), functions.len());
    let bases: Vec<Points> = kernels.iter().map(|k| k.points(training)).collect();
    for i in 0..x.len() {
        let own: Vec<Points> = kernels.iter().map(|k| k.points(&x.select_rows(&[i]))).collect();
        for (m, function) in functions.iter().enumerate() {
            out[(i, m)] = function.constant;
            for (t, basis, absent) in &function.terms {
                let kernel = &kernels[*t];
                if x.absent(&kernel.columns).is_some_and(|a| a[i]) {
                    out[(i, m)] += absent;
                    continue;
                }
                let (own, base) = (&own[*t], &bases[*t]);
                let value = match basis {
                    Combination::Samples { index, coef } => {
                        let mut values = vec![0.0; training.len()];
                        own.row(0, base, &mut values);
                        index.iter().zip(coef).map(|(&j, c)| c * values[j]).sum::<f64>()
                    }
                    Combination::Monomials { coef } => {
                        let map = Monomials::of(kernel.function, kernel.columns.len(), coef.len())
                            .unwrap();
                        let mut features = vec![0.0; map.len()];
                        map.map(own.numbers().unwrap().row(0), &mut features);
                        dot(&features, coef)
                    }
                    Combination::Waves { coef, seed } => {
                        let (law, _) = kernel.function.spectrum().unwrap();
                        let drawn = Frequencies::draw(law, *seed, &kernel.columns, coef.len() / 2);
                        let all: Vec<usize> = (0..kernel.columns.len()).collect();
                        let map = Waves::new(kernel.function, &drawn, &all).unwrap();
                        dot(map.map_rows(&own.numbers().unwrap()).row(0), coef)
                    }
                };
                let square = own.diagonal()[0];
                let divisor = if !spherical {
                    1.0
                } else if square > 0.0 {
                    square.sqrt()
                } else {
                    f64::INFINITY
                };
                out[(i, m)] += value / divisor;
            }
        }
    }
    out
}

#[test]
fn every_road_gives_the_values_of_the_plain_one_on_any_number_of_threads() {
    let (training, new) = (rows(20, 1), rows(300, 2));
    let kernels = bank(&training);
    let functions = functions(&kernels, training.len());
    let absent = |columns: std::ops::Range<usize>, step: usize| {
        (columns, (0..new.len()).map(|i| i.is_multiple_of(step)).collect::<Vec<bool>>())
    };
    let gaps = [absent(0..2, 3), absent(TEXT..TEXT + 1, 4)];
    let gapped =
        gaps.into_iter().fold(new.clone(), |x, (columns, absent)| x.with_gap(columns, absent));
    for (x, normalize) in
        [(&new, Normalize::None), (&new, Normalize::Spherical), (&gapped, Normalize::None)]
    {
        let predictor = Predictor::of(functions.clone(), Some((&training, &kernels)), normalize);
        let got = threads::install(Some(1), || predictor.evaluate(&kernels, x));
        let want = plain(&functions, &kernels, &training, x, normalize == Normalize::Spherical);
        let largest = want.data().iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (got, want) in got.data().iter().zip(want.data()) {
            // Sums of thousands of products, added in another order.
            assert!((got - want).abs() <= 1e-12 * largest, "{normalize:?}: {got} {want}");
        }
        for count in [2, 3] {
            assert_eq!(
                threads::install(Some(count), || predictor.evaluate(&kernels, x)),
                got,
                "{count} threads"
            );
        }
        // Nor do they depend on the rows around.
        let some: Vec<usize> = (0..x.len()).rev().step_by(7).collect();
        assert_eq!(predictor.evaluate(&kernels, &x.select_rows(&some)), got.select_rows(&some));
    }
}
