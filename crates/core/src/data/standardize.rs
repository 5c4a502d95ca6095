//! Columns to mean 0 and deviation 1, by constants of the training rows.

use serde::{Deserialize, Serialize};

use crate::{Error, Result, linalg::Matrix};

/// Column means and scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardizer {
    /// The mean of each column.
    pub mean: Vec<f64>,
    /// Column scales; 1 for a constant column.
    pub scale: Vec<f64>,
}

impl Standardizer {
    /// Means and population deviations of the columns; a column whose deviation is below rounding
    /// counts as constant.
    pub fn fit(features: &Matrix) -> Self {
        let one = |j: usize| {
            let (mean, deviation) = mean_and_deviation(&features.column(j));
            (mean, if deviation > 0.0 { deviation } else { 1.0 })
        };
        let (mean, scale) = (0..features.cols()).map(one).unzip();
        Self { mean, scale }
    }

    /// (x − mean) / scale, column by column.
    pub fn apply(&self, features: &Matrix) -> Result<Matrix> {
        if features.cols() != self.mean.len() || self.scale.len() != self.mean.len() {
            return Err(Error::shape("feature columns", self.mean.len(), features.cols()));
        }
        // The one copy of a table: a clone shares its numbers until the first is written.
        let mut out = features.clone();
        for i in 0..out.rows() {
            for (x, (mean, scale)) in
                out.row_mut(i).iter_mut().zip(self.mean.iter().zip(&self.scale))
            {
                *x = (*x - mean) / scale;
            }
        }
        Ok(out)
    }
}

/// Mean and population deviation; a deviation below rounding is 0.
pub(crate) fn mean_and_deviation(column: &[f64]) -> (f64, f64) {
    let n = column.len().max(1) as f64;
    let first = column.iter().sum::<f64>() / n;
    // The second pass takes back the rounding of the first.
    let mean = first + column.iter().map(|x| x - first).sum::<f64>() / n;
    // Squares are taken of numbers within [-1, 1]: no column of finite deviations overflows or
    // vanishes.
    let largest = column.iter().fold(0.0, |m: f64, x| m.max((x - mean).abs()));
    if largest == 0.0 {
        return (mean, 0.0);
    }
    let deviation =
        largest * (column.iter().map(|x| ((x - mean) / largest).powi(2)).sum::<f64>() / n).sqrt();
    let constant = deviation <= 1e-12 * mean.abs().max(f64::MIN_POSITIVE);
    (mean, if constant { 0.0 } else { deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_mean_0_and_deviation_1_even_far_from_the_origin() {
        let columns: [fn(f64) -> f64; 5] = [
            |i| i,
            |i| 1e9 + 1e-3 * i,
            |i| 1e200 * i,
            |i| 1e-200 * i,
            |i| if i == 7.0 { 1.0 } else { 0.0 },
        ];
        let data = (0..100).flat_map(|i| columns.map(|f| f(f64::from(i)))).collect();
        let x = Matrix::new(100, columns.len(), data).unwrap();
        let z = Standardizer::fit(&x).apply(&x).unwrap();
        for j in 0..columns.len() {
            let z = z.column(j);
            let mean = z.iter().sum::<f64>() / 100.0;
            let var = z.iter().map(|v| v * v).sum::<f64>() / 100.0;
            // The input of column 1 carries 3 digits less than a double after its mean is gone:
            // ulp(1e9)/0.03 ≈ 4e-6.
            assert!(mean.abs() < 1e-5 && (var - 1.0).abs() < 1e-5, "column {j}: {mean} {var}");
        }
    }

    #[test]
    fn constant_columns_keep_scale_1_and_shapes_are_checked() {
        let x =
            Matrix::new(3, 3, vec![0.1, 0.0, 1.0, 0.1, 0.0, 1.0 + 1e-15, 0.1, 0.0, 1.0]).unwrap();
        let s = Standardizer::fit(&x);
        assert_eq!(s.scale, [1.0; 3]);
        assert!(s.apply(&x).unwrap().data().iter().all(|v| v.abs() < 1e-14));
        assert!(s.apply(&Matrix::zeros(3, 2)).is_err());
    }
}
