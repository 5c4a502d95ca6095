//! `mercer report`: the page of a saved result.

use mercer::{
    Error, Result,
    report::{self, ReportData},
};

use crate::{Exit, args::ReportArgs, output};

pub fn run(args: &ReportArgs) -> Result<Exit> {
    output::check(&[("--out", Some(&args.out))], &[&args.saved])?;
    let text = std::fs::read_to_string(&args.saved).map_err(|e| Error::file(&args.saved, e))?;
    let page: ReportData = serde_json::from_str(&text).map_err(|e| {
        Error::file(
            &args.saved,
            format!("is not what `mercer compare --json` or `mercer tune --json` writes ({e})"),
        )
    })?;
    output::write_file(&args.out, report::html(&page).as_bytes())?;
    output::print(&format!("report in {}\n", args.out.display()))?;
    Ok(Exit::Done)
}
