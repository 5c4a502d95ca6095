//! Tests of `table.rs`.

use super::*;

fn table(text: &str) -> Result<Table> {
    Table::parse(text.as_bytes(), b',', Path::new("t.csv"))
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn features_leave_nothing_unsaid() {
    let t = table(",a,b,city,y\n0,1,2,Rio,0\n1,3,4,Oslo,1\n").unwrap();
    assert!(message(t.dataset(&["y"], None)).contains("column 1: has no name"));
    let text = t.dataset(&["y", "1"], Some(&["city", "b"])).unwrap();
    assert_eq!(
        (text.columns(), text.rows().sequence(1).unwrap().get(1)),
        (&["b".into(), "city".into()][..], "Oslo")
    );
    let d = t.dataset(&["y", "1", "city"], None).unwrap();
    assert_eq!(
        (d.columns(), d.features().data()),
        (&["a".to_string(), "b".to_string()][..], &[1.0, 2.0, 3.0, 4.0][..])
    );
    assert_eq!(t.dataset(&["y"], Some(&["b", "a"])).unwrap().features().row(1), [4.0, 3.0]);
    assert!(message(t.dataset(&["y"], Some(&["a", "y"]))).contains("at once"));
    assert!(message(t.dataset(&[], Some(&["a", "2"]))).contains("named twice"));
    assert!(
        message(table("a,b\n1,2\n3,?\n").unwrap().dataset(&[], None))
            .contains("column `b`: row 2 (line 3) is NaN")
    );
}

#[test]
fn prediction_takes_the_models_columns() {
    let names = |s: &[&str]| s.iter().map(ToString::to_string).collect::<Vec<_>>();
    let t = table("y,b,a\nn/a,2,1\n").unwrap();
    assert_eq!(t.dataset_of(&names(&["a", "b"])).unwrap().features().data(), [1.0, 2.0]);
    assert!(message(t.dataset_of(&names(&["a", "c"]))).contains("column `c`"));
    // No header: by name where the names exist, by position only where the number of columns leaves
    // no doubt.
    let t = table("1,2,3\n").unwrap();
    assert_eq!(t.dataset_of(&names(&["x2", "x3"])).unwrap().features().data(), [2.0, 3.0]);
    let d = t.dataset_of(&names(&["x2", "x3", "x4"])).unwrap();
    assert_eq!(
        (d.features().data(), d.columns()),
        (&[1.0, 2.0, 3.0][..], &names(&["x2", "x3", "x4"])[..])
    );
    assert!(message(t.dataset_of(&names(&["a", "b"]))).contains("column `a`"));
}

#[test]
fn targets_follow_the_hint() {
    let t = table("i,f,s,m\n1,0.5,u,yes\n-1,2,v,\n-1,3,u,no\n").unwrap();
    let class = |names: &[&str], labels: &[usize]| Target::Classes {
        names: names.iter().map(ToString::to_string).collect(),
        labels: labels.to_vec(),
    };
    assert_eq!(t.target("i", TaskHint::Auto).unwrap(), class(&["-1", "1"], &[1, 0, 0]));
    assert_eq!(t.target("i", TaskHint::Regress).unwrap(), Target::Values(vec![1.0, -1.0, -1.0]));
    assert_eq!(t.target("f", TaskHint::Auto).unwrap(), Target::Values(vec![0.5, 2.0, 3.0]));
    assert_eq!(t.target("f", TaskHint::Classify).unwrap(), class(&["0.5", "2", "3"], &[0, 1, 2]));
    assert_eq!(t.target("s", TaskHint::Auto).unwrap(), class(&["u", "v"], &[0, 1, 0]));
    assert!(
        message(t.target("s", TaskHint::Regress)).contains("holds text, `u` in row 1 (line 2)")
    );
    assert!(message(t.target("m", TaskHint::Auto)).contains("row 2 (line 3) has no value"));
    let eleven: String = (0..11).map(|i| i.to_string() + "\n").collect();
    assert!(matches!(
        table(&eleven).unwrap().target("1", TaskHint::Auto).unwrap(),
        Target::Values(_)
    ));
}

#[test]
fn nearest_names_come_first_when_there_are_many() {
    let names: Vec<String> =
        (0..50).map(|i| format!("feature_{i}")).chain(["Income".into()]).collect();
    assert!(nearest("incme", &names).starts_with("`Income`, "));
    assert_eq!((edit_distance("kitten", "sitting"), edit_distance("", "ab")), (3, 2));
}
