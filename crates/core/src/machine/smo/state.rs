//! The multipliers, their gradient, and the steps that move one or two of them.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use super::{
    super::{
        Task,
        kernel_rows::KernelRows,
        scan::{CHUNK, Least, chunks, minimum, promise},
    },
    TUNING,
};
use crate::{
    gram::{Cell, Each},
    linalg::{Wide, wide},
};

/// Curvature below this share of the largest diagonal entry is rounding, and the pair counts as
/// flat.
const ROUNDED_CURVATURE: f64 = 1e-12;

/// Variables, gradient g = K a − y, and the one-sided slopes of ε|a| (infinite where a bound
/// forbids the move).
pub(super) struct SmoState {
    pub a: Vec<f64>,
    pub gradient: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    diagonal: Vec<f64>,
    up: Vec<f64>,
    down: Vec<f64>,
    kink: f64,
    /// Does Σ a_i = 0 bind variables in pairs?
    paired: bool,
    /// Curvature below this counts as flat.
    flat: f64,
}

impl SmoState {
    pub fn new(task: &Task<'_>, diagonal: Vec<f64>, a: Vec<f64>, f: &[f64], kink: f64) -> Self {
        let bounds = |i: usize| {
            let (low, high) = task.loss.dual_interval(task.y[i]);
            (low * task.cost[i], high * task.cost[i])
        };
        let (low, high) = (0..a.len()).map(bounds).unzip();
        let gradient = f.iter().zip(task.y).map(|(f, y)| f - y).collect();
        let flat =
            ROUNDED_CURVATURE * diagonal.iter().fold(f64::MIN_POSITIVE, |m: f64, d| m.max(*d));
        let (up, down) = (vec![0.0; a.len()], vec![0.0; a.len()]);
        let mut state =
            Self { a, gradient, low, high, diagonal, up, down, kink, paired: task.intercept, flat };
        (0..state.a.len()).for_each(|i| state.refresh(i));
        state
    }

    /// The rounding error of the gradient, from the last digit of each product in K a and |K_ij| ≤
    /// √(K_ii K_jj): smaller violations are rounding.
    pub fn noise(&self) -> f64 {
        let largest = self.diagonal.iter().fold(0.0, |m: f64, d| m.max(*d));
        let sum: f64 =
            self.a.iter().zip(&self.diagonal).map(|(a, d)| a.abs() * d.max(0.0).sqrt()).sum();
        TUNING.rounding_share * f64::EPSILON * largest.sqrt() * sum
    }

    /// Recomputes the slopes of variable i after it moved.
    fn refresh(&mut self, i: usize) {
        let a = self.a[i];
        let slope = |positive: bool| if positive { self.kink } else { -self.kink };
        self.up[i] = if a < self.high[i] { slope(a >= 0.0) } else { f64::INFINITY };
        self.down[i] = if a > self.low[i] { slope(a > 0.0) } else { f64::NEG_INFINITY };
    }

    /// Makes steps until no pair (no variable, without a bias) violates optimality by more than
    /// `tolerance`.
    pub fn optimise<R: KernelRows>(
        &mut self,
        rows: &mut R,
        tolerance: f64,
        steps_left: &mut usize,
    ) {
        let n = self.a.len();
        let mut patience = n.max(TUNING.least_steps_between_shrinks);
        while !self.steps(rows, tolerance, patience, steps_left) {
            if tolerance < self.noise() {
                return;
            }
            if n >= TUNING.least_rows_to_shrink {
                let index = self.undecided();
                if (index.len() as f64) < TUNING.shrinking_share * n as f64 {
                    let mut inner = self.select(&index);
                    inner.optimise(&mut rows.select(&index), tolerance, steps_left);
                    self.absorb(&inner, &index, rows);
                }
            }
            patience *= 2;
        }
    }

    /// Makes at most `patience` steps; true when optimal to `tolerance` (or out of steps).
    fn steps<R: KernelRows>(
        &mut self,
        rows: &mut R,
        tolerance: f64,
        patience: usize,
        steps_left: &mut usize,
    ) -> bool {
        wide(StepLoop { state: self, rows, tolerance, patience, steps_left })
    }

    /// Moves pairs, which keeps Σ a_i.
    #[inline(always)]
    fn pair_steps<R: KernelRows>(
        &mut self,
        rows: &mut R,
        tolerance: f64,
        patience: usize,
        steps_left: &mut usize,
    ) -> bool {
        let (mut i, mut lowest) = self.lowest_up();
        for _ in 0..patience {
            if *steps_left == 0 || lowest == f64::INFINITY {
                return true;
            }
            rows.fetch(i);
            let (j, highest, _) = self.best_partner(i, lowest, rows.get(i), true);
            if highest - lowest <= tolerance {
                return true;
            }
            rows.fetch(j);
            *steps_left -= 1;
            let curvature = self.diagonal[i] + self.diagonal[j] - 2.0 * rows.get(i)[j].to_f64();
            let step = self.exact_step(i, j, curvature.max(self.flat));
            self.refresh(i);
            self.refresh(j);
            (i, lowest) = self.update_gradient(step, rows.get(i), rows.get(j));
        }
        false
    }

    /// Moves, where no constraint binds Σ a_i, the variable that gains most alone, or against the
    /// partner with which it gains more. Such pairs are not needed, but they keep the sum of all
    /// multipliers, along which kernels are steep: several times faster where C is large.
    #[inline(always)]
    fn free_steps<R: KernelRows>(
        &mut self,
        rows: &mut R,
        tolerance: f64,
        patience: usize,
        steps_left: &mut usize,
    ) -> bool {
        for _ in 0..patience {
            let (i, violation) = self.best_single();
            if *steps_left == 0 || violation <= tolerance {
                return true;
            }
            rows.fetch(i);
            *steps_left -= 1;
            let (rise, fall) = (self.gradient[i] + self.up[i], -(self.gradient[i] + self.down[i]));
            let upward = rise <= fall;
            let (j, _, gain) = self.best_partner(i, rise.min(fall), rows.get(i), upward);
            if gain > promise(rise.min(fall), self.diagonal[i], self.flat) {
                rows.fetch(j);
                let curvature = self.diagonal[i] + self.diagonal[j] - 2.0 * rows.get(i)[j].to_f64();
                let (grows, shrinks) = if upward { (i, j) } else { (j, i) };
                let step = self.exact_step(grows, shrinks, curvature.max(self.flat));
                self.refresh(j);
                self.add_row(step, rows.get(grows));
                self.add_row(-step, rows.get(shrinks));
            } else {
                let step = self.exact_single_step(i, upward);
                self.add_row(step, rows.get(i));
            }
            self.refresh(i);
        }
        false
    }

    /// The variable that gains most from moving alone, and the largest violation of all.
    #[inline(always)]
    fn best_single(&self) -> (usize, f64) {
        let (mut best, mut least) = (Least::NONE, 0.0f64);
        let (mut slopes, mut values) = ([0.0; CHUNK], [0.0; CHUNK]);
        for range in chunks(self.gradient.len()) {
            let (slopes, values) = (&mut slopes[..range.len()], &mut values[..range.len()]);
            let (g, up, down) =
                (&self.gradient[range.clone()], &self.up[range.clone()], &self.down[range.clone()]);
            for (((s, g), up), down) in slopes.iter_mut().zip(g).zip(up).zip(down) {
                let (rise, fall) = (g + up, -(g + down));
                *s = if rise < fall { rise } else { fall };
            }
            for ((v, s), d) in values.iter_mut().zip(&*slopes).zip(&self.diagonal[range.clone()]) {
                *v = -promise(*s, *d, self.flat);
            }
            least = least.min(minimum(slopes));
            best.meet(range.start, values);
        }
        (best.at, -least)
    }

    /// argmin of g + up: the variable that gains most from growing.
    #[inline(always)]
    fn lowest_up(&self) -> (usize, f64) {
        let (mut best, mut values) = (Least::NONE, [0.0; CHUNK]);
        for range in chunks(self.gradient.len()) {
            let (values, g) = (&mut values[..range.len()], &self.gradient[range.clone()]);
            for ((v, g), up) in values.iter_mut().zip(g).zip(&self.up[range.clone()]) {
                *v = g + up;
            }
            best.meet(range.start, values);
        }
        (best.at, best.value)
    }

    /// [Fan2005] WSS 2: the partner whose pair with i promises the largest decrease (rate_j − own)²
    /// / (K_ii + K_jj − 2 K_ij), where `own` is the slope along i's move, upward or not, and
    /// −rate_k the slope along the opposite move of k. Returns it, the largest rate and the
    /// promise.
    #[inline(always)]
    fn best_partner<T: Cell>(
        &self,
        i: usize,
        own: f64,
        row: &[T],
        upward: bool,
    ) -> (usize, f64, f64) {
        let (sign, slopes) = if upward { (-1.0, &self.down) } else { (1.0, &self.up) };
        // Promises are negated, and so are rates: one routine finds all extremes.
        let (mut best, mut least) = (Least::NONE, f64::INFINITY);
        let (mut opposite, mut values) = ([0.0; CHUNK], [0.0; CHUNK]);
        for range in chunks(self.gradient.len()) {
            let (opposite, values) = (&mut opposite[..range.len()], &mut values[..range.len()]);
            let (g, slopes) = (&self.gradient[range.clone()], &slopes[range.clone()]);
            for ((o, g), slope) in opposite.iter_mut().zip(g).zip(slopes) {
                *o = sign * (g + slope);
            }
            let (d, row) = (&self.diagonal[range.clone()], &row[range.clone()]);
            for (((v, o), d), k) in values.iter_mut().zip(&*opposite).zip(d).zip(row) {
                *v = -promise(own + *o, self.diagonal[i] + d - 2.0 * k.to_f64(), self.flat);
            }
            least = least.min(minimum(opposite));
            best.meet(range.start, values);
        }
        (best.at, -least, -best.value)
    }

    /// Moves a_i up and a_j down by the same exact minimising amount and returns it.
    fn exact_step(&mut self, i: usize, j: usize, curvature: f64) -> f64 {
        let limit = (self.high[i] - self.a[i]).min(self.a[j] - self.low[j]);
        let slope = (self.gradient[i] + self.up[i]) - (self.gradient[j] + self.down[j]);
        let crossing = |a: f64| if a < 0.0 { -a } else { f64::INFINITY };
        let (ci, cj) = (crossing(self.a[i]), crossing(-self.a[j]));
        let step = self.line_minimum(slope, curvature, [ci.min(cj), ci.max(cj)], limit);
        self.move_by(i, step);
        self.move_by(j, -step);
        step
    }

    /// Moves a_i alone by the exact minimising amount and returns it.
    fn exact_single_step(&mut self, i: usize, upward: bool) -> f64 {
        let (a, curvature) = (self.a[i], self.diagonal[i].max(self.flat));
        let crossing = |a: f64| [if a < 0.0 { -a } else { f64::INFINITY }, f64::INFINITY];
        let step = if upward {
            self.line_minimum(
                self.gradient[i] + self.up[i],
                curvature,
                crossing(a),
                self.high[i] - a,
            )
        } else {
            -self.line_minimum(
                -(self.gradient[i] + self.down[i]),
                curvature,
                crossing(-a),
                a - self.low[i],
            )
        };
        self.move_by(i, step);
        step
    }

    /// The minimiser in [0, limit] of a function with derivative slope + curvature·t, slope < 0,
    /// that jumps by 2ε at each crossing of zero by a multiplier.
    fn line_minimum(&self, mut slope: f64, curvature: f64, crossings: [f64; 2], limit: f64) -> f64 {
        let mut at = 0.0;
        if self.kink > 0.0 {
            for crossing in crossings {
                if crossing >= limit || slope + curvature * (crossing - at) >= 0.0 {
                    break;
                }
                slope += curvature * (crossing - at) + 2.0 * self.kink;
                at = crossing;
                if slope >= 0.0 {
                    return at;
                }
            }
        }
        (at - slope / curvature).min(limit)
    }

    /// a_i += step. Bounds and kinks are reached exactly, so that a multiplier at a bound is
    /// recognised as such.
    fn move_by(&mut self, i: usize, step: f64) {
        let (a, low, high) = (self.a[i], self.low[i], self.high[i]);
        self.a[i] = if step == high - a {
            high
        } else if -step == a - low {
            low
        } else if step == -a {
            0.0
        } else {
            a + step
        };
    }

    /// g += step (K_i − K_j) and, in the same pass, the next argmin of g + up.
    #[inline(always)]
    fn update_gradient<T: Cell>(&mut self, step: f64, row_i: &[T], row_j: &[T]) -> (usize, f64) {
        let (mut best, mut values) = (Least::NONE, [0.0; CHUNK]);
        for range in chunks(self.gradient.len()) {
            let (values, g) = (&mut values[..range.len()], &mut self.gradient[range.clone()]);
            for ((g, i), j) in g.iter_mut().zip(&row_i[range.clone()]).zip(&row_j[range.clone()]) {
                *g += step * (i.to_f64() - j.to_f64());
            }
            for ((v, g), up) in values.iter_mut().zip(&*g).zip(&self.up[range.clone()]) {
                *v = g + up;
            }
            best.meet(range.start, values);
        }
        (best.at, best.value)
    }

    /// g += step K_i.
    fn add_row<T: Cell>(&mut self, step: f64, row: &[T]) {
        wide(Each(&mut self.gradient, row, |g: &mut f64, k: f64| *g += step * k));
    }

    /// Variables that could still take part in a violating pair (violate by themselves, without a
    /// bias).
    fn undecided(&mut self) -> Vec<usize> {
        let (lowest, highest) = if self.paired {
            let highest = (0..self.a.len())
                .map(|k| self.gradient[k] + self.down[k])
                .fold(f64::NEG_INFINITY, f64::max);
            (self.lowest_up().1, highest)
        } else {
            let (_, violation) = self.best_single();
            (-violation, violation)
        };
        (0..self.a.len())
            .filter(|&k| {
                self.gradient[k] + self.up[k] < highest || self.gradient[k] + self.down[k] > lowest
            })
            .collect()
    }

    fn select(&self, index: &[usize]) -> Self {
        let pick = |v: &[f64]| index.iter().map(|&i| v[i]).collect::<Vec<f64>>();
        Self {
            a: pick(&self.a),
            gradient: pick(&self.gradient),
            low: pick(&self.low),
            high: pick(&self.high),
            diagonal: pick(&self.diagonal),
            up: pick(&self.up),
            down: pick(&self.down),
            kink: self.kink,
            paired: self.paired,
            flat: self.flat,
        }
    }

    /// Takes over what `inner` found for `index` and brings every gradient up to date.
    fn absorb<R: KernelRows>(&mut self, inner: &Self, index: &[usize], rows: &mut R) {
        for (k, &i) in index.iter().enumerate() {
            let change = inner.a[k] - self.a[i];
            if change != 0.0 {
                rows.fetch(i);
                self.add_row(change, rows.get(i));
                self.a[i] = inner.a[k];
                self.refresh(i);
            }
        }
    }
}

/// The loop of [`SmoState::steps`], compiled for every instruction set.
struct StepLoop<'a, R> {
    state: &'a mut SmoState,
    rows: &'a mut R,
    tolerance: f64,
    patience: usize,
    steps_left: &'a mut usize,
}

impl<R: KernelRows> Wide for StepLoop<'_, R> {
    type Out = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { state, rows, tolerance, patience, steps_left } = self;
        if state.paired {
            state.pair_steps(rows, tolerance, patience, steps_left)
        } else {
            state.free_steps(rows, tolerance, patience, steps_left)
        }
    }
}
