//! `mercer gram`: kernel values as a file.

use std::io::Cursor;

use mercer::{
    Error, Result,
    data::{
        Dataset,
        array::{Array, Values, write_npz},
        csv::Table,
    },
    gram::{Budget, gram_block, human_bytes},
    kernels::language,
    linalg::threads,
};
use serde_json::json;

use crate::{Exit, args::GramArgs, output};

pub fn run(args: &GramArgs) -> Result<Exit> {
    output::check_writable(&args.output)?;
    let table = super::read(&args.data, args.rows, &[])?;
    let train = args.train.as_deref().map(|path| super::read(path, None, &[])).transpose()?;
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
    let shape = vec![rows.len(), base.len(), kernels.len()];
    let cells: usize = shape.iter().product();
    // Once by kernel, once with the kernels interleaved, once as bytes of the file.
    Budget::new(None).check(format!("{} kernel matrices", shape[2]), 24 * cells as u64, "use fewer rows or kernels")?;
    let against = train.as_ref().map(|_| &base);
    let blocks = threads::install(args.run.threads, || gram_block(&rows, against, &kernels, args.normalize))?;
    let mut values = vec![0.0; cells];
    for (t, block) in blocks.iter().enumerate() {
        values.chunks_exact_mut(shape[2]).zip(block.data()).for_each(|(cell, &v)| cell[t] = v);
    }
    drop(blocks);
    let names: Vec<String> = kernels.into_iter().map(|k| k.name).collect();
    let grams = Array { shape: shape.clone(), values: Values::Numbers(values) };
    let labels = Array { shape: vec![names.len()], values: Values::Texts(names.clone()) };
    let mut file = Cursor::new(Vec::new());
    write_npz(&mut file, [("grams", &grams), ("names", &labels)]).map_err(|e| Error::file(&args.output, e))?;
    let bytes = file.into_inner();
    output::write_file(&args.output, &bytes)?;
    if args.run.json {
        output::json(&json!({ "output": args.output.display().to_string(), "shape": shape, "names": names }))?;
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

fn features(table: &Table, args: &GramArgs) -> Result<Dataset> {
    let mut exclude: Vec<&str> = args.exclude.iter().map(String::as_str).collect();
    exclude.extend(table.default_target().filter(|t| !args.exclude.iter().any(|e| e == t)));
    table.dataset(&exclude, None)
}
