//! `mercer kernels`: the kernel language, and a check of a text in it.

use mercer::{Result, kernels::language};
use serde_json::json;

use crate::{Exit, args::KernelsArgs, output};

const HELP: &str = "\
A bank of kernels is written as groups, separated by `;`. A group is kernels, then the columns they look at:

  rbf(0.5|1|2), poly(1..3) on all, each; linear on cols(1-4, age)

Kernels
  linear                ⟨x, z⟩
  poly(degrees)         (⟨x, z⟩ + 1)^d; poly(2, c = 0) changes the constant
  rbf(widths)           exp(−‖x − z‖² / (2 w²)); rbf(auto) takes widths around the median distance
  laplace(widths)       exp(−‖x − z‖₁ / w)
  precomputed(view)     kernel values computed elsewhere

Columns (after `on`; `all` when left out)
  all                   every column at once
  each                  one kernel per column
  cols(1-4, age)        these, by number counted from 1 or by name; names may be quoted
  bands(5)              five contiguous runs of columns
  view(name)            a named group of columns

Numbers
  0.5   2^-3            plain, or a power
  1|2|5                 a list
  1..3   2^-3..2^6      a range; powers step by exponent

Banks with a name
  auto                  rbf around the median distance and poly(1..3), on all and (to 100 columns) each
  paper                 rbf(2^-3..2^6), poly(1..3) on all, each

`mercer kernels --check TEXT` reads a text and prints it in its canonical form.
";

pub fn run(args: &KernelsArgs) -> Result<Exit> {
    match &args.check {
        Some(text) => {
            let canonical = language::parse(text)?.to_string();
            if args.json {
                output::json(&json!({ "text": text, "canonical": canonical }))?;
            } else {
                output::print(&format!("{canonical}\n"))?;
            }
        }
        None if args.json => output::json(&json!({ "help": HELP }))?,
        None => output::print(HELP)?,
    }
    Ok(Exit::Done)
}
