//! What the methods share whose weights come from a gate: one fit per machine, and a decision
//! function behind each kernel's gate.

use crate::{
    Model, Result,
    gram::GramSource,
    model::{Expansion, Fit},
    outer::{Gate, Gated, Memory, Problem, fit_gate},
    prepare::{Job, LocalParts, Placing},
    trace::Observer,
};

/// Learns a gate of the form given.
pub(super) type FitGate<'f> = dyn FnMut(&dyn Gate) -> Result<(Fit, Gated)> + 'f;

/// Learns the gate of one problem, and says how new rows are placed.
pub(super) type Learn<'l> =
    dyn FnMut(&Problem<'_>, &mut FitGate<'_>) -> Result<((Fit, Gated), Placing)> + 'l;

/// Fits every machine with a gate of its own, or one for all, and makes the model. `starts`: how
/// many, and the seed of the random ones.
pub(super) fn fit(
    job: &Job<'_>,
    starts: (usize, u64),
    memories: &mut Vec<Memory>,
    observer: &mut dyn Observer,
    learn: &mut Learn<'_>,
) -> Result<Model> {
    let prepared = job.prepared;
    let machines = job.parts();
    memories.resize(machines.len(), Memory::default());
    let mut built = LocalParts::default();
    for (k, (parts, memory)) in machines.into_iter().zip(memories).enumerate() {
        job.announce(k, observer);
        let problem = job.problem(parts, &prepared.grams);
        let mut duals = memory.duals.take();
        let ((mut fit, gated), placing) =
            learn(&problem, &mut |gate| fit_gate(&problem, gate, starts, duals.take(), observer))?;
        built.add_placing(placing);
        prepared.to_target_units(&mut fit, job.request);
        for part in &fit.parts {
            for m in 0..prepared.grams.n_terms() {
                let scaled: Vec<f64> =
                    part.dual.iter().zip(gated.gates.column(m)).map(|(a, g)| a * g).collect();
                let mut own = Expansion::default();
                own.add(m, 1.0, (&prepared.grams, m), &scaled);
                built.decisions.push(own);
            }
        }
        built.fits.push(fit);
    }
    built.assemble(job)
}
