//! What else must hold: files, threads, odd groups, refusals.

use mercer::{
    Model, TrainSpec,
    data::{Dataset, Rng, Target, synthetic},
    gram::GramSource,
    linalg::{Matrix, threads},
    localize::{evenness, kernel_kmeans, memberships, sharpness},
    model::NewRows,
    prepare::{Prepared, Regions},
    request::{Clmkl, Evenness, GateName, GroupBy, Lmkl, MethodSpec},
    trace::Silent,
};

use super::{clmkl, fit, glmkl, named, spec};

#[test]
fn several_classes_share_regions_and_files_keep_every_bit() {
    let mut rng = Rng::new(12);
    let rows: Vec<f64> = (0..90)
        .flat_map(|i| {
            [f64::from(i % 3) + 0.5 * rng.normal(), f64::from(i % 2) + 0.5 * rng.normal()]
        })
        .collect();
    let x = Dataset::new(Matrix::new(90, 2, rows).unwrap(), vec![]).unwrap();
    let y = Target::classes(&(0..90).map(|i| ["a", "b", "c"][i % 3]).collect::<Vec<_>>());
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        for (shared_weights, multi_class) in [
            (false, mercer::request::Scheme::OneVsRest),
            (true, mercer::request::Scheme::OneVsRest),
            (false, mercer::request::Scheme::OneVsOne),
        ] {
            let spec = TrainSpec {
                method: named(method),
                kernels: "rbf(0.5|2), linear on all".into(),
                shared_weights,
                multi_class,
                ..TrainSpec::default()
            };
            let model = fit(&x, &y, &spec);
            let Target::Classes { labels, .. } = model.predict(&x).unwrap() else { unreachable!() };
            let right = labels.iter().enumerate().filter(|(i, l)| i % 3 == **l).count();
            assert!(right > 70, "{method} {shared_weights} {multi_class:?}: {right}");
            let bytes = model.to_bytes().unwrap();
            let loaded = Model::from_bytes(&bytes).unwrap();
            assert!(loaded.to_bytes().unwrap() == bytes);
            assert_eq!(loaded.decision(&x).unwrap(), model.decision(&x).unwrap());
            let weights = model.local_weights(NewRows::Table(&x), None).unwrap();
            assert!(weights.len() == 3 && weights[0].cols() == 3 && weights[0].rows() == 90);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    let (x, y) = synthetic::four_gaussians(150, 3);
    for method in ["clmkl", "hlmkl", "lmkl", "glmkl", "gsmkl"] {
        let spec = TrainSpec {
            method: named(method),
            kernels: "rbf(0.3|1|3), linear on all, each".into(),
            ..TrainSpec::default()
        };
        let bits = |n| threads::install(Some(n), || fit(&x, &y, &spec).decision(&x).unwrap());
        assert_eq!(bits(1), bits(3), "{method}");
    }
}

#[test]
fn tiny_and_one_class_groups_are_handled() {
    let (x, y) = synthetic::four_gaussians(30, 1);
    for method in
        [glmkl(15, 4.0), glmkl(30, 2.0), clmkl(30, Some(Evenness::HARD), 1.0), clmkl(12, None, 2.0)]
    {
        let spec = TrainSpec {
            method: method.clone(),
            kernels: "rbf(1|3), linear on all".into(),
            ..TrainSpec::default()
        };
        let model = fit(&x, &y, &spec);
        assert!(model.decision(&x).unwrap().data().iter().all(|f| f.is_finite()), "{method:?}");
    }
    // A region of one class only.
    let Target::Classes { labels, .. } = &y else { unreachable!() };
    for method in ["hlmkl", "glmkl", "gsmkl"] {
        let spec = TrainSpec {
            method: named(method),
            kernels: "rbf(1|3), linear on all".into(),
            ..TrainSpec::default()
        };
        let prepared = Prepared::from_table(&x, &y, None, &spec).unwrap();
        let model = prepared
            .with_regions(Regions::Labels(labels.clone()))
            .unwrap()
            .fit(&spec, &mut Silent)
            .unwrap();
        assert!(model.decision(&x).unwrap().data().iter().all(|f| f.is_finite()), "{method}");
    }
}

#[test]
fn rows_of_weight_zero_are_as_good_as_absent() {
    let (x, y) = synthetic::four_gaussians(60, 4);
    let keep: Vec<usize> = (0..60).filter(|i| i % 5 != 0).collect();
    let weight: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 5 != 0))).collect();
    for method in ["clmkl", "lmkl", "glmkl"] {
        let spec = TrainSpec {
            method: named(method),
            kernels: "rbf(0.3|1|3), linear on all".into(),
            ..TrainSpec::default()
        };
        let with = mercer::train(&x, &y, Some(&weight), &spec, &mut Silent).unwrap();
        let without = fit(&x.select(&keep), &y.select(&keep), &spec);
        assert_eq!(with.decision(&x).unwrap(), without.decision(&x).unwrap(), "{method}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let (x, y) = synthetic::four_gaussians(20, 1);
    let refused = |spec: TrainSpec, part: &str| {
        let message = mercer::train(&x, &y, None, &spec, &mut Silent).unwrap_err().to_string();
        assert!(message.contains(part), "{part}: {message}");
    };
    refused(spec(clmkl(21, None, 2.0)), "n_clusters");
    refused(spec(clmkl(0, None, 2.0)), "n_clusters");
    refused(spec(clmkl(3, Some(Evenness::Average(0.2)), 2.0)), "evenness");
    refused(spec(clmkl(3, Some(Evenness::Average(1.5)), 2.0)), "evenness");
    refused(spec(clmkl(3, None, 0.5)), "`p`");
    refused(spec(glmkl(3, 0.9)), "`p`");
    refused(spec(glmkl(0, 2.0)), "n_groups");
    refused(TrainSpec { group_by: GroupBy::Scope, ..spec(named("lmkl")) }, "group_by");
    let gate = |text: &str| {
        MethodSpec::Lmkl(Lmkl {
            gate: GateName::Softmax,
            gate_kernel: Some(text.into()),
            n_init: 1,
            seed: 0,
        })
    };
    refused(spec(gate("99")), "gate_kernel");
    refused(spec(gate("rfb(1)")), "rfb");
    let mut column = named("hlmkl");
    if let MethodSpec::Clmkl(Clmkl { regions, .. }) = &mut column {
        *regions = Some("nowhere".into());
    }
    refused(spec(column), "nowhere");
    let given = |regions| {
        let prepared = Prepared::from_table(&x, &y, None, &spec(named("clmkl"))).unwrap();
        prepared
            .with_regions(regions)
            .and_then(|p| p.fit(&spec(named("clmkl")), &mut Silent))
            .unwrap_err()
            .to_string()
    };
    assert!(given(Regions::Labels(vec![0; 5])).contains("20"));
    assert!(
        given(Regions::Labels((0..20).map(|i| 2 * (i % 2)).collect()))
            .contains("region 2 has no row")
    );
    let uneven = Matrix::new(20, 2, vec![0.4; 40]).unwrap();
    assert!(given(Regions::Memberships(uneven)).contains("add up to 1"));
    let plain = fit(&x, &y, &spec(named("uniform")));
    assert!(plain.memberships(NewRows::Table(&x), None).unwrap_err().to_string().contains("clmkl"));
}

#[test]
fn clustering_alone_is_available_and_reproducible() {
    let (x, y) = synthetic::four_gaussians(120, 1);
    let prepared = Prepared::from_table(&x, &y, None, &spec(named("uniform"))).unwrap();
    let k = prepared.grams().combine(&vec![1.0; prepared.grams().n_terms()]);
    let (a, b) = (kernel_kmeans(&k, 4, 5, 1).unwrap(), kernel_kmeans(&k, 4, 5, 1).unwrap());
    assert_eq!(a, b);
    assert_eq!(a.labels[0], 0);
    let d = a.distances(&k);
    for target in [0.3, 0.5, 0.9] {
        assert!((evenness(&d, sharpness(&d, Some(target)).unwrap()) - target).abs() < 1e-9);
    }
    assert!(memberships(&d, None).data().iter().sum::<f64>() == 120.0);
}
