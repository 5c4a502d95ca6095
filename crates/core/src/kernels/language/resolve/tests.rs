//! Tests of `resolve.rs`.

use super::{
    super::{AUTO, PAPER, parse},
    *,
};
use crate::data::{Rng, Standardizer, View};
use crate::linalg::Matrix;

fn data(rows: usize, names: &[&str]) -> Dataset {
    let mut rng = Rng::new(1);
    let x = (0..rows * names.len()).map(|_| rng.normal()).collect();
    let x = Matrix::new(rows, names.len(), x).unwrap();
    Dataset::new(x, names.iter().map(ToString::to_string).collect()).unwrap()
}

fn resolved(text: &str, data: &Dataset) -> Vec<KernelSpec> {
    parse(text).unwrap().resolve(data).unwrap()
}

fn names(text: &str, data: &Dataset) -> Vec<String> {
    resolved(text, data).into_iter().map(|k| k.name).collect()
}

#[test]
fn paper_is_thirteen_kernels_on_all_then_on_each_feature() {
    let d = data(5, &["a", "b", "c"]);
    let specs = resolved("paper", &d);
    assert_eq!(specs.len(), 13 * 4);
    assert_eq!(specs[0].name, "rbf(0.125) on all");
    assert_eq!(specs[12].name, "poly(3) on all");
    assert_eq!(specs[13 * 2 + 9].name, "rbf(64) on b");
    assert_eq!(specs[13 * 2 + 9].columns, [1]);
    assert_eq!(specs[9].function, Function::Rbf { width: 64.0 });
    assert_eq!(parse("bank paper").unwrap(), parse(PAPER).unwrap());
    // A feature called `all` keeps a name of its own.
    assert_eq!(
        names("linear on all, each", &data(5, &["all", "b"])),
        ["linear on all", "linear on \"all\"", "linear on b"]
    );
    // One feature: `each` is `all`.
    assert_eq!(resolved("paper", &data(5, &["a"])).len(), 13);
}

#[test]
fn scopes_name_their_columns() {
    let views = vec![View { name: "left eye".into(), columns: 1..3 }];
    let d = data(5, &["a", "b", "c (cm)", "d-e", "5"]).with_views(views).unwrap();
    let place = |text: &str| {
        let specs = resolved(&format!("linear on {text}"), &d);
        specs
            .into_iter()
            .map(|k| (k.columns, k.name.trim_start_matches("linear on ").to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(place("cols(2-3, a)"), [(vec![0, 1, 2], "cols(a, b, \"c (cm)\")".into())]);
    assert_eq!(place("cols(\"c (cm)\", d-e)"), [(vec![2, 3], "cols(\"c (cm)\", d-e)".into())]);
    assert_eq!(place("cols(\"5\")"), [(vec![4], "\"5\"".into())]);
    assert_eq!(place("cols( 5 )"), place("cols(\"5\")"));
    assert_eq!(place("view(left eye)"), [(vec![1, 2], "view left eye".into())]);
    let bands = place("bands(2), bands(1)");
    assert_eq!(
        bands,
        [
            (vec![0, 1], "band 1/2".into()),
            (vec![2, 3, 4], "band 2/2".into()),
            (vec![0, 1, 2, 3, 4], "band 1/1".into())
        ]
    );
    // The same columns by another name are the same kernel.
    assert_eq!(place("all, bands(1), cols(1-5), all").len(), 1);
    for (text, part) in [
        ("cols(2-6)", "cols(2-6): there are 5 feature columns"),
        ("cols(bb)", "column `bb`: is not in the data; choose one of `a`, `b`"),
        ("view(x)", "choose one of `left eye`"),
        ("bands(6)", "bands(6): there are 5"),
    ] {
        let e = parse(&format!("linear on {text}")).unwrap().resolve(&d).unwrap_err().to_string();
        assert!(e.contains(part), "{e}");
    }
}

#[test]
fn numbers_are_lists_ranges_and_powers() {
    let d = data(5, &["a"]);
    assert_eq!(
        names("rbf(0.5|1e-3|2^-3|10^-1..10^1|1..2.5)", &d).join(" "),
        names("rbf(0.5|.001|0.125|0.1|1|10|2)", &d).join(" ")
    );
    assert_eq!(
        names("poly(1..2|5), poly(2, c = 0), poly(2,0.5)", &d),
        [
            "poly(1) on all",
            "poly(2) on all",
            "poly(5) on all",
            "poly(2, 0) on all",
            "poly(2, 0.5) on all"
        ]
    );
    assert_eq!(names("laplace(1e-9)", &d), ["laplace(1e-9) on all"]);
    assert_eq!(names("rbf(0.1..2.1)", &d).len(), 3);
    assert_eq!(names("linear on each; linear on all", &d), ["linear on a"]);
}

#[test]
fn automatic_widths_surround_the_median_distance() {
    let line =
        |x: &[f64]| Dataset::new(Matrix::new(x.len(), 1, x.to_vec()).unwrap(), vec![]).unwrap();
    let widths = |text: &str, d: &Dataset| -> Vec<f64> {
        let width = |k: &KernelSpec| match k.function {
            Function::Rbf { width } | Function::Laplace { width } => width,
            _ => f64::NAN,
        };
        resolved(text, d).iter().map(width).collect()
    };
    // Distances 1, 1, 2, 3, 3, 4.
    assert_eq!(widths("rbf(auto)", &line(&[0.0, 1.0, 3.0, 4.0])), [0.625, 1.25, 2.5, 5.0, 10.0]);
    assert_eq!(widths("rbf(auto)", &line(&[0.0, 0.0, 0.0, 0.0, 3.0]))[2], 3.0);
    assert_eq!(widths("laplace(auto)", &line(&[7.0, 7.0]))[2], 1.0);
    assert_eq!(widths("laplace(auto)", &line(&[7.0]))[2], 1.0);
    let plane = Dataset::new(Matrix::new(2, 2, vec![0.0, 0.0, 3.0, 4.0]).unwrap(), vec![]).unwrap();
    assert_eq!((widths("rbf(auto)", &plane)[2], widths("laplace(auto)", &plane)[2]), (5.0, 7.0));
    let third = resolved("rbf(auto)", &line(&[0.0, 1.0 / 3.0]));
    assert_eq!(
        (third[2].function, third[2].name.as_str()),
        (Function::Rbf { width: 0.3333 }, "rbf(0.3333) on all")
    );
    assert!(
        parse("rbf(auto)")
            .unwrap()
            .resolve(&line(&[0.0, 1e300]))
            .unwrap_err()
            .to_string()
            .contains("standardise")
    );
    // `auto` looks at single features only while they are few.
    let wide = |d: usize| Dataset::new(Matrix::zeros(2, d), vec![]).unwrap();
    assert_eq!((resolved("auto", &wide(100)).len(), resolved("auto", &wide(101)).len()), (108, 8));
    assert_eq!(names("auto", &wide(3)), names(AUTO, &wide(3)));
}

#[test]
fn a_width_can_be_the_deviation() {
    // Variances 4 and 2.25.
    let plane =
        Matrix::new(4, 2, vec![1e9, 0.0, 1e9 + 4.0, 3.0, 1e9, 3.0, 1e9 + 4.0, 0.0]).unwrap();
    let plane = Dataset::new(plane, ["a", "b"].map(String::from).to_vec()).unwrap();
    assert_eq!(
        names("rbf(deviation) on each, all", &plane),
        ["rbf(2) on a", "rbf(1.5) on b", "rbf(2.5) on all"]
    );
    // Of a column that is brought to deviation 1 the width is 1, however the values lie and however
    // many there are.
    let skewed =
        Matrix::new(700, 1, (0..700).map(|i| f64::from(i / 10).powi(4)).collect()).unwrap();
    let rows = Standardizer::fit(&skewed).apply(&skewed).unwrap();
    assert_eq!(
        names("rbf(deviation)", &Dataset::new(rows, vec!["a".into()]).unwrap()),
        ["rbf(1) on all"]
    );
    let constant = Dataset::new(Matrix::zeros(3, 1), vec!["a".into()]).unwrap();
    assert_eq!(names("rbf(deviation)", &constant), ["rbf(1) on all"]);
    let far = Dataset::new(Matrix::new(2, 1, vec![0.0, 1e200]).unwrap(), vec!["a".into()]).unwrap();
    let refused = parse("rbf(deviation)").unwrap().resolve(&far).unwrap_err().to_string();
    assert!(refused.contains("deviation of 5e199") && refused.contains("standardise"), "{refused}");
}

#[test]
fn kernels_are_counted_before_they_are_made() {
    let too_many = parse("rbf(1..1000000), rbf(1..1000000) on bands(1000000000), each").unwrap();
    assert!(
        too_many.resolve(&data(2, &["a"])).unwrap_err().to_string().contains("at most 1000000")
    );
}
