//! `mercer verify`: is a saved certificate true of the rows it was earned on?

use mercer::{
    Model, Result,
    linalg::threads,
    model::Certificate,
    report::{gap, significant, table},
    trace::Silent,
    train::{Verification, prove, verify},
};
use serde_json::json;

use crate::{Exit, args::VerifyArgs, output};

pub fn run(args: &VerifyArgs) -> Result<Exit> {
    let model = Model::load(&args.model)?;
    let rows = super::load::read(&args.data, args.rows, &args.gram, None)?;
    let target =
        super::answers(&rows, &model, super::load::target_key(args.target.as_deref(), &rows)?)?;
    let data = super::features(&rows, &model)?;
    let weight = super::load::weights(&rows, args.weight_column.as_deref())?;
    let found = threads::install(args.run.threads, || {
        if args.prove {
            prove(&model, &data, &target, weight.as_deref(), &mut Silent)
        } else {
            verify(&model, &data, &target, weight.as_deref())
        }
    })?;
    if args.run.json {
        output::json(&json!({
            "verified": found.agrees,
            "stated": found.stated,
            "recomputed": found.recomputed,
            "proven": found.proven,
            "drift": found.drift,
            "change": found.change,
            "findings": found.findings,
        }))?;
    } else {
        output::print(&words(&found, data.len()))?;
    }
    Ok(if found.agrees { Exit::Done } else { Exit::NotVerified })
}

fn words(found: &Verification, rows: usize) -> String {
    let (stated, now) = (found.stated, found.recomputed);
    let mut columns = vec![("stated", stated), ("recomputed", now)];
    columns.extend(found.proven.map(|c| ("proven", c)));
    let line = |name: &str, value: &dyn Fn(Certificate) -> String| {
        std::iter::once(name.to_string())
            .chain(columns.iter().map(|(_, c)| value(*c)))
            .collect::<Vec<_>>()
    };
    let lines = [
        line("objective", &|c| significant(c.primal, 10)),
        line("lower bound", &|c| significant(c.dual, 10)),
        line("relative gap", &|c| gap(Some(c.gap).filter(|g| g.is_finite()))),
    ];
    let headers: Vec<&str> =
        std::iter::once("").chain(columns.iter().map(|(name, _)| *name)).collect();
    let numbers = table(&headers, &lines);
    let verdict = if found.agrees {
        verdict(found)
    } else {
        format!("NOT VERIFIED: {}", found.findings.join("; "))
    };
    format!(
        "{rows} rows, status {}\n\n{numbers}\n\
         largest difference between stored and recomputed decision values: {:.1e} of the largest\n\n{verdict}\n",
        stated.status.as_str(),
        found.drift
    )
}

const ALONE: &str = "the stored multipliers alone prove";

/// What was shown, no more.
fn verdict(found: &Verification) -> String {
    let (stated, now) = (found.stated, found.recomputed);
    if let Some(change) = found.change {
        return format!(
            "verified: the objective is as stated, and what the next step would change (weights, the gate, the rules) is\n\
             {change:.1e} of its size; the method is not convex, so that there is no lower bound"
        );
    }
    if now.gap.is_nan() {
        return "verified: the objective is as stated; there is no lower bound".into();
    }
    if let Some(proven) = found.proven {
        let how = if proven.dual > now.dual {
            "a new run from the stored solution proves"
        } else {
            ALONE
        };
        return format!("verified: {how} a gap of {}", gap(Some(proven.gap)));
    }
    let proof = format!("verified: {ALONE} a gap of {}", gap(Some(now.gap)));
    if now.gap <= stated.gap * 1.01 + 1e-9 {
        return proof;
    }
    format!(
        "{proof}; the fit stated {}, by a lower bound\ncombined from several vectors of multipliers, of which the model \
         keeps one; --prove finds such a bound again",
        gap(Some(stated.gap))
    )
}
