//! The best single kernel: the support vector machine baseline that weight learning has to beat.
//!
//! Chooses  t = argmax over kernels of the mean over folds of score(machine on K_t, fitted without
//!   the fold; the fold's rows),
//! accuracy or −RMSE, ties to the first; then solves  min over f, b :
//!   Σ_i c_i ℓ(y_i, f(x_i) + b) + ½ ‖f‖²  for K_t on all rows.
//! In: terms K_1..K_M, samples, folds.   Out: θ = e_t, a, b and the machine's certified gap.
//!   Page docs/methods/single.md.

use rayon::prelude::*;

use super::Method;
use crate::{
    Error, Model, Result,
    data::Target,
    gram::{GramSource, Groups, Scratch},
    linalg::Matrix,
    machine::Fitting,
    model::{Fit, Predictor},
    outer::{Memory, Part, Problem, fixed},
    prepare::{InnerFold, Job, MachineTask, Prepared, Samples},
    request::{Single, TrainSpec},
    trace::{Observer, Silent, Status},
};

/// Number of kernels that are scored between two questions to the observer.
const AT_ONCE: usize = 16;

impl Method for Single {
    fn fit(
        &self,
        job: &Job<'_>,
        memories: &mut Vec<Memory>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let (theta, stopped) = choose(job, (self.folds, self.seed), observer)?;
        let mut fits = job.global_fits(memories, observer, &mut |problem, memory, observer| {
            fixed(problem, theta.clone(), memory, observer)
        })?;
        if let Some(warning) = stopped {
            fits.iter_mut().for_each(|f| f.certificate.status = Status::Stopped);
            fits[0].warnings.push(warning);
        }
        job.global_model(&fits)
    }

    fn wrong_weights(&self, theta: &[f64]) -> Option<String> {
        let one = theta.iter().filter(|t| **t != 0.0).eq([&1.0]);
        (!one).then(|| "the weights are not those of one kernel".into())
    }
}

/// Weight 1 on the kernel that predicts best on rows it was not fitted to, one for all machines of
/// the model. Where the observer ends the search, the best by the folds that were done (in the
/// first fold, of the kernels that were tried), and a word about it.
fn choose(
    job: &Job<'_>,
    (folds, seed): (usize, u64),
    observer: &mut dyn Observer,
) -> Result<(Vec<f64>, Option<String>)> {
    let terms = job.prepared.grams.n_terms();
    let remedy = "cross-validation needs at least two rows of every class";
    let mut totals = vec![0.0; terms];
    let mut stopped = None;
    'folds: for (k, fold) in
        InnerFold::all(job.prepared, job.request, (folds, seed), remedy)?.enumerate()
    {
        let contest = Contest::new(fold?, job.request)?;
        let mut scores: Vec<f64> = Vec::with_capacity(terms);
        while scores.len() < terms {
            let next = scores.len()..terms.min(scores.len() + AT_ONCE);
            scores.extend(
                next.into_par_iter().map(|t| contest.score(t)).collect::<Result<Vec<_>>>()?,
            );
            if scores.len() < terms && observer.on_pause().is_break() {
                if k == 0 {
                    totals = scores;
                }
                stopped = Some(format!(
                    "the search for the best kernel was stopped in fold {} of {folds}",
                    k + 1
                ));
                break 'folds;
            }
        }
        totals.iter_mut().zip(scores).for_each(|(sum, s)| *sum += s);
        if k + 1 < folds && observer.on_pause().is_break() {
            stopped = Some(format!(
                "the search for the best kernel was stopped after fold {} of {folds}",
                k + 1
            ));
            break;
        }
    }
    let best = (0..totals.len()).fold(0, |b, t| if totals[t] > totals[b] { t } else { b });
    Ok(((0..terms).map(|t| f64::from(t == best)).collect(), stopped))
}

/// The kernels against each other on one fold.
struct Contest<'a> {
    request: &'a TrainSpec,
    fold: InnerFold<'a>,
    /// All terms at once where they are computed from a table, and where each kernel stands among
    /// them.
    terms: Option<(Prepared, Vec<Option<usize>>)>,
    fitting: Fitting,
    tasks: Vec<MachineTask>,
    /// The number that targets were divided by.
    unit: f64,
    test: Samples,
}

impl<'a> Contest<'a> {
    fn new(fold: InnerFold<'a>, request: &'a TrainSpec) -> Result<Self> {
        let own = fold.train_samples();
        let terms = if fold.has_table() { Some(fold.terms()?) } else { None };
        let (fitting, tasks, unit) =
            (own.fitting(request)?, own.machines(request)?, own.unit(request));
        let test = fold.test_samples();
        Ok(Self { request, fold, terms, fitting, tasks, unit, test })
    }

    /// How well kernel t alone predicts the test rows.
    fn score(&self, t: usize) -> Result<f64> {
        let decision = match &self.terms {
            Some((terms, place)) => match place[t] {
                None => self.constant(),
                Some(at) => self.decision(terms, at, t)?,
            },
            None => match self.fold.ready(&[t]) {
                Err(Error::Data { .. }) => self.constant(),
                Err(e) => return Err(e),
                Ok(terms) => self.decision(&terms, 0, t)?,
            },
        };
        let task = self.test.prediction(self.request.multi_class);
        Ok(score(&self.test.target, &task.decide(&decision), &self.test.weights))
    }

    /// Decision values on the test rows of all machines on kernel `t`, the one at `at` among
    /// `terms`.
    fn decision(&self, terms: &Prepared, at: usize, t: usize) -> Result<Matrix> {
        let mut fit = match &self.terms {
            Some(_) => self.fit(&Groups::subset(&terms.grams, &[at]))?,
            None => self.fit(&terms.grams)?,
        };
        fit.weights = (0..terms.grams.n_terms()).map(|t| f64::from(t == at)).collect();
        let table = terms.table_and_kernels();
        let predictor = Predictor::new(&[fit], &terms.grams, table, self.request.normalize);
        Ok(self.fold.decision(&predictor, terms, &[t]))
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.tasks.iter().map(|t| t.part(&self.fitting, self.request)).collect()
    }

    /// All machines on the one term of `grams`.
    fn fit(&self, grams: &dyn GramSource) -> Result<Fit> {
        let problem = Problem {
            grams,
            parts: self.parts(),
            machine: &*self.fitting.machine(),
            budget: self.fold.options().budget,
            scratch: Scratch::default(),
            tol: self.request.tol,
            max_iter: 1,
            working_set: false,
            screening: false,
        };
        let mut fit = fixed(&problem, vec![1.0], &mut Memory::default(), &mut Silent)?;
        fit.parts.iter_mut().for_each(|p| p.rescale(self.unit));
        Ok(fit)
    }

    /// A kernel that is constant on the fold's training rows predicts what no kernel predicts.
    fn constant(&self) -> Matrix {
        let constant = |p: &Part<'_>| self.unit * p.task.best_bias(&vec![0.0; p.task.y.len()]);
        let biases = self.parts().iter().map(constant).collect::<Vec<_>>();
        let mut out = Matrix::zeros(self.test.kept.len(), biases.len());
        (0..out.rows()).for_each(|i| out.row_mut(i).copy_from_slice(&biases));
        out
    }
}

/// Share of the weight that is predicted right, or −root mean squared error.
fn score(truth: &Target, predicted: &Target, weights: &[f64]) -> f64 {
    let mean = |value: &dyn Fn(usize) -> f64| {
        weights.iter().enumerate().map(|(i, w)| w * value(i)).sum::<f64>()
            / weights.iter().sum::<f64>()
    };
    match (truth, predicted) {
        (Target::Classes { labels: y, .. }, Target::Classes { labels: p, .. }) => {
            mean(&|i| f64::from(y[i] == p[i]))
        }
        (Target::Values(y), Target::Values(p)) => -mean(&|i| (y[i] - p[i]).powi(2)).sqrt(),
        _ => f64::NEG_INFINITY,
    }
}
