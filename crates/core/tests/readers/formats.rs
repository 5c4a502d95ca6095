//! Every format against good and broken bytes.

use std::io::Cursor;

use mercer::{
    Result,
    data::{
        self, Rng, Span, Table, View, arff,
        array::{self, Array, Values},
        fasta, jsonl, libsvm,
    },
};

use crate::{folder, here, message, numbers, texts};

#[test]
fn libsvm_keeps_entries_and_names_line_and_column_of_a_mistake() {
    let read = |text: &str| libsvm::parse(text.as_bytes(), None, here());
    let table = read("# first\n+1 1:0.5 3:-2e1 # last\n\n-1 qid:4 2:1 4:0\r\n").unwrap();
    assert_eq!(
        (table.n_rows(), table.default_target(), numbers(&table, "label")),
        (2, Some("label"), vec![1.0, -1.0])
    );
    let data = table.dataset(&["label"], None).unwrap();
    assert_eq!(data.columns(), ["x1", "x2", "x3", "x4"]);
    let sparse = data.rows().sparse().unwrap();
    assert_eq!(
        (sparse.entries(), sparse.to_dense().data()),
        (3, &[0.5, 0.0, -20.0, 0.0, 0.0, 1.0, 0.0, 0.0][..])
    );
    assert_eq!(texts(&read("a 1:1\n2 1:2\n").unwrap(), "label"), ["a", "2"]);
    assert!(read("1:1\n2:2\n").unwrap().default_target().is_none());
    for (text, part) in [
        ("1 1:1\n1 1:1 x 2:1\n", "t: line 2, column 7: expected column:value, found `x`"),
        ("1 1:1\n1 0:1\n", "line 2, column 3: columns count from 1"),
        ("1 3:1 3:2\n", "line 1, column 7: columns must ascend in a row, and 3 comes after 3"),
        ("1 3:nan\n", "line 1, column 5: expected a finite number, found `nan`"),
        ("1 a:1\n", "line 1, column 3: expected a column number, found `a`"),
        ("1 1:1\n2:3\n", "line 2, column 1: this row has no label"),
        ("1 1:1\n  2:3\n", "line 2, column 3: this row has no label"),
        ("1 1:1\n1 4000000000:1\n1 2:1\n", "line 2: column 4000000000 is far beyond"),
        ("1 99999999:1\n", "far beyond"),
        ("1\n2\n", "is this a LIBSVM file?"),
        ("\n# nothing\n", "no rows"),
    ] {
        let e = message(read(text));
        assert!(e.contains(part), "{text:?}: {e}");
    }
    // Some rows: nothing beyond the last is read, columns of the others count, places are
    // remembered.
    let some = |text: &str, first, last, step| {
        libsvm::parse(text.as_bytes(), Some(Span { first, last, step }), here())
    };
    assert_eq!(some("1 1:1\n1 1:2\nbroken here\n", 1, 2, 1).unwrap().n_rows(), 2);
    let third = some("1 1:1\n2 1:2\n\n3 4:2\n4 7:1\n5 2:1\n", 1, 9, 2).unwrap();
    assert_eq!(numbers(&third, "label"), [1.0, 3.0, 5.0]);
    let data = third.dataset(&["label"], None).unwrap();
    assert_eq!((data.columns().len(), data.places()), (7, &[0, 2, 4][..]));
    assert!(message(some("1 1:1\n", 5, 9, 1)).contains("within 1-1"));
}

#[test]
fn sparse_rows_stay_within_a_budget() {
    let path = folder("libsvm_budget").join("d.svm");
    let line = |i: usize| format!("1 {}:1 {}:2", i % 7 + 1, i % 5 + 8);
    std::fs::write(&path, (0..1000).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    // 12 bytes an entry, 8 a row.
    let need = 1000 * (2 * 12 + 8) + 8;
    assert_eq!(data::read_within(&path, None, Some(need)).unwrap().n_rows(), 1000);
    let e = message(data::read_within(&path, None, Some(need - 1)));
    assert!(
        e.contains("the part up to row 1000 needs 31.3 KiB") && e.contains("`--rows 1-100000`"),
        "{e}"
    );
    let some = Span { first: 1, last: 1000, step: 10 };
    assert_eq!(data::read_within(&path, Some(some), Some(need / 5)).unwrap().n_rows(), 100);
}

#[test]
fn fasta_reads_labels_of_headers() {
    let read = |text: &str| fasta::parse(text.as_bytes(), here());
    let t = read(">a label=EI x=1\nACG\nTT\n\n>b x=2 label=IE\n ac gt \n").unwrap();
    assert_eq!(
        (texts(&t, "id"), texts(&t, "sequence")),
        (vec!["a".into(), "b".into()], vec!["ACGTT".into(), "acgt".into()])
    );
    assert_eq!(
        (texts(&t, "label"), numbers(&t, "x")),
        (vec!["EI".into(), "IE".into()], vec![1.0, 2.0])
    );
    assert_eq!(numbers(&read(">a 1\nA\n>b 0\nC\n").unwrap(), "label"), [1.0, 0.0]);
    assert_eq!(read(">a\nA\n>b some words\nC\n").unwrap().names(), ["id", "sequence"]);
    for (text, part) in [
        ("ACG\n", "line 1, column 1: expected `>`"),
        (">a\n>b\nA\n", "line 2, column 1: the record before (line 1) has no sequence"),
        (">a\nAC7\n", "line 2, column 3: `7` is no letter"),
        (">a\n  AC7\n", "line 2, column 5: `7` is no letter"),
        (">a\nA\n>b\n", "line 3, column 1: the last record"),
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
        ("@attribute a numeric\n@data\n1,2\n", "line 3, column 3: has 2 values where 1 attributes"),
        (
            "@attribute a numeric\n@data\nx\n",
            "line 3, column 1: attribute `a` is numeric, found `x`",
        ),
        (
            "@attribute a numeric\n@attribute b real\n@data\n1, 2\n3, y\n",
            "line 5, column 4: attribute `b` is numeric, found `y`",
        ),
        (
            "@attribute a numeric\n@attribute b {u,v}\n@data\n1,w\n",
            "line 4, column 3: `w` is no value of attribute `b`",
        ),
        (
            "@attribute a numeric\n@attribute b real\n@data\n{0 1, 1 z}\n",
            "line 4, column 9: attribute `b` is numeric",
        ),
        (
            "@attribute a numeric\n@attribute b real\n@data\n1\n",
            "line 4, column 2: has 1 values where 2",
        ),
        (
            "@attribute a numeric\n@attribute a real\n",
            "line 2, column 12: two attributes are called `a`",
        ),
        ("@attribute a {u,v}\n@data\nw\n", "`w` is no value of attribute `a`"),
        ("@attribute a blob\n", "line 1, column 14: expected numeric"),
        ("@attribute a {u\n", "line 1, column 16: expected `,` or `}`"),
        (
            "@attribute a numeric\n@data\n{7 1}\n",
            "line 3, column 2: expected an attribute number from 0 to 0",
        ),
        ("@attribute 'a numeric\n", "line 1, column 12: opens a quote"),
        ("hello\n", "line 1, column 1: expected @relation"),
        ("@relation r\n", "no line @data"),
        ("@data\n1\n", "@data comes before any @attribute"),
    ] {
        let e = message(arff::parse(text.as_bytes(), here()));
        assert!(e.contains(part), "{text:?}: {e}");
    }
}

#[test]
fn json_lines_are_rows_and_their_keys_are_columns() {
    let text = "{\"age\": 41, \"city\": \"Rio\", \"well\": true}\n\n{\"city\": null, \"age\": -2.5e0, \"mixed\": 3}\n\
                {\"well\": false, \"mixed\": \"x\"}\n";
    let t = jsonl::parse(text.as_bytes(), here()).unwrap();
    assert_eq!(t.names(), ["age", "city", "well", "mixed"]);
    let (age, well) = (numbers(&t, "age"), numbers(&t, "well"));
    assert!(age[..2] == [41.0, -2.5] && age[2].is_nan());
    assert!((well[0], well[2]) == (1.0, 0.0) && well[1].is_nan());
    assert_eq!(
        (texts(&t, "city"), texts(&t, "mixed")),
        (["Rio", "", ""].map(String::from).to_vec(), ["", "3", "x"].map(String::from).to_vec())
    );
    for (text, line, part) in [
        (
            "{\"a\": 1}\n{\"a\": [1]}\n",
            2,
            "invalid type: sequence, expected a number, a text, true, false or null",
        ),
        ("{\"a\": 1}\n\n[1]\n", 3, "invalid type: sequence, expected an object, as in {\"age\""),
        ("{\"a\": 1, \"a\": 2}\n", 1, "the key `a` stands twice"),
        ("{\"a\": 1\n", 1, "EOF while parsing an object"),
        ("{\"a\": 1} 2\n", 1, "trailing characters"),
        ("{\"a\": 1e999}\n", 1, "number out of range"),
    ] {
        let e = message(jsonl::parse(text.as_bytes(), here()));
        assert!(
            e.contains(&format!("line {line}, column "))
                && e.contains(part)
                && !e.contains("at line"),
            "{text:?}: {e}"
        );
    }
    assert!(message(jsonl::parse(&b"\n"[..], here())).contains("holds no rows"));
    assert!(message(jsonl::parse(&b"{}\n"[..], here())).contains("no rows of data"));
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
    let floats: Vec<u8> =
        [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let a = only(&npy("<f8", false, "(2, 3)", &floats), "npy").unwrap();
    assert_eq!(
        (a.shape, a.values),
        (vec![2, 3], Values::Numbers(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    );
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
    let names = Array {
        shape: vec![2],
        values: Values::Texts(vec!["rbf(1) on \"é\"".into(), "b".into()]),
    };
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
    let doubles: Vec<u8> =
        [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
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
    assert!(
        message(array::parse(b"MATLAB 7.3 MAT-file", "mat", here()))
            .contains("shorter than its header")
    );
    let mut newer = b"MATLAB 7.3 MAT-file".to_vec();
    newer.resize(600, 0);
    assert!(message(array::parse(&newer, "mat", here())).contains("save it with -v7"));
}

/// Random bytes, and good files with a few bytes changed, cut or repeated: an answer or an error,
/// never a panic, and no time or memory beyond what the bytes are worth.
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
        ("jsonl", b"{\"a\": 1, \"b\": \"x\"}\n{\"b\": null, \"c\": true}\n".to_vec()),
        ("csv", b"a,b,\"c d\"\n1,2,x\n3,,\"y \"\"z\"\"\"\n".to_vec()),
    ];
    let read = |format: &str, bytes: &[u8]| match format {
        "libsvm" => libsvm::parse(bytes, None, here()).is_ok(),
        "fasta" => fasta::parse(bytes, here()).is_ok(),
        "arff" => arff::parse(bytes, here()).is_ok(),
        "jsonl" => jsonl::parse(bytes, here()).is_ok(),
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
    assert_eq!(
        write("m.npy", &npy("|u1", false, "(2, 2)", &[1, 2, 3, 4])).unwrap().names(),
        ["x1", "x2"]
    );
    for name in ["r.jsonl", "r.NDJSON", "rows"] {
        assert_eq!(write(name, b"{\"b\": 1, \"a\": 2}\n").unwrap().names(), ["b", "a"]);
    }
    for name in ["t.parquet", "t.bin"] {
        let told = message(write(name, b"PAR1"));
        assert!(
            told.contains("Parquet is not read by the program; convert")
                && told.contains("read_parquet"),
            "{told}"
        );
    }
    assert!(message(data::read(&at.join("none.csv"))).contains("none.csv"));
    // Arrays of one archive are views; one-dimensional ones are columns.
    let array = |shape: Vec<usize>, v: Vec<f64>| Array { shape, values: Values::Numbers(v) };
    let (u, v, y) = (
        array(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]),
        array(vec![2, 3], vec![0.0; 6]),
        array(vec![2], vec![0.0, 1.0]),
    );
    let mut file = std::fs::File::create(at.join("views.npz")).unwrap();
    array::write_npz(&mut file, [("u", &u), ("v", &v), ("y", &y)]).unwrap();
    let data = data::read(&at.join("views.npz")).unwrap().dataset(&["y"], None).unwrap();
    assert_eq!(data.columns(), ["u.1", "u.2", "v.1", "v.2", "v.3"]);
    assert_eq!(
        data.views(),
        [View { name: "u".into(), columns: 0..2 }, View { name: "v".into(), columns: 2..5 }]
    );
}

#[test]
fn compressed_files_are_seen_through() {
    let at = folder("compressed");
    let text = b"a,b\n1,2\n3,4\n";
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gz, text).unwrap();
    let gz = gz.finish().unwrap();
    let zst =
        ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
    // Members one after another, as `cat a.gz b.gz` makes them, are one file.
    let twice = [gz.clone(), gz.clone()].concat();
    for (name, bytes, rows) in [("a.csv.gz", &gz, 2), ("a.csv.zst", &zst, 2), ("plain.csv", &gz, 2)]
    {
        std::fs::write(at.join(name), bytes).unwrap();
        assert_eq!(data::read(&at.join(name)).unwrap().n_rows(), rows, "{name}");
    }
    std::fs::write(at.join("twice.csv.gz"), twice).unwrap();
    assert_eq!(data::read(&at.join("twice.csv.gz")).unwrap().n_rows(), 5);
    for (name, bytes) in
        [("cut.csv.gz", &gz[..gz.len() - 9]), ("cut.csv.zst", &zst[..zst.len() - 4])]
    {
        std::fs::write(at.join(name), bytes).unwrap();
        assert!(message(data::read(&at.join(name))).contains(name));
    }
}
