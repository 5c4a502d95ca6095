//! Scaled terms and products of sets are what they say.

use mercer::{
    TrainSpec,
    data::{Rng, synthetic},
    gram::{Budget, GramSource},
    linalg::Matrix,
    localize::LocalizedGramSet,
    prepare::Prepared,
    request::Storage,
    weights::{LpBall, PerRegion, Separable, WeightSet},
};

use super::{close, farthest, named, spec};

#[test]
fn scaled_terms_are_what_they_say_in_every_storage() {
    let (x, y) = synthetic::toy1(40, 2);
    for storage in [Storage::Dense, Storage::LowRank, Storage::Auto] {
        let spec = TrainSpec { storage, ..spec(named("uniform")) };
        let prepared = Prepared::from_table(&x, &y, None, &spec).unwrap();
        let base = prepared.grams();
        let (n, kernels, mut rng) = (base.n_samples(), base.n_terms(), Rng::new(4));
        let c = Matrix::new(n, 3, (0..3 * n).map(|_| rng.uniform()).collect()).unwrap();
        let v: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        for room in [1u64 << 30, 0] {
            let local = LocalizedGramSet::cross(base, &c, Budget { bytes: room });
            assert_eq!(local.n_terms(), 3 * kernels);
            let theta: Vec<f64> = (0..local.n_terms())
                .map(|t| f64::from(u8::from(t % 3 != 1)) * (1.0 + t as f64))
                .collect();
            let (combined, forms) = (local.combine(&theta), local.quad_forms(&v));
            let mut sum = Matrix::zeros(n, n);
            for t in 0..local.n_terms() {
                let (m, j) = (t % kernels, t / kernels);
                let (mut product, mut row, mut form) = (vec![0.0; n], vec![0.0; n], 0.0);
                local.apply(t, &v, &mut product);
                for i in 0..n {
                    base.row(m, i, &mut row);
                    row.iter_mut().enumerate().for_each(|(l, k)| *k *= c[(i, j)] * c[(l, j)]);
                    let mut own = vec![0.0; n];
                    local.row(t, i, &mut own);
                    assert!(farthest(&own, &row) < 1e-12);
                    let naive: f64 = row.iter().zip(&v).map(|(k, v)| k * v).sum();
                    assert!((product[i] - naive).abs() < 1e-10, "{storage:?} term {t} row {i}");
                    form += v[i] * naive;
                    (0..n).for_each(|l| sum[(i, l)] += theta[t] * row[l]);
                }
                assert!((forms[t] - form).abs() < 1e-9, "{storage:?} term {t}");
                if let Some(f) = local.factor(t) {
                    let whole = base
                        .factor(m)
                        .unwrap()
                        .row(3)
                        .iter()
                        .map(|x| c[(3, j)] * x)
                        .collect::<Vec<_>>();
                    assert!(farthest(&f.row(3), &whole) < 1e-14);
                    assert!(room > 0 && f.residual <= base.residual(m));
                }
            }
            let scale = sum.data().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            assert!(
                (0..n).all(|i| farthest(combined.row(i), sum.row(i)) < 1e-12 * scale),
                "{storage:?}"
            );
        }
        let gates =
            Matrix::new(n, kernels, (0..n * kernels).map(|_| rng.uniform()).collect()).unwrap();
        let paired = LocalizedGramSet::paired(base, &gates, Budget { bytes: 1 << 30 });
        let (mut row, mut own) = (vec![0.0; n], vec![0.0; n]);
        paired.row(5, 7, &mut own);
        base.row(5, 7, &mut row);
        assert!((0..n).all(|l| (own[l] - gates[(7, 5)] * gates[(l, 5)] * row[l]).abs() < 1e-13));
    }
}

#[test]
fn the_product_of_sets_answers_region_by_region() {
    let (mut rng, regions, size) = (Rng::new(3), 3, 4);
    for p in [1.0, 1.5, 2.0, f64::INFINITY] {
        let (one, set) =
            (LpBall::new(p).unwrap(), PerRegion::new(LpBall::new(p).unwrap(), regions));
        let s: Vec<f64> =
            (0..12).map(|k| if k / size == 1 { 0.0 } else { rng.uniform() }).collect();
        let parts: f64 = s.chunks(size).map(|s| one.support(s)).sum();
        assert!(close(set.support(&s), parts, 1e-14));
        let response = set.best_response(&s);
        assert!(
            set.load(&response) <= 1.0 + 1e-12 && response[size..2 * size].iter().all(|t| *t > 0.0)
        );
        let price = |theta: &[f64]| -> f64 {
            s.iter().zip(theta).filter(|(s, _)| **s > 0.0).map(|(s, t)| s / t).sum()
        };
        for _ in 0..50 {
            let mut other: Vec<f64> = (0..12).map(|_| rng.uniform() + 1e-3).collect();
            set.tighten(&mut other);
            assert!((set.load(&other) - 1.0).abs() < 1e-12);
            assert!(price(&response) <= price(&other) * (1.0 + 1e-12), "p = {p}");
        }
        let groups = set.groups(12);
        assert_eq!(groups.iter().map(ExactSizeIterator::len).sum::<usize>(), 12);
        let mut nothing = vec![0.0; 12];
        set.tighten(&mut nothing);
        assert_eq!(nothing, set.start(12));
    }
}
