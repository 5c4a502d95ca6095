//! What a bank of kernels looks like on the training rows, before anything is learned from it.

use rayon::prelude::*;
use serde::Serialize;

use crate::{
    Result,
    data::{Dataset, Target},
    gram::{GramSet, GramSource, Stack, centred_products, extreme_eigenvalues_of, target_products},
    linalg::Matrix,
    prepare::Prepared,
    request::TrainSpec,
};

/// One kernel, normalised as the request says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// The kernel's name.
    pub name: String,
    /// Centred alignment with the target, from 0 to 1: with the matrix that is 1 where classes
    /// agree, or y yᵀ for values.
    pub alignment: f64,
    /// The trace of its matrix.
    pub trace: f64,
    /// (Σ λ)² / Σ λ² over the eigenvalues of the centred matrix: how many directions it spreads
    /// over.
    pub effective_rank: f64,
    /// Columns of the stored factor, where it is stored as one: its numerical rank.
    pub rank: Option<usize>,
    /// Largest eigenvalue over the smallest, from a few Lanczos steps; infinite where the smallest
    /// is lost in rounding.
    #[serde(with = "crate::trace::nan_as_null")]
    pub condition: f64,
}

/// A bank of kernels on some rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Number of rows.
    pub n_samples: usize,
    /// A report per kernel, in the order of the bank.
    pub kernels: Vec<KernelReport>,
    /// Centred alignment of every two kernels.
    pub between: Vec<Vec<f64>>,
    /// How the kernels are stored, in words.
    pub storage: String,
    /// Sentences that the user should read about the data and the kernels.
    pub warnings: Vec<String>,
}

/// Looks at the bank of `spec` on a table, standardised and normalised as a fit would.
pub fn diagnose(data: &Dataset, target: &Target, spec: &TrainSpec) -> Result<Diagnosis> {
    Prepared::from_table(data, target, None, spec)?.diagnose()
}

/// Looks at ready-made kernels, `stack` of shape (n, n, M).
pub fn diagnose_precomputed(
    stack: Stack<'_>,
    target: &Target,
    spec: &TrainSpec,
) -> Result<Diagnosis> {
    Prepared::from_stack(stack, target, None, spec)?.diagnose()
}

impl Prepared {
    /// Looks at these kernel terms: alignments, traces, ranks, conditioning.
    pub fn diagnose(&self) -> Result<Diagnosis> {
        let (grams, m, n) = (self.grams(), self.grams().n_terms(), self.grams().n_samples());
        let products = centred_products(grams, None);
        let norms: Vec<f64> = (0..m).map(|t| products[(t, t)].max(0.0).sqrt()).collect();
        let ratio = |above: f64, below: f64| {
            if below > 0.0 { (above / below).clamp(0.0, 1.0) } else { 0.0 }
        };
        let between = (0..m)
            .map(|s| (0..m).map(|t| ratio(products[(s, t)], norms[s] * norms[t])).collect())
            .collect();
        let columns = indicators(&self.samples.target);
        let mut aligned = vec![0.0; m];
        for y in &columns {
            aligned.iter_mut().zip(target_products(grams, None, y)).for_each(|(a, own)| *a += own);
        }
        let size = gram_norm(&columns);
        let names = self.input.kernel_names();
        let kernels = (0..m)
            .into_par_iter()
            .map(|t| {
                let trace = grams.trace(t);
                let mut means = vec![0.0; n];
                grams.apply(t, &vec![1.0 / n as f64; n], &mut means);
                let centred = trace - means.iter().sum::<f64>();
                KernelReport {
                    name: names[t].to_string(),
                    alignment: ratio(aligned[t], norms[t] * size),
                    trace,
                    effective_rank: if norms[t] > 0.0 { (centred / norms[t]).powi(2) } else { 0.0 },
                    rank: grams.factor(t).map(crate::gram::Factor::rank),
                    condition: condition(grams, t),
                }
            })
            .collect();
        Ok(Diagnosis {
            n_samples: n,
            kernels,
            between,
            storage: grams.describe(),
            warnings: self.warnings().to_vec(),
        })
    }
}

fn condition(grams: &GramSet, t: usize) -> f64 {
    let n = grams.n_samples();
    let (low, high) = extreme_eigenvalues_of(n, |v, out| grams.apply(t, v, out));
    if low <= n as f64 * f64::EPSILON * high { f64::INFINITY } else { high / low }
}

/// The columns Y whose products Y Yᵀ make the target's kernel: y itself, or one indicator per
/// class.
fn indicators(target: &Target) -> Vec<Vec<f64>> {
    match target {
        Target::Values(y) => vec![y.clone()],
        Target::Classes { names, labels } => {
            (0..names.len()).map(|c| labels.iter().map(|&l| f64::from(l == c)).collect()).collect()
        }
    }
}

/// The Frobenius norm ‖H Y Yᵀ H‖ = ‖Yᵀ H Y‖ of the centred target kernel.
fn gram_norm(columns: &[Vec<f64>]) -> f64 {
    let n = columns.first().map_or(1, Vec::len) as f64;
    let mean = |y: &[f64]| y.iter().sum::<f64>() / n;
    let mut gram = Matrix::zeros(columns.len(), columns.len());
    for (i, a) in columns.iter().enumerate() {
        for (j, b) in columns.iter().enumerate() {
            let (p, q) = (mean(a), mean(b));
            gram[(i, j)] = a.iter().zip(b).map(|(x, y)| (x - p) * (y - q)).sum();
        }
    }
    gram.data().iter().map(|v| v * v).sum::<f64>().sqrt()
}
