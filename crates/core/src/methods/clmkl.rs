//! Convex localized MKL.
//!
//! Solves  min over β, f, b :  Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ Σ_jm ‖f_jm‖²/β_jm,
//!   f(x) = Σ_j c_j(x) Σ_m f_jm(x),   β_j in Θ for every region j.
//! In: terms diag(c_j) K_m diag(c_j), region after region, a task, Θ.
//!   Out: β, a, b and a certified gap.   Paper: [Lei2016]; page
//! docs/methods/clmkl.md.
//!
//! For fixed memberships this is global MKL over the product of the Θ, so every solver of global
//! MKL is one here.

use super::{
    Method,
    lp::{SMALL, STEADY},
};
use crate::{
    Model, Result,
    gram::GramSource,
    localize::{Clusters, LocalizedGramSet, kernel_kmeans, memberships, sharpness},
    model::Fit,
    outer::{Memory, Problem, alternating, fixed, joint_or, level, settle},
    prepare::{Job, LocalParts, Placed, Prepared, Regions, one_hot},
    request::{Clmkl, Evenness, TrainSpec},
    trace::Observer,
    weights::{ElasticNet, LpBall, PerRegion},
};

impl Method for Clmkl {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let prepared = job.prepared;
        let machines = job.parts();
        memories.resize(machines.len(), Memory::default());
        let grouped = prepared.groups(job.request)?;
        let base: &dyn GramSource = grouped.as_ref().map_or(&prepared.grams, |g| g);
        let placed = place(self, prepared, job.request)?;
        let local = LocalizedGramSet::cross(base, &placed.memberships, prepared.budget_left());
        let regions = placed.memberships.cols();
        let mut built = LocalParts::default();
        for (k, (parts, memory)) in machines.into_iter().zip(memories).enumerate() {
            job.announce(k, observer);
            // Multipliers of another fit are feasible here; its weights and cuts belong to other
            // terms.
            let mut own = Memory { duals: memory.duals.take(), ..Memory::default() };
            let mut fit = solve(&job.problem(parts, &local), regions, self, &mut own, observer)?;
            *memory = Memory { duals: own.duals, ..Memory::default() };
            if let Some(groups) = &grouped {
                let kernels = base.n_terms();
                fit.weights = fit.weights.chunks(kernels).flat_map(|w| groups.expand(w)).collect();
            }
            prepared.to_target_units(&mut fit, job.request);
            built.fits.push(fit);
        }
        built.add_placing(placed.gating(None));
        for fit in &built.fits {
            let weights: Vec<&[f64]> = fit.weights.chunks(prepared.grams.n_terms()).collect();
            for part in &fit.parts {
                for (j, weights) in weights.iter().enumerate() {
                    let member = |(i, a): (usize, &f64)| a * placed.memberships[(i, j)];
                    let scaled: Vec<f64> = part.dual.iter().enumerate().map(member).collect();
                    built.decisions.push(prepared.expand(weights, &scaled));
                }
            }
        }
        built.assemble(job)
    }
}

/// Minimises over one ℓp ball per region (an elastic net where v is given), on terms that are
/// already localized.
fn solve(
    problem: &Problem<'_>,
    regions: usize,
    Clmkl { p, v, .. }: &Clmkl,
    memory: &mut Memory,
    observer: &mut dyn Observer,
) -> Result<Fit> {
    let (p, v) = (*p, *v);
    if p == f64::INFINITY && v.is_none() {
        return fixed(problem, vec![1.0; problem.grams.n_terms()], memory, observer);
    }
    if let Some(v) = v {
        let set = PerRegion::new(ElasticNet::new(v, p)?, regions);
        let fit =
            joint_or(problem, &set, false, memory, observer, &|m, o| level(problem, &set, m, o));
        return settle(problem, &set, fit?);
    }
    let set = PerRegion::new(LpBall::new(p)?, regions);
    let fit = joint_or(problem, &set, false, memory, observer, &|memory, observer| {
        if p < SMALL {
            return level(problem, &set, memory, observer);
        }
        alternating(problem, &set, p >= STEADY, memory, observer)
    });
    settle(problem, &set, fit?)
}

/// Finds or takes the regions, and the memberships of the training rows in them.
fn place(own: &Clmkl, prepared: &Prepared, request: &TrainSpec) -> Result<Placed> {
    let Clmkl { n_clusters, evenness, cluster_kernel, n_init, seed, .. } = own;
    if let Some(placed) = prepared.regions_without_kernel(request)? {
        return Ok(placed);
    }
    let source = prepared.placing_kernel(request, "cluster_kernel", cluster_kernel.as_deref())?;
    let k = source.gram(&prepared.grams);
    let given = match &prepared.regions {
        Some(Regions::Labels(labels)) => Some(labels),
        _ => None,
    };
    let clusters = match given {
        Some(labels) => Clusters::new(&k, labels.clone())?,
        None => kernel_kmeans(&k, *n_clusters, *n_init, *seed)?,
    };
    let distances = clusters.distances(&k);
    let tau = match (evenness, given) {
        (Some(Evenness::Word(_)), _) | (None, Some(_)) => None,
        (Some(Evenness::Average(target)), _) => Some(sharpness(&distances, Some(*target))?),
        (None, None) => Some(sharpness(&distances, None)?),
    };
    // Regions that were given hold as they are; memberships in regions that were found follow the
    // rule that places new rows.
    let c = match (tau, given) {
        (None, Some(labels)) => one_hot(labels, clusters.len()),
        _ => memberships(&distances, tau),
    };
    Ok(Placed::by_centres(prepared, c, tau, &clusters, source))
}
