//! Model files written by an earlier version of the code still load and still predict the same
//! bits.
//!
//! `golden/` holds one file per method, the rows that were asked about and the decision values of
//! each method in a column of its own, all written by
//! `benchmarks/answers.py store … --models crates/core/tests/golden`. Files that are there stay as
//! they are: a format that changes must go on reading them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mercer::{Model, data::Table};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The files were written where the exponential uses fused multiplication and addition; elsewhere
/// the last bits may differ.
fn same_processor() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    return false;
}

#[test]
fn stored_models_predict_the_stored_bits() {
    let rows = Table::read(&golden("rows.csv")).unwrap().dataset(&["y"], None).unwrap();
    let text = fs::read_to_string(golden("decisions.csv")).unwrap();
    let mut lines = text.lines();
    let methods: Vec<&str> = lines.next().unwrap().split(',').collect();
    let values: Vec<Vec<f64>> =
        lines.map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    assert_eq!((methods.len(), values.len()), (13, 20));
    let allowed = if same_processor() { 0.0 } else { 1e-9 };
    for (k, method) in methods.iter().enumerate() {
        let model = Model::load(&golden(&format!("{method}.mercer"))).unwrap();
        let found = model.decision(&rows).unwrap();
        let wanted: Vec<f64> = values.iter().map(|line| line[k]).collect();
        assert_eq!(found.data().len(), wanted.len());
        let apart =
            found.data().iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart <= allowed, "{method}: decision values are {apart:e} from the stored ones");
    }
}
