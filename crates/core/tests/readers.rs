//! Data as users bring them: every reader against good and broken bytes; views, sparse columns, ready-made Gram matrices and rows that
//! lack a view, each against a naive twin.

use std::{
    io::Cursor,
    path::{Path, PathBuf},
};

use mercer::{
    Model, Result, TrainSpec,
    data::{
        self, Dataset, Missing, Rng, Rows, Span, Sparse, Target, View, arff,
        array::{self, Array, Values},
        csv::{Column, Table, TaskHint},
        fasta, libsvm,
    },
    gram::Stack,
    kernels::{Function, Indefinite, Normalize},
    linalg::Matrix,
    methods::{LossName, MethodSpec, grid_search},
    trace::Silent,
    train, train_precomputed,
};

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
fn libsvm_keeps_entries_and_names_line_and_column_of_a_mistake() {
    let read = |text: &str| libsvm::parse(text.as_bytes(), None, here());
    let table = read("# first\n+1 1:0.5 3:-2e1 # last\n\n-1 qid:4 2:1 4:0\r\n").unwrap();
    assert_eq!((table.n_rows(), table.default_target(), numbers(&table, "label")), (2, Some("label"), vec![1.0, -1.0]));
    let data = table.dataset(&["label"], None).unwrap();
    assert_eq!(data.columns(), ["x1", "x2", "x3", "x4"]);
    let sparse = data.rows().sparse().unwrap();
    assert_eq!((sparse.entries(), sparse.to_dense().data()), (3, &[0.5, 0.0, -20.0, 0.0, 0.0, 1.0, 0.0, 0.0][..]));
    assert_eq!(texts(&read("a 1:1\n2 1:2\n").unwrap(), "label"), ["a", "2"]);
    assert!(read("1:1\n2:2\n").unwrap().default_target().is_none());
    for (text, part) in [
        ("1 1:1\n1 1:1 x 2:1\n", "t: line 2, column 7: expected column:value, found `x`"),
        ("1 1:1\n1 0:1\n", "line 2, column 3: columns count from 1"),
        ("1 3:1 3:2\n", "line 1, column 7: columns must ascend in a row, and 3 comes after 3"),
        ("1 3:nan\n", "line 1, column 5: expected a finite number, found `nan`"),
        ("1 a:1\n", "line 1, column 3: expected a column number, found `a`"),
        ("1 1:1\n2:3\n", "line 2, column 1: this row has no label"),
        ("1 99999999:1\n", "far beyond"),
        ("1\n2\n", "is this a LIBSVM file?"),
        ("\n# nothing\n", "no rows"),
    ] {
        let e = message(read(text));
        assert!(e.contains(part), "{text:?}: {e}");
    }
    // Some rows: nothing beyond the last is read, columns of the others count, places are remembered.
    let some = |text: &str, first, last, step| libsvm::parse(text.as_bytes(), Some(Span { first, last, step }), here());
    assert_eq!(some("1 1:1\n1 1:2\nbroken here\n", 1, 2, 1).unwrap().n_rows(), 2);
    let third = some("1 1:1\n2 1:2\n\n3 4:2\n4 7:1\n5 2:1\n", 1, 9, 2).unwrap();
    assert_eq!(numbers(&third, "label"), [1.0, 3.0, 5.0]);
    let data = third.dataset(&["label"], None).unwrap();
    assert_eq!((data.columns().len(), data.places()), (7, &[0, 2, 4][..]));
    assert!(message(some("1 1:1\n", 5, 9, 1)).contains("within 1-1"));
}

#[test]
fn fasta_reads_labels_of_headers() {
    let read = |text: &str| fasta::parse(text.as_bytes(), here());
    let t = read(">a label=EI x=1\nACG\nTT\n\n>b x=2 label=IE\n ac gt \n").unwrap();
    assert_eq!(
        (texts(&t, "id"), texts(&t, "sequence")),
        (vec!["a".into(), "b".into()], vec!["ACGTT".into(), "acgt".into()])
    );
    assert_eq!((texts(&t, "label"), numbers(&t, "x")), (vec!["EI".into(), "IE".into()], vec![1.0, 2.0]));
    assert_eq!(numbers(&read(">a 1\nA\n>b 0\nC\n").unwrap(), "label"), [1.0, 0.0]);
    assert_eq!(read(">a\nA\n>b some words\nC\n").unwrap().names(), ["id", "sequence"]);
    for (text, part) in [
        ("ACG\n", "line 1, column 1: expected `>`"),
        (">a\n>b\nA\n", "line 2, column 1: the record before (line 1) has no sequence"),
        (">a\nAC7\n", "line 2, column 3: `7` is no letter"),
        (">a\nA\n>b\n", "line 3: the last record"),
        ("> \nA\n", "line 1, column 2: a header needs a name"),
        ("", "holds no sequence"),
    ] {
        let e = message(read(text));
        assert!(e.contains(part), "{text:?}: {e}");
    }
}

#[test]
fn arff_has_kinds_missing_values_and_sparse_rows() {
    let text = "% c\n@RELATION 'a b'\n@attribute 'first one' numeric\n@ATTRIBUTE kind {red, 'dark blue'}\n\
                @attribute note string\n@data\n1.5, red, \"x, y\"\n?,'dark blue',?\n{0 2, 1 'dark blue'}\n{}\n";
    let t = arff::parse(text.as_bytes(), here()).unwrap();
    let first = numbers(&t, "first one");
    assert!(first[1].is_nan() && first[0] == 1.5 && first[2..] == [2.0, 0.0]);
    assert_eq!(texts(&t, "kind"), ["red", "dark blue", "dark blue", "red"]);
    assert_eq!(texts(&t, "note"), ["x, y", "?", "0", "0"]);
    for (text, part) in [
        ("@attribute a numeric\n@data\n1,2\n", "line 3, column 1: has 2 values where 1 attributes"),
        ("@attribute a numeric\n@data\nx\n", "line 3, column 1: attribute `a` is numeric, found `x`"),
        ("@attribute a {u,v}\n@data\nw\n", "`w` is no value of attribute `a`"),
        ("@attribute a blob\n", "line 1, column 14: expected numeric"),
        ("@attribute a {u\n", "line 1, column 16: expected `,` or `}`"),
        ("@attribute a numeric\n@data\n{7 1}\n", "line 3, column 2: expected an attribute number from 0 to 0"),
        ("@attribute 'a numeric\n", "line 1, column 12: opens a quote"),
        ("hello\n", "line 1, column 1: expected @relation"),
        ("@relation r\n", "no line @data"),
        ("@data\n1\n", "@data comes before any @attribute"),
    ] {
        let e = message(arff::parse(text.as_bytes(), here()));
        assert!(e.contains(part), "{text:?}: {e}");
    }
}

fn npy(descr: &str, fortran: bool, shape: &str, body: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(body);
    bytes
}

fn only(bytes: &[u8], extension: &str) -> Result<Array> {
    array::parse(bytes, extension, here()).map(|mut all| all.swap_remove(0).1)
}

#[test]
fn arrays_of_every_kind_come_back() {
    let floats: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let a = only(&npy("<f8", false, "(2, 3)", &floats), "npy").unwrap();
    assert_eq!((a.shape, a.values), (vec![2, 3], Values::Numbers(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    let a = only(&npy("<f8", true, "(2, 3)", &floats), "npy").unwrap();
    assert_eq!(a.values, Values::Numbers(vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    let a = only(&npy(">i2", false, "(2,)", &[0, 7, 0xff, 0xff]), "npy").unwrap();
    assert_eq!(a.values, Values::Numbers(vec![7.0, -1.0]));
    let a = only(&npy("|b1", false, "()", &[1]), "npy").unwrap();
    assert_eq!((a.shape, a.values), (vec![], Values::Numbers(vec![1.0])));
    let wide: Vec<u8> = "ab\0é\0\0".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    assert_eq!(
        only(&npy("<U3", false, "(2,)", &wide), "npy").unwrap().values,
        Values::Texts(vec!["ab".into(), "é".into()])
    );
    assert_eq!(
        only(&npy("|S2", false, "(2,)", b"ab c"), "npy").unwrap().values,
        Values::Texts(vec!["ab".into(), " c".into()])
    );
    for (bytes, part) in [
        (npy("<f8", false, "(2, 3)", &floats[..40]), "ends 6 elements early, of 6"),
        (npy("<f8", false, "(99999, 3)", &floats), "ends 299997 elements early"),
        (npy("<f8", false, "(99999999999, 3)", &floats), "more than half the machine's memory"),
        (npy("<f8", false, "(99999999999, 99999999999)", &floats), "too large"),
        (npy("|O", false, "(1,)", &[]), "Python objects"),
        (npy("<c16", false, "(1,)", &[]), "`<c16`"),
        (b"PK".to_vec(), "shorter than a header"),
        (b"not an array".to_vec(), "does not start with"),
    ] {
        let e = message(only(&bytes, "npy"));
        assert!(e.contains(part), "{e}");
    }

    let stack = Array { shape: vec![2, 2, 1], values: Values::Numbers(vec![1.0, 0.5, 0.5, 1.0]) };
    let names = Array { shape: vec![2], values: Values::Texts(vec!["rbf(1) on \"é\"".into(), "b".into()]) };
    let write = || {
        let mut out = Cursor::new(Vec::new());
        array::write_npz(&mut out, [("grams", &stack), ("names", &names)]).unwrap();
        out.into_inner()
    };
    let bytes = write();
    assert_eq!(bytes, write());
    let all = array::parse(&bytes, "npz", here()).unwrap();
    assert_eq!(all, [("grams".to_string(), stack), ("names".to_string(), names)]);
    assert!(message(array::parse(b"PK nothing", "npz", here())).contains("npz"));
}

/// A variable of a mat file: array flags, shape, name, numbers.
fn mat_variable(name: &str, class: u8, shape: [i32; 2], kind: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |kind: u32, body: &[u8]| {
        out.extend(kind.to_le_bytes());
        out.extend((body.len() as u32).to_le_bytes());
        out.extend(body);
        out.resize(out.len().next_multiple_of(8), 0);
    };
    put(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    put(5, &shape.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>());
    put(1, name.as_bytes());
    put(kind, body);
    let mut whole = 14u32.to_le_bytes().to_vec();
    whole.extend((out.len() as u32).to_le_bytes());
    whole.extend(out);
    whole
}

fn mat(variables: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"MATLAB 5.0 MAT-file".to_vec();
    out.resize(124, b' ');
    out.extend([0, 1, b'I', b'M']);
    variables.iter().for_each(|v| out.extend(v));
    out
}

#[test]
fn mat_files_of_version_5() {
    let doubles: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let bytes = mat(&[
        mat_variable("x", 6, [2, 3], 9, &doubles),
        mat_variable("cell", 1, [1, 1], 9, &doubles[..8]),
        mat_variable("y", 6, [2, 1], 2, &[7, 9]),
        mat_variable("names", 4, [2, 2], 4, &[b'a', 0, b'c', 0, b'b', 0, b' ', 0]),
    ]);
    let all = array::parse(&bytes, "mat", here()).unwrap();
    assert_eq!(all.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["x", "y", "names"]);
    assert_eq!(all[0].1.values, Values::Numbers(vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    assert_eq!(all[1].1.values, Values::Numbers(vec![7.0, 9.0]));
    assert_eq!(all[2].1.values, Values::Texts(vec!["ab".into(), "c".into()]));
    assert!(message(array::parse(&bytes[..300], "mat", here())).contains("ends inside a variable"));
    assert!(message(array::parse(b"MATLAB 7.3 MAT-file", "mat", here())).contains("shorter than its header"));
    let mut newer = b"MATLAB 7.3 MAT-file".to_vec();
    newer.resize(600, 0);
    assert!(message(array::parse(&newer, "mat", here())).contains("save it with -v7"));
}

/// Random bytes, and good files with a few bytes changed, cut or repeated: an answer or an error, never a panic, and no time or memory beyond
/// what the bytes are worth.
#[test]
fn no_bytes_make_a_reader_panic() {
    let doubles: Vec<u8> = (0..6).flat_map(|v| f64::from(v).to_le_bytes()).collect();
    let mut archive = Cursor::new(Vec::new());
    let array = Array { shape: vec![3, 2], values: Values::Numbers(vec![0.5; 6]) };
    array::write_npz(&mut archive, [("a", &array), ("b", &array)]).unwrap();
    let good: Vec<(&str, Vec<u8>)> = vec![
        ("libsvm", b"+1 1:0.5 3:-2e1 # c\n-1 qid:4 2:1 4:7\na 5:1\n".to_vec()),
        ("fasta", b">a label=EI x=1\nACG\nTT\n>b x=2 label=IE\nacgt\n".to_vec()),
        ("arff", b"@relation r\n@attribute a numeric\n@attribute b {u,'v w'}\n@data\n1,u\n?,'v w'\n{1 u}\n".to_vec()),
        ("npy", npy("<f8", false, "(3, 2)", &doubles)),
        ("npy", npy("<U1", true, "(3, 2)", &doubles[..24])),
        ("npz", archive.into_inner()),
        ("mat", mat(&[mat_variable("x", 6, [2, 3], 9, &doubles), mat_variable("n", 4, [1, 2], 4, b"a\0b\0")])),
        ("csv", b"a,b,\"c d\"\n1,2,x\n3,,\"y \"\"z\"\"\"\n".to_vec()),
    ];
    let read = |format: &str, bytes: &[u8]| match format {
        "libsvm" => libsvm::parse(bytes, None, here()).is_ok(),
        "fasta" => fasta::parse(bytes, here()).is_ok(),
        "arff" => arff::parse(bytes, here()).is_ok(),
        "csv" => Table::parse(bytes, b',', here()).is_ok(),
        binary => array::parse(bytes, binary, here()).is_ok(),
    };
    let mut rng = Rng::new(11);
    for (format, seed) in &good {
        assert!(read(format, seed), "{format}");
        let (mut kept, mut refused) = (0, 0);
        for round in 0..4000 {
            let mut bytes = seed.clone();
            if round % 10 == 0 {
                bytes = (0..rng.below(200)).map(|_| rng.below(256) as u8).collect();
            }
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len() + 1);
                match rng.below(5) {
                    0 if at < bytes.len() => drop(bytes.remove(at)),
                    1 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
                    2 if at < bytes.len() => bytes[at] = b" \n,:1{}'\"?>@\x00\xff"[rng.below(14)],
                    3 => bytes.truncate(at),
                    _ => bytes.insert(at, rng.below(256) as u8),
                }
            }
            if read(format, &bytes) { kept += 1 } else { refused += 1 }
        }
        assert!(refused > 100, "{format}: {kept} read, {refused} refused");
    }
}

#[test]
fn files_are_known_by_their_extension_or_their_first_bytes() {
    let at = folder("known");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(at.join(name), bytes).unwrap();
        data::read(&at.join(name))
    };
    assert_eq!(write("a.csv", b"a,b\n1,2\n").unwrap().names(), ["a", "b"]);
    assert!(write("a9a", b"-1 3:1 11:1\n+1 2:1\n").unwrap().default_target().is_some());
    assert_eq!(write("s", b">a\nACGT\n").unwrap().names(), ["id", "sequence"]);
    assert_eq!(write("m.npy", &npy("|u1", false, "(2, 2)", &[1, 2, 3, 4])).unwrap().names(), ["x1", "x2"]);
    assert!(message(write("t.parquet", b"PAR1")).contains("Parquet is not read"));
    assert!(message(data::read(&at.join("none.csv"))).contains("none.csv"));
    // Arrays of one archive are views; one-dimensional ones are columns.
    let array = |shape: Vec<usize>, v: Vec<f64>| Array { shape, values: Values::Numbers(v) };
    let (u, v, y) =
        (array(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]), array(vec![2, 3], vec![0.0; 6]), array(vec![2], vec![0.0, 1.0]));
    let mut file = std::fs::File::create(at.join("views.npz")).unwrap();
    array::write_npz(&mut file, [("u", &u), ("v", &v), ("y", &y)]).unwrap();
    let data = data::read(&at.join("views.npz")).unwrap().dataset(&["y"], None).unwrap();
    assert_eq!(data.columns(), ["u.1", "u.2", "v.1", "v.2", "v.3"]);
    assert_eq!(data.views(), [View { name: "u".into(), columns: 0..2 }, View { name: "v".into(), columns: 2..5 }]);
}

#[test]
fn compressed_files_are_seen_through() {
    let at = folder("compressed");
    let text = b"a,b\n1,2\n3,4\n";
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, text).unwrap();
    let gz = gz.finish().unwrap();
    let zst = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
    // Members one after another, as `cat a.gz b.gz` makes them, are one file.
    let twice = [gz.clone(), gz.clone()].concat();
    for (name, bytes, rows) in [("a.csv.gz", &gz, 2), ("a.csv.zst", &zst, 2), ("plain.csv", &gz, 2)] {
        std::fs::write(at.join(name), bytes).unwrap();
        assert_eq!(data::read(&at.join(name)).unwrap().n_rows(), rows, "{name}");
    }
    std::fs::write(at.join("twice.csv.gz"), twice).unwrap();
    assert_eq!(data::read(&at.join("twice.csv.gz")).unwrap().n_rows(), 5);
    for (name, bytes) in [("cut.csv.gz", &gz[..gz.len() - 9]), ("cut.csv.zst", &zst[..zst.len() - 4])] {
        std::fs::write(at.join(name), bytes).unwrap();
        assert!(message(data::read(&at.join(name))).contains(name));
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
    assert_eq!(table.kernels(), Some("rbf(1), linear on view(left); linear on view(\"right one\"); linear"));
    assert_eq!(table.default_target(), Some("y"));
    assert_eq!((numbers(&table, "left.u"), numbers(&table, "left.v")), (vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]));
    assert!(table.notes()[0].contains("view `left`: 1 rows"), "{:?}", table.notes());
    let data = table.dataset(&["y"], None).unwrap();
    assert_eq!(data.columns(), ["left.u", "left.v", "right one.w"]);
    assert_eq!(data.rows().absent(&[2]), Some(vec![false, true, false]));
    let e = message(data.clone().with_missing(Missing::Refuse));
    assert!(e.contains("view `right one`: 1 of 3 rows have nothing in it, the first is row 2"), "{e}");
    assert!(data.with_missing(Missing::Mean).is_ok());
    let table = table.select_rows(&[2, 0]);
    assert!(table.dataset(&["y"], None).unwrap().with_missing(Missing::Refuse).is_ok());

    // By row, dense beside sparse.
    let text = "target = \"y\"\n[[view]]\nname = \"l\"\nfile = \"labels.csv\"\ncolumns = []\n[[view]]\nname = \"r\"\nfile = \"right.svm\"\n";
    assert!(message(read(text)).contains("view `l` has no columns left"));
    let table = read(&text.replace("[[view]]\nname = \"l\"", "[labels]").replace("columns = []\n", "")).unwrap();
    let data = table.dataset(&["y", "id"], None).unwrap();
    assert_eq!((data.columns(), data.len()), (&["r.x1".to_string(), "r.x2".into()][..], 3));
    assert_eq!(table.target("y", TaskHint::Auto).unwrap().len(), 3);

    for (text, part) in [
        ("target = 3\n", "line 1, column 10"),
        ("[[view]]\nname = \"v\"\nfile = \"right.svm\"\nkernel = \"x\"\n", "line 4, column 1: unknown field `kernel`"),
        ("target = \"y\"\n", "names no view"),
        ("[[view]]\nname = \"v\"\nfile = \"nowhere.csv\"\n", "nowhere.csv"),
        (
            "[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n",
            "has 4 rows where 3 were expected",
        ),
        (
            "id = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"right.svm\"\n",
            "`v` has no id column",
        ),
        ("id = \"key\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n", "no file has the id column `key`"),
        (
            "[[view]]\nname = \"v\"\nfile = \"left.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n",
            "two views have one name",
        ),
        ("[[view]]\nname = \"v\"\nfile = \"left.csv\"\narray = \"a\"\n", "has no named arrays"),
    ] {
        let e = message(read(text));
        assert!(e.contains(part), "{text}: {e}");
    }
    write("left.csv", "id,u\na,1\na,2\n");
    let twice = "id = \"id\"\n[labels]\nfile = \"labels.csv\"\n[[view]]\nname = \"v\"\nfile = \"left.csv\"\n";
    assert!(message(read(twice)).contains("two rows with id `a`"));
}

fn spec(kernels: &str) -> TrainSpec {
    TrainSpec { kernels: kernels.into(), tol: 1e-6, c: 2.0, ..TrainSpec::default() }
}

/// Every kernel on sparse columns is the kernel on the same columns written out, in every normalisation, through the file, and for new rows
/// stored either way.
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
    for normalize in [Normalize::Multiplicative, Normalize::Trace, Normalize::Center, Normalize::None] {
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
        close(&of_dense.decision(&dense(&new)).unwrap(), &of_sparse.decision(&sparse(&new)).unwrap(), 1e-5);
        let again = reloaded(&of_sparse);
        assert_eq!(again, of_sparse);
        let here = again.decision(&sparse(&new)).unwrap();
        close(&here, &again.decision(&dense(&new)).unwrap(), 1e-12);
        close(&of_dense.decision(&sparse(&new)).unwrap(), &of_dense.decision(&dense(&new)).unwrap(), 1e-12);
    }
    // Sparse columns are never standardised.
    let model = train(&sparse(&x), &y, None, &spec("rbf(1)"), &mut Silent).unwrap();
    let plain = train(&dense(&x), &y, None, &TrainSpec { standardize: false, ..spec("rbf(1)") }, &mut Silent).unwrap();
    close(&model.decision(&dense(&new)).unwrap(), &plain.decision(&dense(&new)).unwrap(), 1e-6);
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
    let views = vec![View { name: "x".into(), columns: 0..d }, View { name: "k".into(), columns: d..d + n }];
    Dataset::new(all, names).unwrap().with_views(views).unwrap().with_gram("k").unwrap()
}

#[test]
fn a_ready_made_gram_matrix_is_the_kernel_it_came_from() {
    let (x, new) = (normal(50, 2, 1), normal(20, 2, 2));
    let y = signs(&x);
    let f = Function::Rbf { width: 0.8 };
    let plain = |x: &Matrix| Dataset::new(x.clone(), vec![]).unwrap();
    for method in [spec("").method, MethodSpec::Single { folds: 3, seed: 1 }] {
        let request = |kernels: &str| TrainSpec { standardize: false, method: method.clone(), ..spec(kernels) };
        let computed = train(&plain(&x), &y, None, &request("rbf(0.8); linear; rbf(3) on each"), &mut Silent).unwrap();
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
        close(&computed.decision(&plain(&new)).unwrap(), &ready.decision(&with_gram(&new, &x, f)).unwrap(), 1e-6);
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
            &train(&plain(&x), &y, None, &request("rbf(0.8)"), &mut Silent).unwrap().decision(&plain(&new)).unwrap(),
            1e-6,
        );
    }
    // Folds, and rows of weight zero, take the part of the matrix that is theirs.
    let specs = |kernels: &str| [1.0, 10.0].map(|c| TrainSpec { standardize: false, c, ..spec(kernels) });
    let ours = grid_search(&with_gram(&x, &x, f), &y, &specs("precomputed on view(k)"), 5, 3).unwrap();
    assert_eq!(ours, grid_search(&plain(&x), &y, &specs("rbf(0.8)"), 5, 3).unwrap());
    let weight: Vec<f64> = (0..50).map(|i| f64::from(i % 3)).collect();
    let part = |kernels: &str, data: &Dataset| {
        train(data, &y, Some(&weight), &TrainSpec { standardize: false, ..spec(kernels) }, &mut Silent).unwrap()
    };
    close(
        &part("rbf(0.8)", &plain(&x)).decision(&plain(&new)).unwrap(),
        &part("precomputed(k)", &with_gram(&x, &x, f)).decision(&with_gram(&new, &x, f)).unwrap(),
        1e-6,
    );

    let e = |kernels: &str, data: &Dataset| message(train(data, &y, None, &spec(kernels), &mut Silent));
    let data = with_gram(&x, &x, f);
    assert!(e("linear on view(k)", &data).contains("holds kernel values; read them with `precomputed`"));
    assert!(e("precomputed on view(x)", &data).contains("holds features"));
    assert!(e("precomputed", &data).contains("does not say which view"));
    assert!(e("precomputed(z)", &data).contains("choose one of `k`"));
    assert!(e("precomputed(z)", &plain(&x)).contains("no kernel values"));
    let short = with_gram(&x, &x.select_rows(&(0..40).collect::<Vec<_>>()), f);
    assert!(e("precomputed(k)", &short).contains("a square matrix: 50 columns"), "{}", e("precomputed(k)", &short));
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
        assert_eq!(model.spec["indefinite"], serde_json::json!(indefinite));
        assert_eq!(reloaded(&model), model);
        // The same through a stack of matrices.
        let k = values(&x, &x);
        let stack = Stack { rows: 40, cols: 40, terms: 1, data: k.data() };
        let twin = train_precomputed(stack, &y, None, &request(indefinite), &mut Silent).unwrap();
        let k = values(&new, &x);
        let there = twin.decision_precomputed(Stack { rows: 15, cols: 40, terms: 1, data: k.data() }).unwrap();
        close(&model.decision(&view(&new)).unwrap(), &there, 1e-9);
        // Decision values of the training rows are those of the repaired matrix: dual and primal meet. (A shift knows its own rows only.)
        let machine = &model.machines[0];
        if indefinite != Indefinite::Shift {
            let decision = model.decision(&view(&x)).unwrap();
            let Target::Classes { labels, .. } = &y else { panic!() };
            let hinge: f64 = (0..40).map(|i| (1.0 - (2.0 * labels[i] as f64 - 1.0) * decision[(i, 0)]).max(0.0)).sum();
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
    let views = || vec![View { name: "u".into(), columns: 0..2 }, View { name: "v".into(), columns: 2..4 }];
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
                (true, Missing::Mean) => present.iter().map(|&j| (j, 1.0 / present.len() as f64)).collect(),
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
                    let (s, t) = (stand_in(absent.contains(&i), i), stand_in(absent.contains(&j), j));
                    stack[(i * n + j) * 2] = k_u[(i, j)];
                    stack[(i * n + j) * 2 + 1] = s
                        .iter()
                        .flat_map(|(p, a)| t.iter().map(move |(q, b)| (p, q, a * b)))
                        .map(|(&p, &q, w)| w * k_v[(p, q)])
                        .sum();
                }
            }
            let (nu, nv) =
                (Function::Linear.block(&new.select_cols(&[0, 1]), &left), f.block(&new.select_cols(&[2, 3]), &right));
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
                let twin =
                    train_precomputed(Stack { rows: n, cols: n, terms: 2, data: &stack }, &y, None, &spec, &mut Silent)
                        .unwrap();
                let there = twin.decision_precomputed(Stack { rows: 12, cols: n, terms: 2, data: &cross }).unwrap();
                let here = reloaded(&ours).decision(&data(&new, &new_absent)).unwrap();
                close(&here, &there, 1e-4);
            }
        }
    }
    // Refused by default, also for new rows; constants of standardisation come from the rows that are there.
    assert!(
        message(train(&data(&x, &absent), &y, None, &spec("linear"), &mut Silent)).contains("missing = zero or mean")
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
    close(&model(&x).decision(&data(&new, &[])).unwrap(), &model(&spoiled).decision(&data(&new, &[])).unwrap(), 1e-12);
}

/// A model with preprocessing is the model of columns preprocessed by hand, and needs the raw columns alone.
#[test]
fn preprocessing_is_recorded_and_done_again() {
    let (x, new) = (normal(40, 12, 21), normal(9, 12, 22));
    let y = signs(&x);
    let by_hand = |x: &Matrix| {
        let mut out = Matrix::zeros(x.rows(), 3 + 2);
        for i in 0..x.rows() {
            let thirds: Vec<f64> = x.row(i)[..6].chunks(2).map(|c| f64::midpoint(c[0], c[1])).collect();
            let mean = thirds.iter().sum::<f64>() / 3.0;
            let scale = (thirds.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
            (0..3).for_each(|j| out[(i, j)] = (thirds[j] - mean) / scale);
            (0..2).for_each(|j| out[(i, 3 + j)] = x[(i, 6 + j)] - 2.0 * x[(i, 7 + j)] + x[(i, 8 + j)]);
        }
        out
    };
    let views = |first: usize, second: usize| {
        vec![View { name: "a".into(), columns: 0..first }, View { name: "b".into(), columns: first..first + second }]
    };
    let raw = |x: &Matrix| Dataset::new(x.select_cols(&(0..10).collect::<Vec<_>>()), vec![]).unwrap();
    let done = |x: &Matrix| Dataset::new(by_hand(x), vec![]).unwrap();
    let bank = "rbf(auto) on view(a), view(b); linear on each";
    let squared = TrainSpec { loss: Some(LossName::Squared), method: MethodSpec::Uniform {}, ..spec(bank) };
    let steps =
        TrainSpec { preprocess: "average(2), snv on view(a); difference(2) on view(b)".into(), ..squared.clone() };
    let ours = train(&raw(&x).with_views(views(6, 4)).unwrap(), &y, None, &steps, &mut Silent).unwrap();
    let twin = train(&done(&x).with_views(views(3, 2)).unwrap(), &y, None, &squared, &mut Silent).unwrap();
    assert_eq!(ours.kernel_names()[..10], twin.kernel_names()[..10]);
    assert_eq!(
        ours.kernel_names()[10..],
        ["x1..x2", "x3..x4", "x5..x6", "\"d2(x7)\"", "\"d2(x8)\""].map(|n| format!("linear on {n}"))
    );
    let again = reloaded(&ours);
    assert_eq!(again, ours);
    close(&again.decision(&raw(&new)).unwrap(), &twin.decision(&done(&new)).unwrap(), 1e-9);
    assert!(mercer::methods::verify(&again, &raw(&x).with_views(views(6, 4)).unwrap(), &y, None).unwrap().agrees);
    // A view that is missing stays missing through its steps.
    let gap = |x: &Matrix, rows: &[usize]| raw(x).with_views(views(6, 4)).unwrap().with_absent("b", rows).unwrap();
    let imputing = TrainSpec { missing: Missing::Mean, ..steps };
    let model = train(&gap(&x, &[1, 5, 30]), &y, None, &imputing, &mut Silent).unwrap();
    let mut spoiled = new.clone();
    spoiled.row_mut(2)[6..].fill(1e5);
    close(&model.decision(&gap(&new, &[2])).unwrap(), &model.decision(&gap(&spoiled, &[2])).unwrap(), 1e-12);
}
