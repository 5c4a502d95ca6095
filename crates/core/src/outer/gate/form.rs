//! What gates are made of: from parameters to gates, and from ∂V/∂η back to the parameters.

use rayon::prelude::*;

use super::quasi_newton::Element;
use crate::{
    gram::Gram,
    linalg::{Matrix, dot},
    localize::{sigmoid, softmax},
    request::GateName,
};

/// η as a function of parameters.
pub trait Gate: Sync {
    /// The number of parameters.
    fn size(&self) -> usize;

    /// Parameters with their image under the gate's metric.
    fn element(&self, parameters: Vec<f64>) -> Element;

    /// The gates η, samples × kernels.
    fn gates(&self, at: &Element) -> Matrix;

    /// The gradient of V in the gate's metric from ∂V/∂η; its image is the plain gradient.
    fn gradient(&self, at: &Element, gates: &Matrix, by_gate: &Matrix) -> Element;

    /// A positive scaling of the steepest direction, entry by entry, where one is known to help.
    fn scaling(&self, _at: &[f64], _gradient: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// How fast V would fall if a gate that is all but closed were opened: the plain gradient
    /// cannot see it.
    fn pull(&self, _at: &[f64], _gradient: &[f64]) -> f64 {
        0.0
    }

    /// The largest change of an argument that a change of parameters makes.
    fn largest_argument(&self, change: &Element) -> f64;

    /// The weights of the kernels that a fit reports, group after group.
    fn weights(&self, gates: &Matrix, parameters: &[f64]) -> Vec<f64>;

    /// Parameters that give the same weights, but exactly zero where `shut` says so, in the order
    /// of [`Gate::weights`].
    fn with_shut(&self, parameters: &[f64], shut: &[bool]) -> Vec<f64>;
}

/// The argument of a gate that is shut: far below those of all others, so that its exponential is
/// exactly zero on new rows as well. Model files hold it.
const SHUT: f64 = -1e9;

/// η_m(x) from z_m(x) = Σ_i R_im k₀(x_i, x) + v_m. Parameters are R (samples × kernels, row after
/// row), then v.
///
/// The metric is that of the functions, tr RᵀK₀R + ‖v‖²: the gradient of V is then G with the
/// column sums of G, where G_im = ∂V/∂z_m(x_i) (Lei et al. 2016, supplement D), and the plain one
/// K₀G. With the linear kernel this is the gate that is linear in the features.
pub struct KernelGate<'a> {
    /// The gate's own kernel K₀.
    pub kernel: &'a Gram,
    /// Number of kernels M.
    pub kernels: usize,
    /// How arguments become gates.
    pub form: GateName,
}

impl KernelGate<'_> {
    /// The arguments z, samples × kernels.
    fn arguments(&self, at: &Element) -> Vec<f64> {
        let (values, offsets) = at.image.split_at(self.kernel.n() * self.kernels);
        values
            .chunks(self.kernels)
            .flat_map(|row| row.iter().zip(offsets).map(|(v, o)| v + o))
            .collect()
    }
}

impl Gate for KernelGate<'_> {
    fn size(&self) -> usize {
        (self.kernel.n() + 1) * self.kernels
    }

    fn element(&self, parameters: Vec<f64>) -> Element {
        let (n, m) = (self.kernel.n(), self.kernels);
        let columns: Vec<Vec<f64>> =
            (0..m).map(|m_| (0..n).map(|i| parameters[i * m + m_]).collect()).collect();
        let mut image = vec![0.0; n * m];
        image.par_chunks_mut(m).enumerate().for_each(|(i, out)| {
            out.iter_mut().zip(&columns).for_each(|(o, c)| *o = dot(self.kernel.row(i), c));
        });
        image.extend_from_slice(&parameters[n * m..]);
        Element { coef: parameters, image }
    }

    fn gates(&self, at: &Element) -> Matrix {
        let z = self.arguments(at);
        let mut out = Matrix::zeros(self.kernel.n(), self.kernels);
        for (i, z) in z.chunks(self.kernels).enumerate() {
            match self.form {
                GateName::Softmax => softmax(z, out.row_mut(i)),
                GateName::Sigmoid => {
                    out.row_mut(i).iter_mut().zip(z).for_each(|(o, z)| *o = sigmoid(*z));
                }
            }
        }
        out
    }

    fn gradient(&self, _: &Element, gates: &Matrix, by_gate: &Matrix) -> Element {
        let (n, m) = (self.kernel.n(), self.kernels);
        let mut coef = vec![0.0; (n + 1) * m];
        for i in 0..n {
            let (eta, h) = (gates.row(i), by_gate.row(i));
            let mean = dot(eta, h);
            for k in 0..m {
                coef[i * m + k] = match self.form {
                    GateName::Softmax => eta[k] * (h[k] - mean),
                    GateName::Sigmoid => eta[k] * (1.0 - eta[k]) * h[k],
                };
            }
        }
        for k in 0..m {
            coef[n * m + k] = (0..n).map(|i| coef[i * m + k]).sum();
        }
        self.element(coef)
    }

    fn largest_argument(&self, change: &Element) -> f64 {
        self.arguments(change).iter().fold(0.0, |m, z| m.max(z.abs()))
    }

    /// The means of the gates over the samples.
    fn weights(&self, gates: &Matrix, _: &[f64]) -> Vec<f64> {
        (0..self.kernels)
            .map(|m| gates.column(m).iter().sum::<f64>() / gates.rows() as f64)
            .collect()
    }

    /// The gate of a kernel that is shut no longer depends on where a row lies.
    fn with_shut(&self, parameters: &[f64], shut: &[bool]) -> Vec<f64> {
        let offsets = self.kernel.n() * self.kernels;
        let own = |(at, z): (usize, &f64)| match shut[at % self.kernels] {
            false => *z,
            true if at < offsets => 0.0,
            true => SHUT,
        };
        parameters.iter().enumerate().map(own).collect()
    }
}

/// η_m(x) = β_m^{g(x)},  β_m^g = exp(z_m^g) / (Σ_l exp(p z_l^g))^{1/p}: rows of unit ℓp norm.
///   Parameters are z, group after group.
///
/// In Fu et al. 2016 z = a v + b with the alignments v, which do not change: moving a and b moves z
/// 1 + v² times as far, so that kernels aligned with the targets of the group move faster; v = 0
/// leaves that out. Steps are also scaled by 1/β^p, which makes them multiplicative steps of the
/// weights: ∂V/∂z_m is of the size of β_m^p, and without it a weight that became small would stay
/// so.
pub struct GroupGate<'a> {
    /// The group of every sample.
    pub labels: &'a [usize],
    /// Norm of every group's weights.
    pub p: f64,
    /// The alignments v, groups × kernels.
    pub alignments: &'a Matrix,
}

impl GroupGate<'_> {
    /// The weights β, groups × kernels.
    pub fn betas(&self, z: &[f64]) -> Matrix {
        let (groups, kernels) = (self.alignments.rows(), self.alignments.cols());
        let mut out = Matrix::zeros(groups, kernels);
        for (g, z) in z.chunks(kernels).enumerate() {
            let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let row = out.row_mut(g);
            row.iter_mut().zip(z).for_each(|(o, z)| *o = (z - largest).exp());
            let norm = row.iter().map(|e| e.powf(self.p)).sum::<f64>().powf(1.0 / self.p);
            row.iter_mut().for_each(|e| *e /= norm);
        }
        out
    }

    /// The slopes ∂V/∂z, each divided by its β^p.
    fn relative_slopes(&self, at: &[f64], gradient: &[f64]) -> Vec<f64> {
        let beta = self.betas(at);
        gradient
            .iter()
            .zip(beta.data())
            .map(|(g, b)| g / b.powf(self.p).max(f64::MIN_POSITIVE))
            .collect()
    }
}

impl Gate for GroupGate<'_> {
    fn size(&self) -> usize {
        self.alignments.data().len()
    }

    fn element(&self, parameters: Vec<f64>) -> Element {
        Element { image: parameters.clone(), coef: parameters }
    }

    fn gates(&self, at: &Element) -> Matrix {
        self.betas(&at.coef).select_rows(self.labels)
    }

    fn gradient(&self, at: &Element, _: &Matrix, by_gate: &Matrix) -> Element {
        let beta = self.betas(&at.coef);
        let (groups, kernels) = (beta.rows(), beta.cols());
        let mut by_beta = Matrix::zeros(groups, kernels);
        for (i, &g) in self.labels.iter().enumerate() {
            by_beta.row_mut(g).iter_mut().zip(by_gate.row(i)).for_each(|(o, h)| *o += h);
        }
        // ∂β_l/∂z_m = β_l (δ_lm − β_m^p).
        let mut image = Vec::with_capacity(groups * kernels);
        for g in 0..groups {
            let total = dot(beta.row(g), by_beta.row(g));
            image.extend(
                beta.row(g).iter().zip(by_beta.row(g)).map(|(b, t)| b * t - b.powf(self.p) * total),
            );
        }
        Element { coef: image.clone(), image }
    }

    fn scaling(&self, at: &[f64], gradient: &[f64]) -> Option<Vec<f64>> {
        let slopes = self.relative_slopes(at, gradient);
        // No entry runs ahead of the sum, which is what a weight of size 1 feels.
        let limit: f64 = gradient.iter().map(|g| g.abs()).sum();
        let own = |((r, g), v): ((&f64, &f64), &f64)| {
            let scale = if *g == 0.0 { 1.0 } else { (r / g).min(limit / g.abs()).max(1.0) };
            (1.0 + v * v) * scale
        };
        Some(slopes.iter().zip(gradient).zip(self.alignments.data()).map(own).collect())
    }

    /// For one group alone: with p = 2 the problem is then that of L1-MKL, and a closed weight may
    /// have to open again. For p > 2 the pull grows without bound as a weight closes, so that none
    /// stays closed; with several groups every vertex is a valley of its own.
    fn pull(&self, at: &[f64], gradient: &[f64]) -> f64 {
        if self.p > 2.0 || self.alignments.rows() > 1 {
            return 0.0;
        }
        self.relative_slopes(at, gradient).iter().fold(0.0, |m: f64, r| m.max(-r))
    }

    fn largest_argument(&self, change: &Element) -> f64 {
        change.coef.iter().fold(0.0, |m, z| m.max(z.abs()))
    }

    fn weights(&self, _: &Matrix, parameters: &[f64]) -> Vec<f64> {
        self.betas(parameters).data().to_vec()
    }

    fn with_shut(&self, parameters: &[f64], shut: &[bool]) -> Vec<f64> {
        parameters.iter().zip(shut).map(|(z, shut)| if *shut { SHUT } else { *z }).collect()
    }
}
