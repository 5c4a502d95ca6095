//! Data as users bring them: every reader against good and broken bytes; views, sparse columns,
//! ready-made Gram matrices and rows that lack a view, each against a naive twin.

mod formats;

use std::path::{Path, PathBuf};

use mercer::{
    Model, Result, TrainSpec,
    data::{self, Column, Dataset, Missing, Rng, Rows, Sparse, Table, Target, TaskHint, View},
    gram::{Budget, BuildOptions, GramSet, Stack, Storage},
    kernels::{Function, Indefinite, Normalize, language},
    linalg::Matrix,
    prepare::Source,
    request::{LossName, MethodSpec, Single},
    trace::Silent,
    train,
    train::grid_search,
    train_precomputed,
};

use mercer_testkit::naive_kernel;

fn message<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).expect("an error")
}

fn here() -> &'static Path {
    Path::new("t")
}

/// A folder for one test's files.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn normal(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut rng = Rng::new(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| rng.normal()).collect()).unwrap()
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|j| format!("x{j}")).collect()
}

fn signs(x: &Matrix) -> Target {
    let label = |i: usize| if x[(i, 0)] + 0.5 * x[(i, 1)] * x[(i, 1)] > 0.3 { "yes" } else { "no" };
    Target::classes(&(0..x.rows()).map(label).collect::<Vec<_>>())
}

fn close(a: &Matrix, b: &Matrix, tolerance: f64) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    let size = a.data().iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let worst = a.data().iter().zip(b.data()).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
    assert!(worst <= tolerance * size, "differ by {worst:e}, size {size:e}");
}

/// Through the model file and back.
fn reloaded(model: &Model) -> Model {
    Model::from_bytes(&model.to_bytes().unwrap()).unwrap()
}

fn numbers(table: &Table, key: &str) -> Vec<f64> {
    match table.column(key).unwrap() {
        Column::Numeric(v) => v.clone(),
        Column::Text(t) => panic!("text {t:?}"),
    }
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    match table.column(key).unwrap() {
        Column::Text(t) => t.clone(),
        Column::Numeric(v) => panic!("numbers {v:?}"),
    }
}

#[test]
fn descriptions_join_files_by_id_or_by_row() {
    let at = folder("join");
    let write = |name: &str, text: &str| std::fs::write(at.join(name), text).unwrap();
    let read = |text: &str| {
        write("data.toml", text);
        data::read(&at.join("data.toml"))
    };
    write("labels.csv", "id,y\na,1\nb,0\nc,1\n");
    write("left.csv", "id,u,v,junk\nc,3,30,x\na,1,10,x\nd,4,40,x\nb,2,20,x\n");
    write("right.svm", "1:5\n2:6\n1:7\n");
    write("right.csv", "id,w\na,0.5\nc,0.7\n");
    let table = read(
        "target = \"y\"\nid = \"id\"\nkernels = \"linear\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"left\"\nfile = \"left.csv\"\n\
         exclude = [\"junk\"]\nkernels = \"rbf(1), linear\"\n[[view]]\nname = \"right one\"\nfile = \"right.csv\"\nkernels = \"linear\"\n",
    )
    .unwrap();
    assert_eq!(
        table.kernels(),
        Some("rbf(1), linear on view(left); linear on view(\"right one\"); linear")
    );
    assert_eq!(table.default_target(), Some("y"));
    assert_eq!(
        (numbers(&table, "left.u"), numbers(&table, "left.v")),
        (vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0])
    );
    assert!(table.notes()[0].contains("view `left`: 1 rows"), "{:?}", table.notes());
    let data = table.dataset(&["y"], None).unwrap();
    assert_eq!(data.columns(), ["left.u", "left.v", "right one.w"]);
    assert_eq!(data.rows().absent(&[2]), Some(vec![false, true, false]));
    let e = message(data.clone().with_missing(Missing::Refuse));
    assert!(
        e.contains("view `right one`: 1 of 3 rows have nothing in it, the first is row 2"),
        "{e}"
    );
    assert!(data.with_missing(Missing::Mean).is_ok());
    let table = table.select_rows(&[2, 0]);
    assert!(table.dataset(&["y"], None).unwrap().with_missing(Missing::Refuse).is_ok());

    // By row, dense beside sparse.
    let text = "target = \"y\"\n[[view]]\nname = \"l\"\nfile = \"labels.csv\"\ncolumns = []\n[[view]]\nname = \"r\"\nfile = \"right.svm\"\n";
    assert!(message(read(text)).contains("view `l` has no columns left"));
    let table =
        read(&text.replace("[[view]]\nname = \"l\"", "[labels]").replace("columns = []\n", ""))
            .unwrap();
    let data = table.dataset(&["y", "id"], None).unwrap();
    assert_eq!((data.columns(), data.len()), (&["r.x1".to_string(), "r.x2".into()][..], 3));
    assert_eq!(table.target("y", TaskHint::Auto).unwrap().len(), 3);
    // What else the file of labels holds is no feature.
    assert_eq!(table.dataset(&["y"], None).unwrap().columns(), ["r.x1", "r.x2"]);

    for (text, part) in [
        ("target = 3\n", "line 1, column 10"),
        (
            "[[view]]\nname = \"v\"\nfile = \"right.svm\"\nkernel = \"x\"\n",
            "line 4, column 1: unknown field `kernel`",
        ),
        ("target = \"y\"\n", "names no view"),
        ("[[view]]\nname = \"v\"\nfile = \"nowhere.csv\"\n", "nowhere.csv"),
        (
            "[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n",
            "line 4, column 8: view `v` has 4 rows where 3 were expected",
        ),
        (
            "id = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"right.svm\"\n",
            "`v` has no id column",
        ),
        (
            "id = \"key\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n",
            "no file has the id column `key`",
        ),
        (
            "[[view]]\nname = \"v\"\nfile = \"left.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n",
            "line 5, column 8: two views have one name",
        ),
        ("[[view]]\nname = \"v\"\nfile = \"left.csv\"\narray = \"a\"\n", "has no named arrays"),
        (
            "[[view]]\nname = \"v\"\nfile = \"left.csv\"\nids = \"a\"\n",
            "line 2, column 8: view `v` has `ids` and is no Gram",
        ),
    ] {
        let e = message(read(text));
        assert!(e.contains(part), "{text}: {e}");
    }
    write("left.csv", "id,u\na,1\na,2\n");
    let twice = "id = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n";
    assert!(message(read(twice)).contains("two rows with id `a`"));
}

/// A Gram matrix whose rows come in another order, with rows of its own, joined on ids beside a
/// CSV.
#[test]
fn gram_matrices_are_joined_on_ids() {
    let at = folder("gram_ids");
    let write = |name: &str, text: &str| std::fs::write(at.join(name), text).unwrap();
    let read = || data::read(&at.join("data.toml"));
    let x = normal(20, 2, 5);
    let value = |i: usize, j: usize| naive_kernel(Function::Rbf { width: 1.0 }, x.row(i), x.row(j));
    // Row i of the table is point i; the matrix has them backwards, and points 16 to 19 that the
    // table lacks.
    let order: Vec<usize> = (0..20).rev().collect();
    let matrix = |order: &[usize]| -> String {
        let row = |i: &usize| {
            order.iter().map(|j| value(*i, *j).to_string()).collect::<Vec<_>>().join(" ") + "\n"
        };
        order.iter().map(row).collect()
    };
    let names =
        |order: &[usize]| order.iter().map(|i| format!("p{i}")).collect::<Vec<_>>().join("\n");
    let labels: Vec<String> =
        (0..16).map(|i| format!("p{i},{}", if x[(i, 0)] > 0.0 { "u" } else { "v" })).collect();
    write("labels.csv", &format!("id,y\n{}\n", labels.join("\n")));
    write("k.txt", &matrix(&order));
    write("names.txt", &names(&order));
    write(
        "data.toml",
        "target = \"y\"\nid = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"k\"\nfile = \"k.txt\"\ngram = true\nids = \"names.txt\"\n",
    );
    let table = read().unwrap();
    assert!(
        table.notes()[0].contains("view `k`: 4 rows have ids that no other row has"),
        "{:?}",
        table.notes()
    );
    let data = table.dataset(&["y"], None).unwrap();
    let got = data.rows().gather(&(0..16).collect::<Vec<_>>(), &[]);
    for i in 0..16 {
        assert!((0..16).all(|j| (got.numbers()[(i, j)] - value(i, j)).abs() < 1e-15), "row {i}");
    }
    // Rows that the matrix lacks lack the view.
    let some: Vec<usize> = order.iter().copied().filter(|i| ![3, 7].contains(i)).collect();
    write("k.txt", &matrix(&some));
    write("names.txt", &names(&some));
    let table = read().unwrap();
    let data = table.dataset(&["y"], None).unwrap();
    let target = table.target("y", TaskHint::Auto).unwrap();
    let e = message(train(&data, &target, None, &spec("precomputed(k)"), &mut Silent));
    assert!(e.contains("view `k`: 2 of 16 rows have nothing in it, the first is row 4"), "{e}");
    write("names.txt", "p1\n");
    assert!(message(read()).contains("names.txt: names 1 rows where the matrix has 18"));
}

fn spec(kernels: &str) -> TrainSpec {
    TrainSpec { kernels: kernels.into(), tol: 1e-6, c: 2.0, ..TrainSpec::default() }
}

/// Every kernel on sparse columns is the kernel on the same columns written out, in every
/// normalisation, through the file, and for new rows stored either way.
#[test]
fn sparse_columns_are_columns() {
    let mut rng = Rng::new(4);
    let mut make = |rows: usize| {
        let thin = |_| if rng.below(3) == 0 { rng.normal() } else { 0.0 };
        Matrix::new(rows, 6, (0..rows * 6).map(thin).collect()).unwrap()
    };
    let (x, new) = (make(60), make(25));
    let y = signs(&x);
    let dense = |x: &Matrix| Dataset::new(x.clone(), vec![]).unwrap();
    let sparse = |x: &Matrix| {
        let rows = Rows::default().with_sparse(Sparse::from_dense(x)).unwrap();
        Dataset::from_rows(rows, vec![]).unwrap()
    };
    let bank = "linear, poly(2), rbf(auto), laplace(1) on all, cols(1-3); rbf(0.7) on each; linear on bands(2)";
    for normalize in
        [Normalize::Multiplicative, Normalize::Trace, Normalize::Center, Normalize::None]
    {
        let spec = TrainSpec {
            normalize,
            standardize: false,
            c: if normalize == Normalize::Trace { 100.0 } else { 2.0 },
            // One answer, solved directly: what differs is the kernels.
            loss: Some(LossName::Squared),
            method: MethodSpec::Uniform {},
            ..spec(bank)
        };
        let of_dense = train(&dense(&x), &y, None, &spec, &mut Silent).unwrap();
        let of_sparse = train(&sparse(&x), &y, None, &spec, &mut Silent).unwrap();
        assert_eq!(of_dense.kernel_names(), of_sparse.kernel_names());
        close(
            &of_dense.decision(&dense(&new)).unwrap(),
            &of_sparse.decision(&sparse(&new)).unwrap(),
            1e-5,
        );
        let again = reloaded(&of_sparse);
        assert_eq!(again, of_sparse);
        let here = again.decision(&sparse(&new)).unwrap();
        close(&here, &again.decision(&dense(&new)).unwrap(), 1e-12);
        close(
            &of_dense.decision(&sparse(&new)).unwrap(),
            &of_dense.decision(&dense(&new)).unwrap(),
            1e-12,
        );
    }
    // Sparse columns are never standardised.
    let model = train(&sparse(&x), &y, None, &spec("rbf(1)"), &mut Silent).unwrap();
    let plain = train(
        &dense(&x),
        &y,
        None,
        &TrainSpec { standardize: false, ..spec("rbf(1)") },
        &mut Silent,
    )
    .unwrap();
    close(&model.decision(&dense(&new)).unwrap(), &plain.decision(&dense(&new)).unwrap(), 1e-6);
}

#[test]
fn a_factor_beyond_the_budget_is_given_up_before_it_is_made() {
    let (n, d) = (300, 90);
    let data = Dataset::from_rows(
        Rows::default().with_sparse(Sparse::from_dense(&normal(n, d, 7))).unwrap(),
        names(d),
    )
    .unwrap();
    let bank = language::parse("linear").unwrap().resolve(&data).unwrap();
    let built = |bytes: u64| {
        let options = BuildOptions {
            normalize: Normalize::None,
            storage: Storage::Auto,
            rank_tolerance: 1e-12,
            budget: Budget { bytes },
            ..BuildOptions::default()
        };
        GramSet::from_rows(data.rows(), &bank, &options).map(|grams| grams.bytes())
    };
    let (factor, triangle) = ((8 * n * d) as u64, (4 * n * (n + 1) / 2) as u64);
    assert_eq!(built(1 << 30).unwrap(), factor);
    assert_eq!(built(factor - 1).unwrap(), triangle);
    assert!(message(built(triangle - 1)).contains("storing 1 kernels of 300 samples needs"));
}

/// The table with a view `k` of kernel values against `base`.
fn with_gram(x: &Matrix, base: &Matrix, function: Function) -> Dataset {
    let k = function.block(x, base);
    let (d, n) = (x.cols(), base.rows());
    let mut all = Matrix::zeros(x.rows(), d + n);
    for i in 0..x.rows() {
        all.row_mut(i)[..d].copy_from_slice(x.row(i));
        all.row_mut(i)[d..].copy_from_slice(k.row(i));
    }
    let names = (1..=d).map(|j| format!("x{j}")).chain((1..=n).map(|j| format!("k.{j}"))).collect();
    let views = vec![
        View { name: "x".into(), columns: 0..d },
        View { name: "k".into(), columns: d..d + n },
    ];
    Dataset::new(all, names).unwrap().with_views(views).unwrap().with_gram("k").unwrap()
}

#[test]
fn a_ready_made_gram_matrix_is_the_kernel_it_came_from() {
    let (x, new) = (normal(50, 2, 1), normal(20, 2, 2));
    let y = signs(&x);
    let f = Function::Rbf { width: 0.8 };
    let plain = |x: &Matrix| Dataset::new(x.clone(), vec![]).unwrap();
    for method in [spec("").method, MethodSpec::Single(Single { folds: 3, seed: 1 })] {
        let request = |kernels: &str| TrainSpec {
            standardize: false,
            method: method.clone(),
            ..spec(kernels)
        };
        let computed =
            train(&plain(&x), &y, None, &request("rbf(0.8); linear; rbf(3) on each"), &mut Silent)
                .unwrap();
        let ready = train(
            &with_gram(&x, &x, f),
            &y,
            None,
            &request("precomputed(k); linear on all; rbf(3) on each"),
            &mut Silent,
        );
        let ready = ready.unwrap();
        assert_eq!(ready.kernel_names()[0], "precomputed on view k");
        assert_eq!(computed.kernel_names()[1..], ready.kernel_names()[1..]);
        close(
            &computed.decision(&plain(&new)).unwrap(),
            &ready.decision(&with_gram(&new, &x, f)).unwrap(),
            1e-6,
        );
        assert_eq!(reloaded(&ready), ready);
        // The columns of features are standardised, kernel values are not.
        let scaled = train(
            &with_gram(&x, &x, f),
            &y,
            None,
            &TrainSpec { standardize: true, ..request("precomputed(k)") },
            &mut Silent,
        );
        close(
            &scaled.unwrap().decision(&with_gram(&new, &x, f)).unwrap(),
            &train(&plain(&x), &y, None, &request("rbf(0.8)"), &mut Silent)
                .unwrap()
                .decision(&plain(&new))
                .unwrap(),
            1e-6,
        );
    }
    // Folds, and rows of weight zero, take the part of the matrix that is theirs.
    let specs =
        |kernels: &str| [1.0, 10.0].map(|c| TrainSpec { standardize: false, c, ..spec(kernels) });
    let search = |data: &Dataset, kernels: &str| {
        grid_search(Source::Table(data), &y, None, &specs(kernels), (5, 3), &mut Silent).unwrap()
    };
    let ours = search(&with_gram(&x, &x, f), "precomputed on view(k)");
    assert_eq!(ours, search(&plain(&x), "rbf(0.8)"));
    let weight: Vec<f64> = (0..50).map(|i| f64::from(i % 3)).collect();
    let part = |kernels: &str, data: &Dataset| {
        train(
            data,
            &y,
            Some(&weight),
            &TrainSpec { standardize: false, ..spec(kernels) },
            &mut Silent,
        )
        .unwrap()
    };
    close(
        &part("rbf(0.8)", &plain(&x)).decision(&plain(&new)).unwrap(),
        &part("precomputed(k)", &with_gram(&x, &x, f)).decision(&with_gram(&new, &x, f)).unwrap(),
        1e-6,
    );

    let e =
        |kernels: &str, data: &Dataset| message(train(data, &y, None, &spec(kernels), &mut Silent));
    let data = with_gram(&x, &x, f);
    assert!(
        e("linear on view(k)", &data).contains("holds kernel values; read them with `precomputed`")
    );
    assert!(e("precomputed on view(x)", &data).contains("holds features"));
    assert!(e("precomputed", &data).contains("does not say which view"));
    assert!(e("precomputed(z)", &data).contains("choose one of `k`"));
    assert!(e("precomputed(z)", &plain(&x)).contains("no kernel values"));
    let short = with_gram(&x, &x.select_rows(&(0..40).collect::<Vec<_>>()), f);
    assert!(
        e("precomputed(k)", &short).contains("a square matrix: 50 columns"),
        "{}",
        e("precomputed(k)", &short)
    );
    let spherical = TrainSpec { normalize: Normalize::Spherical, ..spec("precomputed(k)") };
    assert!(message(train(&data, &y, None, &spherical, &mut Silent)).contains("spherical"));
}

#[test]
fn indefinite_matrices_are_refused_or_repaired_and_the_model_says_so() {
    let (x, new) = (normal(40, 2, 5), normal(15, 2, 6));
    let y = signs(&x);
    // tanh of products is no kernel.
    let values = |a: &Matrix, b: &Matrix| {
        let mut k = Function::Linear.block(a, b);
        k.data_mut().iter_mut().for_each(|v| *v = (2.0 * *v - 0.5).tanh());
        k
    };
    let view = |a: &Matrix| {
        let k = values(a, &x);
        let names = (1..=40).map(|j| format!("k.{j}")).collect();
        let views = vec![View { name: "k".into(), columns: 0..40 }];
        Dataset::new(k, names).unwrap().with_views(views).unwrap().with_gram("k").unwrap()
    };
    let request = |indefinite| TrainSpec { indefinite, ..spec("precomputed(k)") };
    let e = message(train(&view(&x), &y, None, &request(Indefinite::Refuse), &mut Silent));
    assert!(e.contains("not positive semidefinite") && e.contains("shift, clip or flip"), "{e}");
    for indefinite in [Indefinite::Shift, Indefinite::Clip, Indefinite::Flip] {
        let model = train(&view(&x), &y, None, &request(indefinite), &mut Silent).unwrap();
        assert!(model.warnings[0].contains("eigenvalues are negative"), "{:?}", model.warnings);
        assert_eq!(model.request.indefinite, indefinite);
        assert_eq!(reloaded(&model), model);
        // The same through a stack of matrices.
        let k = values(&x, &x);
        let stack = Stack { rows: 40, cols: 40, terms: 1, data: k.data() };
        let twin = train_precomputed(stack, &y, None, &request(indefinite), &mut Silent).unwrap();
        let k = values(&new, &x);
        let there = twin
            .decision_precomputed(Stack { rows: 15, cols: 40, terms: 1, data: k.data() })
            .unwrap();
        close(&model.decision(&view(&new)).unwrap(), &there, 1e-9);
        // Decision values of the training rows are those of the repaired matrix: dual and primal
        // meet. (A shift knows its own rows only.)
        let machine = &model.machines[0];
        if indefinite != Indefinite::Shift {
            let decision = model.decision(&view(&x)).unwrap();
            let Target::Classes { labels, .. } = &y else { panic!() };
            let hinge: f64 = (0..40)
                .map(|i| (1.0 - (2.0 * labels[i] as f64 - 1.0) * decision[(i, 0)]).max(0.0))
                .sum();
            let fit: f64 = machine
                .support
                .iter()
                .zip(&machine.dual_coef)
                .map(|(&i, a)| a * (decision[(i, 0)] - machine.intercept))
                .sum();
            let primal = 2.0 * hinge + 0.5 * fit;
            assert!(
                (primal - machine.certificate.primal).abs() < 1e-4 * primal,
                "{primal} {}",
                machine.certificate.primal
            );
        }
    }
}

/// Rows that lack a view, against S K Sᵀ made by hand.
#[test]
fn missing_views_are_imputed_in_feature_space() {
    let n = 45;
    let (x, new) = (normal(n, 4, 8), normal(12, 4, 9));
    let y = signs(&x);
    let absent: Vec<usize> = (0..n).filter(|i| i % 5 == 1).collect();
    let new_absent = [0, 4, 7];
    let views =
        || vec![View { name: "u".into(), columns: 0..2 }, View { name: "v".into(), columns: 2..4 }];
    let data = |x: &Matrix, rows: &[usize]| {
        let data = Dataset::new(x.clone(), vec![]).unwrap().with_views(views()).unwrap();
        data.with_absent("v", rows).unwrap()
    };
    let present: Vec<usize> = (0..n).filter(|i| !absent.contains(i)).collect();
    for missing in [Missing::Zero, Missing::Mean] {
        // Row i of S: what stands for row i among the rows that are there.
        let stand_in = |is_absent: bool, own: usize| -> Vec<(usize, f64)> {
            match (is_absent, missing) {
                (false, _) => vec![(own, 1.0)],
                (true, Missing::Mean) => {
                    present.iter().map(|&j| (j, 1.0 / present.len() as f64)).collect()
                }
                _ => vec![],
            }
        };
        for (f, text) in [
            (Function::Rbf { width: 1.0 }, "rbf(1)"),
            (Function::Linear, "linear"),
            (Function::Poly { degree: 2, offset: 1.0 }, "poly(2)"),
        ] {
            let (left, right) = (x.select_cols(&[0, 1]), x.select_cols(&[2, 3]));
            let (k_u, k_v) = (Function::Linear.block(&left, &left), f.block(&right, &right));
            let mut stack = vec![0.0; n * n * 2];
            for i in 0..n {
                for j in 0..n {
                    let (s, t) =
                        (stand_in(absent.contains(&i), i), stand_in(absent.contains(&j), j));
                    stack[(i * n + j) * 2] = k_u[(i, j)];
                    stack[(i * n + j) * 2 + 1] = s
                        .iter()
                        .flat_map(|(p, a)| t.iter().map(move |(q, b)| (p, q, a * b)))
                        .map(|(&p, &q, w)| w * k_v[(p, q)])
                        .sum();
                }
            }
            let (nu, nv) = (
                Function::Linear.block(&new.select_cols(&[0, 1]), &left),
                f.block(&new.select_cols(&[2, 3]), &right),
            );
            let mut cross = vec![0.0; 12 * n * 2];
            for i in 0..12 {
                for j in 0..n {
                    let t = stand_in(absent.contains(&j), j);
                    let value = |q: usize| {
                        if new_absent.contains(&i) {
                            stand_in(true, 0).iter().map(|(p, a)| a * k_v[(*p, q)]).sum()
                        } else {
                            nv[(i, q)]
                        }
                    };
                    cross[(i * n + j) * 2] = nu[(i, j)];
                    cross[(i * n + j) * 2 + 1] = t.iter().map(|(q, b)| b * value(*q)).sum();
                }
            }
            for normalize in [Normalize::Multiplicative, Normalize::Center, Normalize::None] {
                let spec = TrainSpec {
                    missing,
                    normalize,
                    standardize: false,
                    method: MethodSpec::Uniform {},
                    tol: 1e-8,
                    ..spec(&format!("linear on view(u); {text} on view(v)"))
                };
                let ours = train(&data(&x, &absent), &y, None, &spec, &mut Silent).unwrap();
                assert!(
                    ours.warnings.iter().any(|w| w.contains("view `v` is missing in 9 of 45 rows")),
                    "{:?}",
                    ours.warnings
                );
                let twin = train_precomputed(
                    Stack { rows: n, cols: n, terms: 2, data: &stack },
                    &y,
                    None,
                    &spec,
                    &mut Silent,
                )
                .unwrap();
                let there = twin
                    .decision_precomputed(Stack { rows: 12, cols: n, terms: 2, data: &cross })
                    .unwrap();
                let here = reloaded(&ours).decision(&data(&new, &new_absent)).unwrap();
                close(&here, &there, 1e-4);
            }
        }
    }
    // Refused by default, also for new rows; constants of standardisation come from the rows that
    // are there.
    assert!(
        message(train(&data(&x, &absent), &y, None, &spec("linear"), &mut Silent))
            .contains("missing = zero or mean")
    );
    let whole = train(&data(&x, &[]), &y, None, &spec("linear"), &mut Silent).unwrap();
    assert!(message(whole.decision(&data(&new, &new_absent))).contains("view `v`: 3 of 12 rows"));
    let mut spoiled = x.clone();
    absent.iter().for_each(|&i| spoiled.row_mut(i)[2..].fill(1e6));
    let model = |x: &Matrix| {
        train(
            &data(x, &absent),
            &y,
            None,
            &TrainSpec { missing: Missing::Mean, ..spec("rbf(auto) on view(v)") },
            &mut Silent,
        )
        .unwrap()
    };
    close(
        &model(&x).decision(&data(&new, &[])).unwrap(),
        &model(&spoiled).decision(&data(&new, &[])).unwrap(),
        1e-12,
    );
}

/// A model with preprocessing is the model of columns preprocessed by hand, and needs the raw
/// columns alone.
#[test]
fn preprocessing_is_recorded_and_done_again() {
    let (x, new) = (normal(40, 12, 21), normal(9, 12, 22));
    let y = signs(&x);
    let by_hand = |x: &Matrix| {
        let mut out = Matrix::zeros(x.rows(), 3 + 2);
        for i in 0..x.rows() {
            let thirds: Vec<f64> =
                x.row(i)[..6].chunks(2).map(|c| f64::midpoint(c[0], c[1])).collect();
            let mean = thirds.iter().sum::<f64>() / 3.0;
            let scale = (thirds.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
            (0..3).for_each(|j| out[(i, j)] = (thirds[j] - mean) / scale);
            (0..2).for_each(|j| {
                out[(i, 3 + j)] = x[(i, 6 + j)] - 2.0 * x[(i, 7 + j)] + x[(i, 8 + j)];
            });
        }
        out
    };
    let views = |first: usize, second: usize| {
        vec![
            View { name: "a".into(), columns: 0..first },
            View { name: "b".into(), columns: first..first + second },
        ]
    };
    let raw =
        |x: &Matrix| Dataset::new(x.select_cols(&(0..10).collect::<Vec<_>>()), vec![]).unwrap();
    let done = |x: &Matrix| Dataset::new(by_hand(x), vec![]).unwrap();
    let bank = "rbf(auto) on view(a), view(b); linear on each";
    let squared =
        TrainSpec { loss: Some(LossName::Squared), method: MethodSpec::Uniform {}, ..spec(bank) };
    let steps = TrainSpec {
        preprocess: "average(2), snv on view(a); difference(2) on view(b)".into(),
        ..squared.clone()
    };
    let ours =
        train(&raw(&x).with_views(views(6, 4)).unwrap(), &y, None, &steps, &mut Silent).unwrap();
    let twin =
        train(&done(&x).with_views(views(3, 2)).unwrap(), &y, None, &squared, &mut Silent).unwrap();
    assert_eq!(ours.kernel_names()[..10], twin.kernel_names()[..10]);
    assert_eq!(
        ours.kernel_names()[10..],
        ["x1..x2", "x3..x4", "x5..x6", "\"d2(x7)\"", "\"d2(x8)\""]
            .map(|n| format!("linear on {n}"))
    );
    let again = reloaded(&ours);
    assert_eq!(again, ours);
    close(&again.decision(&raw(&new)).unwrap(), &twin.decision(&done(&new)).unwrap(), 1e-9);
    assert!(
        mercer::train::verify(&again, &raw(&x).with_views(views(6, 4)).unwrap(), &y, None)
            .unwrap()
            .agrees
    );
    // A view that is missing stays missing through its steps.
    let gap = |x: &Matrix, rows: &[usize]| {
        raw(x).with_views(views(6, 4)).unwrap().with_absent("b", rows).unwrap()
    };
    let imputing = TrainSpec { missing: Missing::Mean, ..steps };
    let model = train(&gap(&x, &[1, 5, 30]), &y, None, &imputing, &mut Silent).unwrap();
    let mut spoiled = new.clone();
    spoiled.row_mut(2)[6..].fill(1e5);
    close(
        &model.decision(&gap(&new, &[2])).unwrap(),
        &model.decision(&gap(&spoiled, &[2])).unwrap(),
        1e-12,
    );
}
