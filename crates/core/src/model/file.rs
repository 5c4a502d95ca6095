//! The model file: tensors and one JSON header, in the safetensors layout, with a checksum over
//! everything.
//!
//! ```text
//! 8 bytes   header length h, little endian
//! h bytes   JSON: {"__metadata__": {"format": "mercer", "version": "1", "crc32": "xxxxxxxx", "model": "<JSON>"},
//!           "<tensor>": {"dtype": "F64" | "U64" | "U8", "shape": […], "data_offsets": [from, to]}, …}
//! the rest  raw little-endian tensors
//! ```
//!
//! The checksum covers the whole file with its own eight digits set to zeros, so a truncated or
//! altered file is refused.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::{
    Certificate, FittedMachine, Input, Localized, Model, Prediction, Predictor, Rules,
    evaluate::Cache,
    predictor::{Decision, Term, TermBasis, TermHeader},
};
use crate::{
    Error, Result,
    data::{Rows, Sequences, Sparse, output, steps::Plan},
    gram::ApproxError,
    kernels::{Frequencies, KernelSpec, Law},
    linalg::Matrix,
    request::TrainSpec,
    trace::IterRecord,
};

mod tensors;

use tensors::{TensorHeader, Tensors, broken};

/// Version of the layout above; files of another version are refused.
const FORMAT_VERSION: &str = "1";
/// Stands in the checksum's place while the checksum is computed.
const NO_CHECKSUM: &str = "00000000";
const CHECKSUM_KEY: &str = "\"crc32\":\"";

#[derive(Serialize, Deserialize)]
struct Header {
    task: Prediction,
    input: Input,
    spec: serde_json::Value,
    machines: Vec<MachineHeader>,
    shared: Option<Certificate>,
    #[serde(default)]
    rules: Option<Rules>,
    columns: Vec<usize>,
    spherical: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sparse_start: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gram_columns: Vec<usize>,
    #[serde(default, skip_serializing_if = "Plan::is_empty")]
    plan: Plan,
    warnings: Vec<String>,
    n_samples: usize,
    seconds: f64,
    version: String,
    storage: (String, u64),
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approximation: Vec<ApproxError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    localized: Option<Localized>,
    /// Localized models: the predictor's functions; a machine's own terms are then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    functions: Vec<FunctionHeader>,
}

#[derive(Serialize, Deserialize)]
struct FunctionHeader {
    constant: f64,
    terms: Vec<TermHeader>,
}

#[derive(Serialize, Deserialize)]
struct MachineHeader {
    intercept: f64,
    constant: f64,
    certificate: Certificate,
    trace: Vec<IterRecord>,
    terms: Vec<TermHeader>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    format: String,
    version: String,
    crc32: String,
    model: String,
}

#[derive(Serialize, Deserialize)]
struct Index {
    #[serde(rename = "__metadata__")]
    metadata: Metadata,
    #[serde(flatten)]
    tensors: BTreeMap<String, TensorHeader>,
}

/// The tensor of a law's frequencies.
fn frequencies_of(law: Law) -> String {
    format!("frequencies.{}", Law::ALL[law as usize].1)
}

/// Stores the kept training rows, all but the letters of sequences, and the frequencies.
fn put_rows(p: &Predictor, tensors: &mut Tensors) {
    tensors.put_index("row_ids".into(), &p.row_ids);
    tensors.put(
        "rows".into(),
        "F64",
        vec![p.rows.len(), p.rows.numbers().cols()],
        p.rows.numbers().data().iter().map(|v| v.to_le_bytes()),
    );
    if let Some(sparse) = p.rows.sparse() {
        let (starts, columns, values) = sparse.parts();
        tensors.put_index("sparse_starts".into(), starts);
        tensors.put_index(
            "sparse_columns".into(),
            &columns.iter().map(|&c| c as usize).collect::<Vec<_>>(),
        );
        tensors.put_f64("sparse_values".into(), values);
    }
    for Frequencies { law, draws } in &p.frequencies {
        let shape = vec![draws.rows(), draws.cols()];
        tensors.put(
            frequencies_of(*law),
            "F64",
            shape,
            draws.data().iter().map(|v| v.to_le_bytes()),
        );
    }
    for (k, sequences) in p.rows.sequences().iter().enumerate() {
        tensors.put_index(format!("sequence_ends.{k}"), sequences.parts().1);
    }
}

impl Model {
    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::default();
        let p = &self.predictor;
        put_rows(p, &mut tensors);
        let functions = self.put_functions(&mut tensors);
        let machines = self.put_machines(&mut tensors);
        // Texts come last: they alone do not end on an 8-byte border.
        for (k, sequences) in p.rows.sequences().iter().enumerate() {
            tensors.put_text(format!("sequences.{k}"), sequences.parts().0);
        }
        let unwritable =
            |e: serde_json::Error| Error::numerical("writing the model", e.to_string());
        let header = Header {
            task: self.task.clone(),
            input: self.input.clone(),
            spec: serde_json::to_value(&self.request).map_err(unwritable)?,
            machines,
            shared: self.shared,
            rules: self.rules.clone(),
            columns: p.columns.clone(),
            spherical: p.spherical,
            sparse_start: Some(p.sparse_start).filter(|s| *s != usize::MAX),
            gram_columns: p.gram_columns.clone(),
            plan: p.plan.clone(),
            warnings: self.warnings.clone(),
            n_samples: self.n_samples,
            seconds: self.seconds,
            version: self.version.clone(),
            storage: self.storage.clone(),
            approximation: self.approximation.clone(),
            localized: self.localized.clone(),
            functions,
        };
        frame(&serde_json::to_string(&header).map_err(unwritable)?, tensors)
    }

    /// Stores the terms of a localized model's functions; other models have none.
    fn put_functions(&self, tensors: &mut Tensors) -> Vec<FunctionHeader> {
        let functions =
            if self.localized.is_some() { self.predictor.decisions.as_slice() } else { &[] };
        let functions = functions.iter().enumerate().map(|(k, f)| FunctionHeader {
            constant: f.constant,
            terms: tensors.put_terms(
                &f.terms,
                &format!("function_rows.{k}"),
                &format!("function_coef.{k}"),
            ),
        });
        functions.collect()
    }

    /// Stores weights, support and terms of every machine.
    fn put_machines(&self, tensors: &mut Tensors) -> Vec<MachineHeader> {
        let none = Decision::default();
        let decisions = if self.localized.is_some() { &[][..] } else { &self.predictor.decisions };
        let mut machines = Vec::new();
        for (k, m) in self.machines.iter().enumerate() {
            let decision = decisions.get(k).unwrap_or(&none);
            tensors.put_f64(format!("weights.{k}"), &m.weights);
            tensors.put_index(format!("support.{k}"), &m.support);
            tensors.put_f64(format!("dual_coef.{k}"), &m.dual_coef);
            let terms = tensors.put_terms(
                &decision.terms,
                &format!("term_rows.{k}"),
                &format!("term_coef.{k}"),
            );
            machines.push(MachineHeader {
                intercept: m.intercept,
                constant: decision.constant,
                certificate: m.certificate,
                trace: m.trace.clone(),
                terms,
            });
        }
        machines
    }

    /// Reads what [`Model::to_bytes`] wrote; refuses anything altered or truncated.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (length, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| broken("it is shorter than its first field"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if !rest.starts_with(b"{\"__metadata__\":") {
            return Err(Error::data(
                "model file",
                "it does not begin as a model of mercer does",
                "give a file that `mercer fit` or `save` has written",
            ));
        }
        let json =
            rest.get(..length).ok_or_else(|| broken("it ends inside its header (truncated?)"))?;
        let json = std::str::from_utf8(json).map_err(|_| broken("its header is not text"))?;
        let index: Index = serde_json::from_str(json)
            .map_err(|e| broken(&format!("its header cannot be read ({e})")))?;
        if index.metadata.format != "mercer" {
            return Err(broken("its header does not say `mercer`"));
        }
        if index.metadata.version != FORMAT_VERSION {
            return Err(Error::data(
                "model file",
                format!(
                    "its format is version {}, this program reads {FORMAT_VERSION}",
                    index.metadata.version
                ),
                "update mercer, or save the model with this version",
            ));
        }
        verify_checksum(bytes, json, &index.metadata.crc32)?;
        let header: Header = serde_json::from_str(&index.metadata.model)
            .map_err(|e| broken(&format!("its description cannot be read ({e})")))?;
        let tensors = Tensors { headers: index.tensors, bytes: rest[length..].to_vec() };
        assemble(header, &tensors)
    }

    /// Writes the file: a reader sees the old model or the whole new one (see [`output`]).
    pub fn save(&self, path: &Path) -> Result<()> {
        output::write(path, &self.to_bytes()?)
    }

    /// Reads a model file.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)
            .map_err(|e| Error::file(path, format!("the model could not be read ({e})")))?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e))
    }
}

/// The bytes of a file: the index with the model's description, the tensors, and the checksum over
/// both.
fn frame(model: &str, tensors: Tensors) -> Result<Vec<u8>> {
    let unwritable = |e: serde_json::Error| Error::numerical("writing the model", e.to_string());
    let metadata = Metadata {
        format: "mercer".into(),
        version: FORMAT_VERSION.into(),
        crc32: NO_CHECKSUM.into(),
        model: model.into(),
    };
    let mut json =
        serde_json::to_string(&Index { metadata, tensors: tensors.headers }).map_err(unwritable)?;
    // Tensors start on an 8-byte border.
    json.push_str(&" ".repeat(json.len().next_multiple_of(8) - json.len()));
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(json.as_bytes());
    bytes.extend_from_slice(&tensors.bytes);
    let digits = format!("{:08x}", crc32fast::hash(&bytes));
    let at = checksum_position(&json)
        .ok_or_else(|| Error::numerical("writing the model", "no place for the checksum"))?;
    bytes[8 + at..8 + at + digits.len()].copy_from_slice(digits.as_bytes());
    Ok(bytes)
}

fn checksum_position(json: &str) -> Option<usize> {
    // The first occurrence is the field itself: metadata come first and `model` comes after it.
    json.find(CHECKSUM_KEY).map(|at| at + CHECKSUM_KEY.len())
}

fn verify_checksum(bytes: &[u8], json: &str, stated: &str) -> Result<()> {
    let at = checksum_position(json).ok_or_else(|| broken("it has no checksum"))? + 8;
    let mut hash = crc32fast::Hasher::new();
    hash.update(&bytes[..at]);
    hash.update(NO_CHECKSUM.as_bytes());
    hash.update(bytes.get(at + NO_CHECKSUM.len()..).unwrap_or_default());
    if format!("{:08x}", hash.finalize()) == stated {
        return Ok(());
    }
    Err(broken("its checksum does not match its contents (truncated or altered)"))
}

/// The model of a file; every number that could point outside it is checked.
fn assemble(mut header: Header, tensors: &Tensors) -> Result<Model> {
    let n_kernels = check_counts(&header)?;
    let row_ids = tensors.take_index("row_ids", usize::MAX)?;
    let rows = rows(&header, &row_ids, tensors)?;
    check_regions(&header, n_kernels)?;
    let mut decisions = functions(&header, n_kernels, row_ids.len(), tensors)?;
    let (machines, own) = machines(&mut header, n_kernels, row_ids.len(), tensors)?;
    if header.localized.is_none() {
        decisions.extend(own);
    }
    if header.rules.as_ref().is_some_and(|r| r.count() != machines.len()) {
        return Err(broken("its rules do not match its machines"));
    }
    let frequencies = frequencies(header.columns.len(), tensors)?;
    let predictor = Predictor {
        columns: header.columns,
        row_ids,
        rows,
        spherical: header.spherical,
        sparse_start: header.sparse_start.unwrap_or(usize::MAX),
        gram_columns: header.gram_columns,
        frequencies,
        plan: header.plan,
        decisions,
        cache: Cache::default(),
    };
    if let Input::Table { kernels, .. } = &header.input {
        let own = header.localized.as_ref().map_or(&[][..], |l| &l.kernels);
        if !predictor.has_frequencies(&[kernels, own].concat()) {
            return Err(broken("a kernel's frequencies are missing"));
        }
    }
    let (request, unread) = request(header.spec, &header.task);
    Ok(Model {
        task: header.task,
        input: header.input,
        request,
        machines,
        shared: header.shared,
        rules: header.rules,
        predictor,
        localized: header.localized,
        warnings: header.warnings.into_iter().chain(unread).collect(),
        n_samples: header.n_samples,
        seconds: header.seconds,
        version: header.version,
        storage: header.storage,
        approximation: header.approximation,
    })
}

/// The request as a typed value, and what of it this version cannot read, if anything. Predictions
/// do not need the request, so that a field nobody knows here makes no model useless: it is left at
/// its default.
fn request(stated: serde_json::Value, task: &Prediction) -> (TrainSpec, Option<String>) {
    let stated = in_stated_units(stated, task);
    if let Ok(request) = serde_json::from_value(stated.clone()) {
        return (request, None);
    }
    let mut request = TrainSpec::default();
    let mut unread = Vec::new();
    for (name, value) in stated.as_object().into_iter().flatten() {
        // One field beside those read so far.
        let mut fields = serde_json::to_value(&request).unwrap_or_default();
        fields[name] = value.clone();
        match serde_json::from_value(fields) {
            Ok(with) => request = with,
            Err(_) => unread.push(format!("`{name}`")),
        }
    }
    let told = format!(
        "this version of mercer cannot read a part of the request in the model file ({}) and takes the default there; predictions do \
         not depend on it",
        unread.join(", ")
    );
    (request, Some(told))
}

/// The number of kernels of the table; refuses a header whose columns, classes, machines and rules
/// do not fit together.
fn check_counts(header: &Header) -> Result<usize> {
    let (n_kernels, n_columns) = match &header.input {
        Input::Table { columns, kernels, .. } => {
            (kernels.len(), header.plan.columns(columns)?.len())
        }
        Input::Precomputed { kernels, .. } => (kernels.len(), 0),
    };
    if header.columns.iter().chain(&header.gram_columns).any(|&c| c >= n_columns) {
        return Err(broken("it names columns it does not have"));
    }
    let wanted = match &header.task {
        Prediction::Classification { classes, .. } if classes.len() < 2 => {
            return Err(broken("it has less than two classes"));
        }
        Prediction::Classification { classes, scheme } => scheme.machines(classes.len()),
        Prediction::Regression => 1,
    };
    if header.rules.as_ref().map_or(header.machines.len(), |r| r.machines.len()) != wanted {
        return Err(broken("its machines are not as many as its classes need"));
    }
    if header.rules.is_some() && header.localized.is_some() {
        return Err(broken("it has both rules and regions"));
    }
    Ok(n_kernels)
}

fn check_regions(header: &Header, n_kernels: usize) -> Result<()> {
    let n_machines = header.machines.len();
    let fits = |l: &Localized| {
        l.is_consistent(n_machines, n_kernels) && l.functions(n_machines) == header.functions.len()
    };
    if header.localized.as_ref().is_some_and(|l| !fits(l)) {
        return Err(broken("its regions do not fit its machines"));
    }
    Ok(())
}

/// The functions of a localized model, whose own kernels are counted after those of the table.
fn functions(
    header: &Header,
    n_kernels: usize,
    n_rows: usize,
    tensors: &Tensors,
) -> Result<Vec<Decision>> {
    let known = n_kernels + header.localized.as_ref().map_or(0, |l| l.kernels.len());
    let read = |(k, f): (usize, &FunctionHeader)| {
        let at = tensors.take_index(&format!("function_rows.{k}"), usize::MAX)?;
        let coef = tensors.take_f64(&format!("function_coef.{k}"))?;
        let terms = terms(&f.terms, &at, &coef, (known, n_rows, header.gram_columns.len()))?;
        Ok(Decision { constant: f.constant, terms })
    };
    header.functions.iter().enumerate().map(read).collect()
}

/// The machines, and the decision function of each.
fn machines(
    header: &mut Header,
    n_kernels: usize,
    n_rows: usize,
    tensors: &Tensors,
) -> Result<(Vec<FittedMachine>, Vec<Decision>)> {
    let (mut machines, mut decisions) = (Vec::new(), Vec::new());
    for (k, m) in std::mem::take(&mut header.machines).into_iter().enumerate() {
        let at = tensors.take_index(&format!("term_rows.{k}"), usize::MAX)?;
        let coef = tensors.take_f64(&format!("term_coef.{k}"))?;
        let terms = terms(&m.terms, &at, &coef, (n_kernels, n_rows, header.gram_columns.len()))?;
        decisions.push(Decision { constant: m.constant, terms });
        let weights = tensors.take_f64(&format!("weights.{k}"))?;
        let weight_rows = header.localized.as_ref().map_or(1, |l| l.weight_rows(k));
        if weights.len() != n_kernels * weight_rows {
            return Err(broken("weights and kernels differ in number"));
        }
        machines.push(FittedMachine {
            weights,
            support: tensors.take_index(&format!("support.{k}"), usize::MAX)?,
            dual_coef: tensors.take_f64(&format!("dual_coef.{k}"))?,
            intercept: m.intercept,
            certificate: m.certificate,
            trace: m.trace,
        });
    }
    Ok((machines, decisions))
}

/// The frequencies of the laws that the file has tensors for.
fn frequencies(n_columns: usize, tensors: &Tensors) -> Result<Vec<Frequencies>> {
    let of_law = |&(law, _): &(Law, &str)| {
        let name = frequencies_of(law);
        let count = *tensors.headers.get(&name)?.shape.last()?;
        let draws = tensors.take_f64(&name).and_then(|v| Matrix::new(n_columns, count, v));
        Some(draws.map(|draws| Frequencies { law, draws }))
    };
    Law::ALL.iter().filter_map(of_law).collect()
}

/// A request written before targets were scaled asks for the problem in the target's own units, and
/// has no word for it.
fn in_stated_units(mut spec: serde_json::Value, task: &Prediction) -> serde_json::Value {
    if let (Prediction::Regression, Some(fields)) =
        (task, spec.as_object_mut().filter(|f| f.contains_key("epsilon")))
    {
        fields.entry("scale_target").or_insert(false.into());
    }
    spec
}

/// The stored training rows; none for ready-made kernels.
fn rows(header: &Header, row_ids: &[usize], tensors: &Tensors) -> Result<Rows> {
    let Input::Table { kernels, columns, texts, .. } = &header.input else {
        return Ok(Rows::default());
    };
    let width = header.plan.columns(columns)?.len();
    let first_text =
        width.checked_sub(*texts).ok_or_else(|| broken("it has more texts than columns"))?;
    let wrong = |k: &KernelSpec| {
        let alone = !k.reads_text() || k.columns.len() == 1;
        !alone || k.columns.iter().any(|c| *c >= width || (*c >= first_text) != k.reads_text())
    };
    if kernels.iter().any(wrong) || !header.columns.is_sorted_by(|a, b| a < b) {
        return Err(broken("a kernel reads a column that it cannot read"));
    }
    let sequences = header.columns.iter().filter(|c| **c >= first_text).count();
    let first_sparse = header.sparse_start.unwrap_or(usize::MAX);
    let sparse = header.columns.iter().filter(|c| (first_sparse..first_text).contains(c)).count();
    let numbers = Matrix::new(
        row_ids.len(),
        header.columns.len() - sequences - sparse,
        tensors.take_f64("rows")?,
    )?;
    let read = |k: usize| {
        let text = tensors.take_text(&format!("sequences.{k}"))?;
        let ends = tensors.take_index(&format!("sequence_ends.{k}"), usize::MAX)?;
        Sequences::from_parts(text, ends)
            .filter(|s| s.len() == row_ids.len())
            .ok_or_else(|| broken("its sequences are not cut where they should be"))
    };
    let sequences = (0..sequences).map(read).collect::<Result<Vec<_>>>()?;
    // Where no numeric column is kept, the matrix has no columns and takes its rows from the
    // sequences.
    let rows = Rows::new(numbers, sequences)?;
    if sparse == 0 {
        return Ok(rows);
    }
    let columns =
        tensors.take_index("sparse_columns", sparse)?.into_iter().map(|c| c as u32).collect();
    let starts = tensors.take_index("sparse_starts", usize::MAX)?;
    if starts.len() != row_ids.len() + 1 {
        return Err(broken("its sparse rows are not as many as its rows"));
    }
    rows.with_sparse(Sparse::from_parts(
        sparse,
        starts,
        columns,
        tensors.take_f64("sparse_values")?,
    )?)
}

/// `limits` are the numbers of kernels, of stored rows and of Gram columns.
fn terms(
    headers: &[TermHeader],
    mut at: &[usize],
    mut coef: &[f64],
    (n_kernels, n_rows, n_columns): (usize, usize, usize),
) -> Result<Vec<Term>> {
    let mut out = Vec::new();
    for h in headers {
        let short = || broken("a kernel's coefficients are missing");
        let (own, rest) = coef.split_at_checked(h.len).ok_or_else(short)?;
        coef = rest;
        let basis = if h.monomials {
            TermBasis::Features { coef: own.to_vec() }
        } else {
            let (rows, rest) = at.split_at_checked(h.len).ok_or_else(short)?;
            at = rest;
            if rows.iter().any(|&i| i >= if h.columns { n_columns } else { n_rows }) {
                return Err(broken("a term points outside the model"));
            }
            let (at, coef) = (rows.to_vec(), own.to_vec());
            if h.columns {
                TermBasis::Columns { at, coef }
            } else {
                TermBasis::Samples { at, coef }
            }
        };
        if h.kernel >= n_kernels {
            return Err(broken("a term names a kernel that does not exist"));
        }
        out.push(Term { kernel: h.kernel, basis, absent: h.absent });
    }
    Ok(out)
}
