//! `mercer gram`: kernel values as a file.

use std::{io::Cursor, path::Path};

use mercer::{
    Error, Result,
    data::{
        Dataset, Table,
        array::{Array, Values, write_npy, write_npz},
    },
    gram::{Budget, gram_block, human_bytes},
    kernels::language,
    linalg::threads,
};
use serde_json::json;

use super::load::{self, check_outputs, grams, read};
use crate::{Exit, args::GramArgs, output};

pub fn run(args: &GramArgs) -> Result<Exit> {
    // Kernels that are in a file already are refused by name.
    let grams = grams(args.kernels.as_deref(), &[])?;
    let output = [("--output", Some(args.output.as_path()))];
    check_outputs(&output, &args.data, args.train.as_deref(), &grams)?;
    let form = Form::of(&args.output)?;
    let table = read(&args.data, args.table.rows, &grams, args.memory)?;
    let train = args.train.as_deref().map(|path| read(path, None, &[], args.memory)).transpose()?;
    let base_table = train.as_ref().unwrap_or(&table);
    let bank = language::parse(args.kernels.as_deref().or(base_table.kernels()).unwrap_or("auto"))?;
    let mut base = features(base_table, args)?;
    let mut rows = if train.is_some() { table.dataset_of(base.columns())? } else { base.clone() };
    if args.standardize {
        let standardizer = base.rows().standardizer();
        rows = rows.with_numbers(standardizer.apply(rows.features())?)?;
        base = base.with_numbers(standardizer.apply(base.features())?)?;
    }
    let kernels = bank.resolve(&base)?;
    form.check(kernels.len(), &args.output)?;
    let shape = vec![rows.len(), base.len(), kernels.len()];
    let cells: usize = shape.iter().product();
    // Once by kernel, once with the kernels interleaved, once as bytes of the file.
    Budget::new(args.memory).check(
        format!("{} kernel matrices", shape[2]),
        24 * cells as u64,
        "use fewer rows or kernels",
    )?;
    let against = train.as_ref().map(|_| &base);
    let blocks = threads::install(args.run.threads, || {
        gram_block(&rows, against, &kernels, args.normalize)
    })?;
    let mut values = vec![0.0; cells];
    for (t, block) in blocks.iter().enumerate() {
        values.chunks_exact_mut(shape[2]).zip(block.data()).for_each(|(cell, &v)| cell[t] = v);
    }
    drop(blocks);
    let names: Vec<String> = kernels.into_iter().map(|k| k.name).collect();
    let bytes = form.bytes(&shape, values, &names, &args.output)?;
    output::write_file(&args.output, &bytes)?;
    if args.run.json {
        output::json(
            &json!({ "output": args.output.display().to_string(), "shape": shape, "names": names }),
        )?;
    } else {
        let size = human_bytes(bytes.len() as u64);
        output::print(&format!(
            "{} kernels, {} × {} values each, written to {} ({size})\n",
            shape[2],
            shape[0],
            shape[1],
            args.output.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// What the name of the output asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The stack and the names of its kernels.
    Npz,
    /// The stack alone.
    Npy,
    /// One matrix as text.
    Csv,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        // A pipe has no name that could tell.
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Ok(Self::Npz);
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "npz" => Ok(Self::Npz),
            "npy" => Ok(Self::Npy),
            "csv" => Ok(Self::Csv),
            _ => {
                let known = "the name of the output must end in .npz (the stack and the kernels' names), .npy (the stack) or .csv (one kernel)";
                Err(Error::file(path, known))
            }
        }
    }

    /// Refuses more kernels than fit into the file.
    fn check(self, kernels: usize, path: &Path) -> Result<()> {
        if self != Self::Csv || kernels <= 1 {
            return Ok(());
        }
        let problem = format!(
            "a csv file holds one matrix, and these are {kernels}; end the name in .npz or .npy"
        );
        Err(Error::file(path, problem))
    }

    fn bytes(
        self,
        shape: &[usize],
        values: Vec<f64>,
        names: &[String],
        path: &Path,
    ) -> Result<Vec<u8>> {
        let failed = |e: std::io::Error| Error::file(path, e);
        match self {
            Self::Npz => {
                let grams = Array { shape: shape.to_vec(), values: Values::Numbers(values) };
                let labels =
                    Array { shape: vec![names.len()], values: Values::Texts(names.to_vec()) };
                let mut file = Cursor::new(Vec::new());
                write_npz(&mut file, [("grams", &grams), ("names", &labels)]).map_err(failed)?;
                Ok(file.into_inner())
            }
            Self::Npy => {
                let mut bytes = Vec::new();
                write_npy(&mut bytes, shape, &values).map_err(failed)?;
                Ok(bytes)
            }
            Self::Csv => {
                let line = |row: &[f64]| {
                    row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n"
                };
                Ok(values.chunks(shape[1].max(1)).map(line).collect::<String>().into_bytes())
            }
        }
    }
}

fn features(table: &Table, args: &GramArgs) -> Result<Dataset> {
    let named = table.default_target().filter(|t| !args.table.exclude.iter().any(|e| e == t));
    load::features(table, &args.table, named.as_slice())
}
