//! The tensors of a model file: numbers and texts by name, one after another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    model::predictor::{Term, TermBasis, TermHeader},
};

#[derive(Serialize, Deserialize)]
pub(super) struct TensorHeader {
    dtype: String,
    pub shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// All tensors, and where each stands.
#[derive(Default)]
pub(super) struct Tensors {
    pub headers: BTreeMap<String, TensorHeader>,
    pub bytes: Vec<u8>,
}

impl Tensors {
    pub fn put(
        &mut self,
        name: String,
        dtype: &str,
        shape: Vec<usize>,
        values: impl Iterator<Item = [u8; 8]>,
    ) {
        let from = self.bytes.len();
        values.for_each(|v| self.bytes.extend_from_slice(&v));
        self.headers.insert(
            name,
            TensorHeader { dtype: dtype.into(), shape, data_offsets: (from, self.bytes.len()) },
        );
    }

    pub fn put_f64(&mut self, name: String, values: &[f64]) {
        self.put(name, "F64", vec![values.len()], values.iter().map(|v| v.to_le_bytes()));
    }

    pub fn put_index(&mut self, name: String, values: &[usize]) {
        self.put(name, "U64", vec![values.len()], values.iter().map(|&v| (v as u64).to_le_bytes()));
    }

    pub fn put_text(&mut self, name: String, text: &str) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        let header = TensorHeader {
            dtype: "U8".into(),
            shape: vec![text.len()],
            data_offsets: (from, self.bytes.len()),
        };
        self.headers.insert(name, header);
    }

    pub fn take_text(&self, name: &str) -> Result<String> {
        let header =
            self.headers.get(name).ok_or_else(|| broken(&format!("tensor `{name}` is missing")))?;
        let (from, to) = header.data_offsets;
        let bytes =
            self.bytes.get(from..to).filter(|b| header.dtype == "U8" && header.shape == [b.len()]);
        bytes
            .and_then(|b| String::from_utf8(b.to_vec()).ok())
            .ok_or_else(|| broken(&format!("tensor `{name}` is no text")))
    }

    /// The numbers of `terms`, one after another, in two tensors.
    pub fn put_terms(&mut self, terms: &[Term], rows: &str, coefs: &str) -> Vec<TermHeader> {
        let (mut at_all, mut coef_all, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        for Term { kernel, basis, absent } in terms {
            let (monomials, columns, coef) = match basis {
                TermBasis::Samples { at, coef } => {
                    at_all.extend_from_slice(at);
                    (false, false, coef)
                }
                TermBasis::Columns { at, coef } => {
                    at_all.extend_from_slice(at);
                    (false, true, coef)
                }
                TermBasis::Features { coef } => (true, false, coef),
            };
            coef_all.extend_from_slice(coef);
            headers.push(TermHeader {
                kernel: *kernel,
                monomials,
                len: coef.len(),
                columns,
                absent: *absent,
            });
        }
        self.put_index(rows.into(), &at_all);
        self.put_f64(coefs.into(), &coef_all);
        headers
    }

    pub fn take(&self, name: &str, dtype: &str) -> Result<impl Iterator<Item = [u8; 8]>> {
        let header =
            self.headers.get(name).ok_or_else(|| broken(&format!("tensor `{name}` is missing")))?;
        let (from, to) = header.data_offsets;
        let count = header.shape.iter().try_fold(8usize, |n, &s| n.checked_mul(s));
        if header.dtype != dtype || from > to || to > self.bytes.len() || count != Some(to - from) {
            return Err(broken(&format!("tensor `{name}` does not fit its description")));
        }
        Ok(self.bytes[from..to].as_chunks::<8>().0.iter().copied())
    }

    pub fn take_f64(&self, name: &str) -> Result<Vec<f64>> {
        let values: Vec<f64> = self.take(name, "F64")?.map(f64::from_le_bytes).collect();
        match values.iter().position(|v| !v.is_finite()) {
            None => Ok(values),
            Some(at) => {
                Err(broken(&format!("tensor `{name}` holds {} as number {}", values[at], at + 1)))
            }
        }
    }

    pub fn take_index(&self, name: &str, below: usize) -> Result<Vec<usize>> {
        let values: Vec<usize> =
            self.take(name, "U64")?.map(|b| u64::from_le_bytes(b) as usize).collect();
        if values.iter().any(|&v| v >= below) {
            return Err(broken(&format!("tensor `{name}` points outside the model")));
        }
        Ok(values)
    }
}

/// What is said of a file whose parts do not fit together.
pub(super) fn broken(problem: &str) -> Error {
    Error::data("model file", problem, "it is damaged or not a mercer model: save the model again")
}
