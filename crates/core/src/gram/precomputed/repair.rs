//! Precomputed matrices with negative eigenvalues, made kernels.
//!
//! K = Σ λ_k v_k v_kᵀ. `Shift` adds |λ_min| to the diagonal. `Clip` and `Flip` replace λ_k by
//! max(λ_k, 0) and |λ_k|, which is P K with P = Σ [λ_k > 0] v_k v_kᵀ and P = Σ sign(λ_k) v_k v_kᵀ;
//! a new row with values s against the training rows then has P s.

use super::{super::dense::Packed, check};
use crate::{
    Result,
    kernels::Indefinite,
    linalg::{Matrix, SymmetricEigen},
};

/// A matrix made positive semidefinite.
pub(crate) struct Repaired {
    pub matrix: Matrix,
    /// P, where values of new rows change too.
    pub map: Option<Matrix>,
    /// A sentence for the user about what was done.
    pub note: String,
}

/// `None` where nothing was wrong with `k`, which must be symmetric.
pub(crate) fn repair(k: &Matrix, name: &str, how: Indefinite) -> Result<Option<Repaired>> {
    let Err(problem) =
        check::positive_semidefinite(&Packed::lower(k), name, &mut Matrix::default())
    else {
        return Ok(None);
    };
    if how == Indefinite::Refuse {
        return Err(problem);
    }
    let n = k.rows();
    let mut whole = k.clone();
    // The two triangles may differ by rounding.
    for i in 0..n {
        for j in 0..i {
            let mean = f64::midpoint(k[(i, j)], k[(j, i)]);
            (whole[(i, j)], whole[(j, i)]) = (mean, mean);
        }
    }
    let eigen = SymmetricEigen::new(whole.clone())?;
    let lowest = eigen.values.iter().fold(0.0f64, |m, &v| m.min(v));
    let negative = eigen.values.iter().filter(|v| **v < 0.0).count();
    let (total, below): (f64, f64) =
        eigen.values.iter().fold((0.0, 0.0), |(t, b), v| (t + v.abs(), b + (-v).max(0.0)));
    let (matrix, map, done) = match how {
        Indefinite::Refuse => return Err(problem),
        Indefinite::Shift => {
            (0..n).for_each(|i| whole[(i, i)] -= lowest);
            (whole, None, format!("{:.3e} was added to its diagonal", -lowest))
        }
        Indefinite::Clip => {
            let map = eigen.map(|v| f64::from(v > 0.0));
            (
                eigen.map(|v| v.max(0.0)),
                Some(map),
                "they were set to 0, and values of new rows are projected".into(),
            )
        }
        Indefinite::Flip => {
            let map = eigen.map(|v| if v < 0.0 { -1.0 } else { 1.0 });
            (
                eigen.map(f64::abs),
                Some(map),
                "their sign was changed, and values of new rows are reflected".into(),
            )
        }
    };
    let note = format!(
        "kernel `{name}` is not positive semidefinite: {negative} of {n} eigenvalues are negative, with {:.1}% of the weight; {done}",
        100.0 * below / total.max(f64::MIN_POSITIVE)
    );
    Ok(Some(Repaired { matrix, map, note }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Rng, linalg::dot};

    #[test]
    fn every_repair_is_positive_semidefinite_and_maps_the_matrix_onto_itself() {
        let n = 30;
        let mut rng = Rng::new(3);
        let mut k = Matrix::zeros(n, n);
        for i in 0..n {
            for j in 0..=i {
                let x = rng.normal();
                (k[(i, j)], k[(j, i)]) = (x, x);
            }
        }
        assert!(
            repair(&k, "k", Indefinite::Refuse)
                .err()
                .unwrap()
                .to_string()
                .contains("not positive semidefinite")
        );
        for how in [Indefinite::Shift, Indefinite::Clip, Indefinite::Flip] {
            let fixed = repair(&k, "k", how).unwrap().unwrap();
            let lower = Packed::lower(&fixed.matrix);
            assert!(
                check::positive_semidefinite(&lower, "k", &mut Matrix::default()).is_ok(),
                "{how:?}"
            );
            assert!(repair(&fixed.matrix, "k", how).unwrap().is_none());
            let Some(p) = fixed.map else { continue };
            for i in 0..n {
                for j in 0..n {
                    // Column j of K is what a new row equal to training row j would bring.
                    let mapped = dot(p.row(i), k.row(j));
                    assert!((mapped - fixed.matrix[(i, j)]).abs() < 1e-10, "{how:?} ({i}, {j})");
                }
            }
        }
    }
}
