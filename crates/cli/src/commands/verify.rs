//! `mercer verify`: is a saved certificate true of the rows it was earned on?

use mercer::{
    Model, Result,
    data::csv::Table,
    linalg::threads,
    methods::{Verification, verify},
    report::{gap, significant, table},
};
use serde_json::json;

use crate::{Exit, args::VerifyArgs, output};

pub fn run(args: &VerifyArgs) -> Result<Exit> {
    let model = Model::load(&args.model)?;
    let rows = Table::read(&args.data)?;
    let target = super::answers(&rows, &model, &args.target)?;
    let data = super::features(&rows, &model)?;
    let weight = super::weights(&rows, args.weight_column.as_deref())?;
    let found = threads::install(args.threads, || verify(&model, &data, &target, weight.as_deref()))?;
    if args.json {
        output::json(&json!({
            "verified": found.agrees,
            "stated": found.stated,
            "recomputed": found.recomputed,
            "drift": found.drift,
            "findings": found.findings,
        }))?;
    } else {
        output::print(&words(&found, data.len()))?;
    }
    Ok(if found.agrees { Exit::Done } else { Exit::NotVerified })
}

fn words(found: &Verification, rows: usize) -> String {
    let (stated, now) = (found.stated, found.recomputed);
    let shown = |g: f64| gap(Some(g).filter(|g| g.is_finite()));
    let lines = [
        ["objective".to_string(), significant(stated.primal, 10), significant(now.primal, 10)],
        ["lower bound".to_string(), significant(stated.dual, 10), significant(now.dual, 10)],
        ["relative gap".to_string(), shown(stated.gap), shown(now.gap)],
    ];
    let numbers = table(&["", "stated", "recomputed"], &lines.map(|l| l.to_vec()));
    let verdict = if found.agrees { verdict(found) } else { format!("NOT VERIFIED: {}", found.findings.join("; ")) };
    format!(
        "{rows} rows, status {}\n\n{numbers}\n\
         largest difference between stored and recomputed decision values: {:.1e} of the largest\n\n{verdict}\n",
        stated.status.as_str(),
        found.drift
    )
}

/// What was shown, no more.
fn verdict(found: &Verification) -> String {
    let (stated, now) = (found.stated, found.recomputed);
    if now.gap.is_nan() {
        return "verified: the objective is as stated; the method is not convex, so that there is no lower bound"
            .into();
    }
    let proof = format!("verified: the stored multipliers prove a gap of {}", gap(Some(now.gap)));
    if now.gap <= stated.gap * 1.01 + 1e-9 {
        return proof;
    }
    format!(
        "{proof}; the fit stated {}, by a lower bound\ncombined from several vectors of multipliers, of which the model \
         keeps one",
        gap(Some(stated.gap))
    )
}
