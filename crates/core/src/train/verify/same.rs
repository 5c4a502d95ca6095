//! Whether data can be those that a model was fitted on.

use super::{SAME_DATA, other_rows};
use crate::{
    Error, Model, Result,
    data::{Rows, Target},
    kernels::{KernelSpec, language},
    model::{Input, Prediction},
};

pub(super) fn same_classes(model: &Model, target: &Target) -> Result<()> {
    match (&model.task, target) {
        (Prediction::Classification { classes, .. }, Target::Classes { names, .. })
            if classes != names =>
        {
            Err(other_rows(format!(
                "classes {}, and the fit had {}",
                names.join(", "),
                classes.join(", ")
            )))
        }
        (Prediction::Classification { .. }, Target::Classes { .. })
        | (Prediction::Regression, Target::Values(_)) => Ok(()),
        _ => Err(other_rows("classes on one side and numbers on the other")),
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_DATA * a.abs().max(b.abs()).max(f64::MIN_POSITIVE)
}

pub(super) fn same_input(stored: &Input, now: &Input) -> Result<()> {
    let (
        Input::Table { columns, standardizer, kernels, .. },
        Input::Table {
            columns: new_columns,
            standardizer: new_standardizer,
            kernels: new_kernels,
            ..
        },
    ) = (stored, now)
    else {
        return Err(Error::data(
            "model",
            "it was fitted on ready-made kernels",
            "its certificate cannot be recomputed from a table",
        ));
    };
    if columns != new_columns {
        return Err(other_rows(format!(
            "columns {}, and the fit had {}",
            new_columns.join(", "),
            columns.join(", ")
        )));
    }
    if let (Some(old), Some(new)) = (standardizer, new_standardizer) {
        for (j, name) in columns.iter().take(old.mean.len()).enumerate() {
            // A mean is known to rounding of the column's own scale.
            if (old.mean[j] - new.mean[j]).abs() > SAME_DATA * (old.scale[j] + old.mean[j].abs()) {
                return Err(other_rows(format!(
                    "column `{name}` has mean {}, and had {}",
                    new.mean[j], old.mean[j]
                )));
            }
            if !close(old.scale[j], new.scale[j]) {
                let (new, old) = (new.scale[j], old.scale[j]);
                return Err(other_rows(format!(
                    "column `{name}` has deviation {new}, and had {old}"
                )));
            }
        }
    }
    let same = |(a, b): (&KernelSpec, &KernelSpec)| {
        a.columns == b.columns && language::same_but_for_scales(a.function, b.function, close)
    };
    if kernels.len() != new_kernels.len() || !kernels.iter().zip(new_kernels).all(same) {
        let odd = kernels.iter().zip(new_kernels).find(|pair| !same(*pair));
        let detail = odd.map_or_else(
            || format!("{} kernels, and the fit had {}", new_kernels.len(), kernels.len()),
            |(old, new)| format!("they give the kernel {}, and the fit had {}", new.name, old.name),
        );
        return Err(other_rows(detail));
    }
    Ok(())
}

/// The rows the model keeps must stand in the data where it says.
pub(super) fn same_rows(model: &Model, x: &Rows, kept: &[usize]) -> Result<()> {
    let (columns, stored) = (model.predictor.columns(), model.predictor.rows());
    for (k, row) in model.predictor.row_ids().iter().enumerate() {
        let at = kept
            .binary_search(row)
            .map_err(|_| other_rows(format!("row {} has no weight now", row + 1)))?;
        // Standardised values: a column's scale is 1, or the user's own where columns are used as
        // they are.
        let differs = |j: &usize| {
            if let Some(sequences) = stored.sequence(*j) {
                return x.sequence(columns[*j]).is_none_or(|s| s.get(at) != sequences.get(k));
            }
            let (old, new) = (stored.value(k, *j), x.value(at, columns[*j]));
            (old - new).abs() > SAME_DATA * (1.0 + old.abs()) && !close(old, new)
        };
        if let Some(j) = (0..columns.len()).find(differs) {
            let Input::Table { columns: names, .. } = &model.input else { continue };
            return Err(other_rows(format!(
                "row {} differs in column `{}`",
                row + 1,
                names[columns[j]]
            )));
        }
    }
    Ok(())
}
