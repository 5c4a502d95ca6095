//! Facts about real data sets. They are not part of the repository: `MERCER_DATA_DIR` says where they lie (default ../shared/data beside
//! the checkout), and a missing set is announced, not passed over.

use std::{io::Write as _, path::PathBuf};

use mercer::{
    TrainSpec,
    data::{
        csv::{Table, TaskHint},
        split,
    },
    gram::GramSource,
    kernels::Normalize,
    methods::Prepared,
    trace::Silent,
};

fn table(name: &str) -> Option<Table> {
    let folder = std::env::var_os("MERCER_DATA_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        // Straight to the stream: the test harness captures what macros print.
        let _ = writeln!(std::io::stderr(), "NOT RUN: {} is missing; set MERCER_DATA_DIR", path.display());
        return None;
    }
    Some(Table::read(&path).unwrap())
}

#[test]
fn the_403_kernels_of_wdbc_take_less_than_a_tenth_of_full_matrices() {
    let Some(table) = table("wdbc/wdbc.csv") else { return };
    let (x, y) = (table.dataset(&["label"], None).unwrap(), table.target("label", TaskHint::Auto).unwrap());
    let (train, _) = split::stratified_split(&y, 0.5, 1).unwrap();
    let (x, y) = (x.select(&train), y.select(&train));
    let spec = TrainSpec { kernels: "paper".into(), normalize: Normalize::Trace, c: 100.0, ..TrainSpec::default() };
    let prepared = Prepared::from_table(&x, &y, None, &spec).unwrap();
    assert_eq!(prepared.grams().n_terms(), 403);
    let full = 8 * 403 * (x.len() as u64).pow(2);
    assert!(10 * prepared.grams().bytes() <= full, "{} of {full}", prepared.grams().bytes());
    let model = prepared.fit(&spec, &mut Silent).unwrap();
    assert!(model.machines[0].certificate.gap <= spec.tol);
}
