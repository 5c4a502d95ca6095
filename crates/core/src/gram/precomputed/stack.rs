//! Ready-made Gram matrices, kernel axis last: checked in one pass, then factors by their columns, and triangles of what is no factor.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use rayon::prelude::*;

use super::{
    super::{
        BuildOptions, GramSet,
        build::{Assembly, Built, Raw},
        dense::Packed,
        stored::Stored,
    },
    check,
    repair::repair,
};
use crate::{
    Error, Result,
    data::Missing,
    kernels::{Indefinite, Normalize},
    linalg::{Matrix, Wide, wide},
};

/// Rows looked at together, and numbers at a time.
const ROWS: usize = 4;
const LINE: usize = 8;
/// Triangles held at a time, in bytes.
const BATCH_BYTES: u64 = 1 << 26;

/// Ready-made kernel values, kernel axis last: entry (i, j) of kernel t is `data[(i·cols + j)·terms + t]`.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Samples.
    pub rows: usize,
    /// Training samples.
    pub cols: usize,
    /// Kernels.
    pub terms: usize,
    /// The numbers.
    pub data: &'a [f64],
}

impl Stack<'_> {
    /// Refuses anything but kernels of some rows with themselves.
    pub fn check_square(&self) -> Result<()> {
        let (n, m) = (self.rows, self.terms);
        if self.cols != n || n == 0 || m == 0 || self.data.len() != n * n * m {
            let got = format!("({n}, {}, {m})", self.cols);
            return Err(Error::shape("ready-made kernels", "(n, n, kernels), kernel axis last, none of them 0", got));
        }
        Ok(())
    }

    /// The numbers of these rows and columns, in their order.
    pub fn block(&self, rows: &[usize], cols: &[usize]) -> Vec<f64> {
        let cell = |i: usize, j: usize| &self.data[(i * self.cols + j) * self.terms..][..self.terms];
        rows.iter().flat_map(|&i| cols.iter().flat_map(move |&j| cell(i, j).iter().copied())).collect()
    }
}

impl GramSet {
    /// Ready-made Gram matrices, checked: square, finite, symmetric, positive semidefinite.
    pub fn from_stack(stack: Stack<'_>, names: &[String], options: &BuildOptions) -> Result<Self> {
        Self::from_stack_repaired(stack, names, options, Indefinite::Refuse)
    }

    /// Ready-made Gram matrices, checked: square, finite, symmetric; and what is not positive semidefinite treated as asked.
    pub fn from_stack_repaired(
        stack: Stack<'_>,
        names: &[String],
        options: &BuildOptions,
        how: Indefinite,
    ) -> Result<Self> {
        options.refuse_precomputed()?;
        let (n, terms) = (stack.rows, stack.terms);
        let mut assembly = Assembly::new(options, n, terms, Missing::Refuse);
        let probe = check::probe(n);
        let (seen, images) = stack.look(&probe);
        let mut doubtful = (0..terms).filter(|&t| seen.doubtful(t));
        doubtful.try_for_each(|t| check::symmetric(&stack.kernel(t), &names[t]).map(|_| ()))?;
        let scaled = !matches!(options.normalize, Normalize::Center | Normalize::Spherical);
        let factor = |t: usize| {
            let found = options.factor(&Ready { stack, t }, &names[t]);
            let image = || images[t..].iter().step_by(terms).copied().collect();
            let like =
                |built: &Built| matches!(&built.term, Stored::Factor(f) if check::is_like_factor(image(), &probe, f));
            let sure = scaled && matches!(&found, Ok(Some(built)) if like(built));
            (found, sure)
        };
        let found: Vec<(Result<Option<Built>>, bool)> = (0..terms).into_par_iter().map(factor).collect();
        let mut others = Vec::new();
        for (t, (found, sure)) in found.into_iter().enumerate() {
            match found {
                Ok(Some(built)) if sure => assembly.place(t, built),
                found => others.push((t, found)),
            }
        }
        assembly.reserve(0)?;
        let at_once = (BATCH_BYTES / Packed::<f64>::bytes(n).max(1)).max(1) as usize;
        while !others.is_empty() {
            let rest = others.split_off(at_once.min(others.len()));
            assembly.add_doubtful(&stack, names, std::mem::replace(&mut others, rest), how)?;
        }
        assembly.share(&[&(0..terms).collect::<Vec<_>>()], false)?;
        Ok(assembly.finish())
    }
}

/// A kernel that is still to be proved positive semidefinite, with the factor that was found for it.
type Doubtful = (usize, Result<Option<Built>>);

impl Assembly<'_> {
    /// Terms of kernels that are positive semidefinite or made so: factors, or their triangles.
    fn add_doubtful(
        &mut self,
        stack: &Stack<'_>,
        names: &[String],
        kernels: Vec<Doubtful>,
        how: Indefinite,
    ) -> Result<()> {
        let options = self.options;
        let triangles = stack.triangles(&kernels.iter().map(|(t, _)| *t).collect::<Vec<_>>());
        let prove = |room: &mut Matrix, ((t, found), mut k): (Doubtful, Packed<f64>)| {
            let (name, proof) = (&names[t], check::positive_semidefinite(&k, &names[t], room));
            if proof.is_ok() || how == Indefinite::Refuse {
                // What is wrong with an indefinite matrix is a better message than that it cannot be normalised.
                return proof.and(found).map(|built| (t, k, built, None));
            }
            let fixed = repair(&stack.kernel(t), name, how)?;
            if let Some(fixed) = &fixed {
                k = Packed::lower(&fixed.matrix);
            }
            options.factor(&k, name).map(|built| (t, k, built, fixed))
        };
        let proved: Vec<Result<_>> =
            kernels.into_par_iter().zip(triangles).map_init(Matrix::default, |room, pair| prove(room, pair)).collect();
        let mut missing = Vec::new();
        // In order, so that the error is that of the first.
        for proved in proved {
            let (t, k, built, fixed) = proved?;
            if let Some(fixed) = fixed {
                self.repair(t, fixed);
            }
            match built {
                Some(built) => self.place(t, built),
                None => missing.push((t, k)),
            }
        }
        let single = self.reserve(missing.len())?;
        let dense: Vec<(usize, Result<Built>)> =
            missing.into_par_iter().map(|(t, k)| (t, options.triangle(k, &names[t], single))).collect();
        dense.into_iter().try_for_each(|(t, built)| built.map(|built| self.place(t, built)))
    }
}

/// One kernel of a stack.
struct Ready<'a> {
    stack: Stack<'a>,
    t: usize,
}

impl Raw for Ready<'_> {
    fn diagonal(&self) -> Vec<f64> {
        (0..self.stack.rows).map(|i| self.stack.cell(i, i)[self.t]).collect()
    }

    fn head_of_column(&self, j: usize, out: &mut [f64]) {
        // Symmetric: a row is a column.
        let row = self.stack.data[j * self.stack.cols * self.stack.terms + self.t..].iter().step_by(self.stack.terms);
        out.iter_mut().zip(row).for_each(|(o, x)| *o = *x);
    }
}

impl Stack<'_> {
    /// Entry (i, j) of all kernels.
    fn cell(&self, i: usize, j: usize) -> &[f64] {
        &self.data[(i * self.cols + j) * self.terms..][..self.terms]
    }

    /// Entries (i, j) and those right of it, of all kernels.
    fn cells(&self, i: usize, j: usize) -> &[f64] {
        &self.data[(i * self.cols + j) * self.terms..]
    }

    /// Kernel t, both triangles.
    fn kernel(&self, t: usize) -> Matrix {
        Matrix::from_parts(self.rows, self.cols, self.data[t..].iter().step_by(self.terms).copied().collect())
    }

    /// The lower triangles of some kernels.
    fn triangles(&self, kernels: &[usize]) -> Vec<Packed<f64>> {
        Packed::several(self.rows, kernels.len(), |i, rows| {
            for j in 0..=i {
                let cell = self.cell(i, j);
                rows.iter_mut().zip(kernels).for_each(|(row, &t)| row[j] = cell[t]);
            }
        })
    }

    /// One pass over all numbers: what it shows, and T v for the triangle T of every kernel, a row per sample.
    fn look(&self, probe: &[f64]) -> (Seen, Vec<f64>) {
        let (terms, next) = (self.terms, self.cols * self.terms);
        let mut images = vec![0.0; self.rows * terms];
        let blocks = images.par_chunks_mut(ROWS * terms.max(1)).enumerate();
        let seen = blocks.fold(
            || Seen::nothing(terms),
            |mut seen, (b, images)| {
                let (first, last) = (ROWS * b, ROWS * b + images.len() / terms);
                // Cells below and right of the diagonal block come four by four.
                let square = if last - first == ROWS { first } else { 0 };
                for j in 0..square {
                    let own = [0, 1, 2, 3].map(|r| self.cell(first + r, j));
                    wide(Look { own, other: self.cells(j, first), next, v: probe[j], seen: &mut seen, images });
                }
                for (i, image) in (first..last).zip(images.chunks_exact_mut(terms)) {
                    for j in square..=i {
                        let (own, other) = ([self.cell(i, j)], self.cells(j, i));
                        wide(Look { own, other, next, v: probe[j], seen: &mut seen, images: image });
                    }
                }
                seen
            },
        );
        let seen = seen.reduce(|| Seen::nothing(terms), Seen::with);
        (seen, images)
    }
}

/// What reading kernels has shown, by kernel.
struct Seen {
    /// The largest absolute entry.
    largest: Vec<f64>,
    /// How far apart the two sides of the diagonal are.
    apart: Vec<f64>,
    /// A sum that is finite where all entries are.
    sum: Vec<f64>,
}

impl Seen {
    fn nothing(terms: usize) -> Self {
        Self { largest: vec![0.0; terms], apart: vec![0.0; terms], sum: vec![0.0; terms] }
    }

    fn with(mut self, other: Self) -> Self {
        self.largest.iter_mut().zip(&other.largest).for_each(|(x, y)| *x = larger(*x, *y));
        self.apart.iter_mut().zip(&other.apart).for_each(|(x, y)| *x = larger(*x, *y));
        self.sum.iter_mut().zip(&other.sum).for_each(|(x, y)| *x += y);
        self
    }

    /// Could kernel t fail [`check::symmetric`]?
    fn doubtful(&self, t: usize) -> bool {
        !self.sum[t].is_finite() || self.apart[t] > check::APART * self.largest[t]
    }
}

/// Entries of all kernels in some rows and one column, those on the other side of the diagonal, and what they add to the images.
struct Look<'a, const R: usize> {
    own: [&'a [f64]; R],
    other: &'a [f64],
    /// From `other` to what it will be for the next column.
    next: usize,
    v: f64,
    seen: &'a mut Seen,
    images: &'a mut [f64],
}

impl<const R: usize> Wide for Look<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let terms = self.own[0].len();
        let whole = terms / LINE * LINE;
        for t in (0..whole).step_by(LINE) {
            self.line::<LINE>(terms, t);
        }
        for t in whole..terms {
            self.line::<1>(terms, t);
        }
    }
}

impl<const R: usize> Look<'_, R> {
    /// Of so many kernels from t on.
    #[inline(always)]
    fn line<const N: usize>(&mut self, terms: usize, t: usize) {
        let load = |numbers: &[f64], at: usize| -> [f64; N] { std::array::from_fn(|k| numbers[at..at + N][k]) };
        let (mut largest, mut apart, mut sum) =
            (load(&self.seen.largest, t), load(&self.seen.apart, t), load(&self.seen.sum, t));
        for r in 0..R {
            fetch(self.other, self.next + r * terms + t);
            let (own, other, mut image) =
                (load(self.own[r], t), load(self.other, r * terms + t), load(self.images, r * terms + t));
            for k in 0..N {
                let differ = own[k] - other[k];
                largest[k] = larger(own[k].abs(), largest[k]);
                apart[k] = larger(differ.abs(), apart[k]);
                sum[k] += differ;
                image[k] += self.v * own[k];
            }
            self.images[r * terms + t..][..N].copy_from_slice(&image);
        }
        self.seen.largest[t..t + N].copy_from_slice(&largest);
        self.seen.apart[t..t + N].copy_from_slice(&apart);
        self.seen.sum[t..t + N].copy_from_slice(&sum);
    }
}

/// Has memory bring a number that will be read soon, if there is one.
#[inline(always)]
fn fetch(numbers: &[f64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < numbers.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies inside the slice, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (numbers, at);
}

/// One instruction, and `y` where `x` is not a number.
#[inline(always)]
fn larger(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}
