//! The model file: tensors and one JSON header, in the safetensors layout, with a checksum over everything.
//!
//! ```text
//! 8 bytes   header length h, little endian
//! h bytes   JSON: {"__metadata__": {"format": "mercer", "version": "1", "crc32": "xxxxxxxx", "model": "<JSON>"},
//!           "<tensor>": {"dtype": "F64" | "U64", "shape": […], "data_offsets": [from, to]}, …}
//! the rest  raw little-endian tensors
//! ```
//!
//! The checksum covers the whole file with its own eight digits set to zeros, so a truncated or altered file is refused.

use std::{collections::BTreeMap, fs::File, io::Write as _, path::Path};

use serde::{Deserialize, Serialize};

use super::{
    Certificate, Input, Machine, Model, Predictor, Rules, Task,
    predictor::{Decision, Term, TermBasis, TermHeader},
};
use crate::{Error, Result, linalg::Matrix, trace::IterRecord};

const FORMAT_VERSION: &str = "1";
const NO_CHECKSUM: &str = "00000000";
const CHECKSUM_KEY: &str = "\"crc32\":\"";

#[derive(Serialize, Deserialize)]
struct Header {
    task: Task,
    input: Input,
    spec: serde_json::Value,
    machines: Vec<MachineHeader>,
    shared: Option<Certificate>,
    #[serde(default)]
    rules: Option<Rules>,
    columns: Vec<usize>,
    spherical: bool,
    warnings: Vec<String>,
    n_samples: usize,
    seconds: f64,
    version: String,
    storage: (String, u64),
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
struct TensorHeader {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
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

#[derive(Default)]
struct Tensors {
    headers: BTreeMap<String, TensorHeader>,
    bytes: Vec<u8>,
}

impl Tensors {
    fn put(&mut self, name: String, dtype: &str, shape: Vec<usize>, values: impl Iterator<Item = [u8; 8]>) {
        let from = self.bytes.len();
        values.for_each(|v| self.bytes.extend_from_slice(&v));
        self.headers.insert(name, TensorHeader { dtype: dtype.into(), shape, data_offsets: (from, self.bytes.len()) });
    }

    fn put_f64(&mut self, name: String, values: &[f64]) {
        self.put(name, "F64", vec![values.len()], values.iter().map(|v| v.to_le_bytes()));
    }

    fn put_index(&mut self, name: String, values: &[usize]) {
        self.put(name, "U64", vec![values.len()], values.iter().map(|&v| (v as u64).to_le_bytes()));
    }

    fn take(&self, name: &str, dtype: &str) -> Result<impl Iterator<Item = [u8; 8]>> {
        let header = self.headers.get(name).ok_or_else(|| broken(&format!("tensor `{name}` is missing")))?;
        let (from, to) = header.data_offsets;
        let count = header.shape.iter().try_fold(8usize, |n, &s| n.checked_mul(s));
        if header.dtype != dtype || from > to || to > self.bytes.len() || count != Some(to - from) {
            return Err(broken(&format!("tensor `{name}` does not fit its description")));
        }
        Ok(self.bytes[from..to].as_chunks::<8>().0.iter().copied())
    }

    fn take_f64(&self, name: &str) -> Result<Vec<f64>> {
        Ok(self.take(name, "F64")?.map(f64::from_le_bytes).collect())
    }

    fn take_index(&self, name: &str, below: usize) -> Result<Vec<usize>> {
        let values: Vec<usize> = self.take(name, "U64")?.map(|b| u64::from_le_bytes(b) as usize).collect();
        if values.iter().any(|&v| v >= below) {
            return Err(broken(&format!("tensor `{name}` points outside the model")));
        }
        Ok(values)
    }
}

fn broken(problem: &str) -> Error {
    Error::data("model file", problem, "it is damaged or not a mercer model: save the model again")
}

impl Model {
    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::default();
        let p = &self.predictor;
        tensors.put_index("row_ids".into(), &p.row_ids);
        tensors.put(
            "rows".into(),
            "F64",
            vec![p.rows.rows(), p.rows.cols()],
            p.rows.data().iter().map(|v| v.to_le_bytes()),
        );
        let mut machines = Vec::new();
        for (k, (m, decision)) in self.machines.iter().zip(&p.decisions).enumerate() {
            tensors.put_f64(format!("weights.{k}"), &m.weights);
            tensors.put_index(format!("support.{k}"), &m.support);
            tensors.put_f64(format!("dual_coef.{k}"), &m.dual_coef);
            let (mut at_all, mut coef_all, mut terms) = (Vec::new(), Vec::new(), Vec::new());
            for Term { kernel, basis } in &decision.terms {
                let (monomials, coef) = match basis {
                    TermBasis::Samples { at, coef } => {
                        at_all.extend_from_slice(at);
                        (false, coef)
                    }
                    TermBasis::Monomials { coef } => (true, coef),
                };
                coef_all.extend_from_slice(coef);
                terms.push(TermHeader { kernel: *kernel, monomials, len: coef.len() });
            }
            tensors.put_index(format!("term_rows.{k}"), &at_all);
            tensors.put_f64(format!("term_coef.{k}"), &coef_all);
            machines.push(MachineHeader {
                intercept: m.intercept,
                constant: decision.constant,
                certificate: m.certificate,
                trace: m.trace.clone(),
                terms,
            });
        }
        let header = Header {
            task: self.task.clone(),
            input: self.input.clone(),
            spec: self.spec.clone(),
            machines,
            shared: self.shared,
            rules: self.rules.clone(),
            columns: p.columns.clone(),
            spherical: p.spherical,
            warnings: self.warnings.clone(),
            n_samples: self.n_samples,
            seconds: self.seconds,
            version: self.version.clone(),
            storage: self.storage.clone(),
        };
        let unwritable = |e: serde_json::Error| Error::numerical("writing the model", e.to_string());
        let metadata = Metadata {
            format: "mercer".into(),
            version: FORMAT_VERSION.into(),
            crc32: NO_CHECKSUM.into(),
            model: serde_json::to_string(&header).map_err(unwritable)?,
        };
        let mut json = serde_json::to_string(&Index { metadata, tensors: tensors.headers }).map_err(unwritable)?;
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

    /// Reads what [`Model::to_bytes`] wrote; refuses anything altered or truncated.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (length, rest) =
            bytes.split_first_chunk::<8>().ok_or_else(|| broken("it is shorter than its first field"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let json = rest.get(..length).ok_or_else(|| broken("it ends inside its header (truncated?)"))?;
        let json = std::str::from_utf8(json).map_err(|_| broken("its header is not text"))?;
        let index: Index =
            serde_json::from_str(json).map_err(|e| broken(&format!("its header cannot be read ({e})")))?;
        if index.metadata.format != "mercer" {
            return Err(broken("its header does not say `mercer`"));
        }
        if index.metadata.version != FORMAT_VERSION {
            return Err(Error::data(
                "model file",
                format!("its format is version {}, this program reads {FORMAT_VERSION}", index.metadata.version),
                "update mercer, or save the model with this version",
            ));
        }
        verify_checksum(bytes, json, &index.metadata.crc32)?;
        let header: Header = serde_json::from_str(&index.metadata.model)
            .map_err(|e| broken(&format!("its description cannot be read ({e})")))?;
        let tensors = Tensors { headers: index.tensors, bytes: rest[length..].to_vec() };
        assemble(header, &tensors)
    }

    /// Writes to a temporary file beside `path`, syncs and renames: a reader never sees half a model.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |e: std::io::Error| Error::file(path, format!("the model could not be written ({e})"));
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(name);
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(&self.to_bytes().map_err(std::io::Error::other)?)?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)
        };
        write().map_err(|e| {
            std::fs::remove_file(&temporary).ok();
            failed(e)
        })
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("the model could not be read ({e})")))?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e))
    }
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

fn assemble(header: Header, tensors: &Tensors) -> Result<Model> {
    let (n_kernels, n_columns) = match &header.input {
        Input::Table { columns, kernels, .. } => (kernels.len(), columns.len()),
        Input::Precomputed { kernels, .. } => (kernels.len(), 0),
    };
    if header.columns.iter().any(|&c| c >= n_columns) {
        return Err(broken("it names columns it does not have"));
    }
    let row_ids = tensors.take_index("row_ids", usize::MAX)?;
    let rows = tensors.take_f64("rows")?;
    let rows =
        if rows.is_empty() { Matrix::default() } else { Matrix::new(row_ids.len(), header.columns.len(), rows)? };
    let (mut machines, mut decisions) = (Vec::new(), Vec::new());
    for (k, m) in header.machines.into_iter().enumerate() {
        let at = tensors.take_index(&format!("term_rows.{k}"), row_ids.len())?;
        let coef = tensors.take_f64(&format!("term_coef.{k}"))?;
        let terms = terms(&m.terms, &at, &coef, n_kernels)?;
        decisions.push(Decision { constant: m.constant, terms });
        let weights = tensors.take_f64(&format!("weights.{k}"))?;
        if weights.len() != n_kernels {
            return Err(broken("weights and kernels differ in number"));
        }
        machines.push(Machine {
            weights,
            support: tensors.take_index(&format!("support.{k}"), usize::MAX)?,
            dual_coef: tensors.take_f64(&format!("dual_coef.{k}"))?,
            intercept: m.intercept,
            certificate: m.certificate,
            trace: m.trace,
        });
    }
    if header.rules.as_ref().is_some_and(|r| r.count() != machines.len()) {
        return Err(broken("its rules do not match its machines"));
    }
    let predictor = Predictor { columns: header.columns, row_ids, rows, spherical: header.spherical, decisions };
    Ok(Model {
        task: header.task,
        input: header.input,
        spec: header.spec,
        machines,
        shared: header.shared,
        rules: header.rules,
        predictor,
        warnings: header.warnings,
        n_samples: header.n_samples,
        seconds: header.seconds,
        version: header.version,
        storage: header.storage,
    })
}

fn terms(headers: &[TermHeader], mut at: &[usize], mut coef: &[f64], n_kernels: usize) -> Result<Vec<Term>> {
    let mut out = Vec::new();
    for h in headers {
        let short = || broken("a kernel's coefficients are missing");
        let (own, rest) = coef.split_at_checked(h.len).ok_or_else(short)?;
        coef = rest;
        let basis = if h.monomials {
            TermBasis::Monomials { coef: own.to_vec() }
        } else {
            let (rows, rest) = at.split_at_checked(h.len).ok_or_else(short)?;
            at = rest;
            TermBasis::Samples { at: rows.to_vec(), coef: own.to_vec() }
        };
        if h.kernel >= n_kernels {
            return Err(broken("a term names a kernel that does not exist"));
        }
        out.push(Term { kernel: h.kernel, basis });
    }
    Ok(out)
}
