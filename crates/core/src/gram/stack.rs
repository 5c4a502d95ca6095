//! Ready-made Gram matrices, kernel axis last: turned into triangles, checked and stored, some kernels at a time.

#![allow(clippy::inline_always)] // inlined into each instruction-set variant: that is the point

use std::ops::Range;

use rayon::prelude::*;

use super::{
    BuildOptions, GramSet, Stack,
    build::{Assembly, Built},
    check,
    packed::Packed,
    repair::repair,
    set::Stored,
};
use crate::{
    Result,
    kernels::{Indefinite, Normalize},
    linalg::{Matrix, Wide, wide},
};

/// Kernels and cells turned at a time: as many numbers as a line of the cache holds.
const LINE: usize = 8;
/// Triangles held at a time, in bytes, and the fewest and most of them.
const BATCH_BYTES: u64 = 1 << 26;
const FEWEST: usize = 2 * LINE;
const MOST: usize = 16 * LINE;

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
        options.refuse_ready_made()?;
        let (n, terms) = (stack.rows, stack.terms);
        let mut assembly = Assembly::new(options, n, terms);
        let fitting = BATCH_BYTES / Packed::<f64>::bytes(n).max(1);
        let at_once = usize::try_from(fitting).unwrap_or(MOST).clamp(FEWEST, MOST);
        let mut kernels = Batch::default();
        for first in (0..terms).step_by(at_once) {
            let range = first..(first + at_once).min(terms);
            let names = &names[range.clone()];
            kernels.read(&stack, range, names)?;
            if how != Indefinite::Refuse {
                assembly.repair(&stack, first, names, &mut kernels.triangles, how)?;
            }
            assembly.add_triangles(first, names, &mut kernels, how != Indefinite::Refuse)?;
        }
        assembly.share(&[&(0..terms).collect::<Vec<_>>()], false)?;
        Ok(assembly.finish())
    }
}

impl Assembly<'_> {
    /// Makes kernels of triangles that are none, from the term `first` on.
    fn repair(
        &mut self,
        stack: &Stack<'_>,
        first: usize,
        names: &[String],
        kernels: &mut [Packed<f64>],
        how: Indefinite,
    ) -> Result<()> {
        let sound =
            |room: &mut Matrix, (k, name): (&Packed<f64>, &String)| check::positive_semidefinite(k, name, room).is_ok();
        let sound: Vec<bool> = kernels.par_iter().zip(names).map_init(Matrix::default, sound).collect();
        for at in (0..kernels.len()).filter(|&at| !sound[at]) {
            if let Some(fixed) = repair(&stack.kernel(first + at), &names[at], how)? {
                kernels[at] = Packed::lower(&fixed.matrix);
                self.maps[first + at] = fixed.map;
                self.notes.push(fixed.note);
            }
        }
        Ok(())
    }

    /// Raw triangles as terms from `first` on: factors, or the triangles themselves, which are then gone from the list.
    fn add_triangles(&mut self, first: usize, names: &[String], kernels: &mut Batch, sound: bool) -> Result<()> {
        let options = self.options;
        let factor = |room: &mut Matrix, (at, k): (usize, &Packed<f64>)| {
            let (found, name) = (options.factor(k, &names[at]), &names[at]);
            let scaled = !matches!(options.normalize, Normalize::Center | Normalize::Spherical);
            // What is wrong with an indefinite matrix is a better message than that it cannot be normalised.
            match &found {
                _ if sound => {}
                Ok(Some(Built { term: Stored::Factor(f), .. }))
                    if scaled && check::is_like_factor(kernels.image(at), &kernels.probe, f) => {}
                _ => check::positive_semidefinite(k, name, room)?,
            }
            found
        };
        // In order, so that the error is that of the first.
        let found: Vec<Result<Option<Built>>> =
            kernels.triangles.par_iter().enumerate().map_init(Matrix::default, |room, k| factor(room, k)).collect();
        let mut missing = Vec::new();
        for (at, found) in found.into_iter().enumerate() {
            match found? {
                Some(built) => self.place(first + at, built),
                None => missing.push((at, std::mem::take(&mut kernels.triangles[at]))),
            }
        }
        let single = self.reserve(missing.len())?;
        let dense: Vec<(usize, Result<Built>)> =
            missing.into_par_iter().map(|(at, k)| (at, options.triangle(k, &names[at], single))).collect();
        for (at, built) in dense {
            self.place(first + at, built?);
        }
        Ok(())
    }
}

/// What reading kernels has shown, by kernel.
#[derive(Clone, Copy)]
struct Seen {
    /// The largest absolute entry.
    largest: [f64; MOST],
    /// How far apart the two sides of the diagonal are.
    apart: [f64; MOST],
    /// Not a number where an entry was not, or was infinite.
    finite: [f64; MOST],
}

impl Seen {
    const NOTHING: Self = Self { largest: [0.0; MOST], apart: [0.0; MOST], finite: [0.0; MOST] };

    fn with(mut self, other: Self) -> Self {
        for k in 0..MOST {
            self.largest[k] = larger(self.largest[k], other.largest[k]);
            self.apart[k] = larger(self.apart[k], other.apart[k]);
            self.finite[k] += other.finite[k];
        }
        self
    }

    /// Could kernel k fail [`check::symmetric`]?
    fn doubtful(&self, k: usize) -> bool {
        self.finite[k].is_nan() || self.apart[k] > check::APART * self.largest[k]
    }
}

/// Some kernels as lower triangles, in memory that is used again.
#[derive(Default)]
struct Batch {
    triangles: Vec<Packed<f64>>,
    /// A vector v with no structure.
    probe: Vec<f64>,
    /// T v for every triangle T, a row per sample.
    images: Vec<f64>,
}

impl Batch {
    /// In one pass over the numbers; what is not finite or not symmetric is refused.
    fn read(&mut self, stack: &Stack<'_>, range: Range<usize>, names: &[String]) -> Result<()> {
        let (n, count, first) = (stack.rows, range.len(), range.start);
        self.probe = check::probe(n);
        self.triangles.resize_with(count, Packed::default);
        self.triangles.iter_mut().filter(|k| k.n() != n).for_each(|k| *k = Packed::zeros(n));
        self.images.resize(n * count, 0.0);
        let (nothing, probe) = (|| (Seen::NOTHING, Vec::new()), &self.probe);
        let rows = Packed::rows_of(&mut self.triangles).into_par_iter().zip(self.images.par_chunks_mut(count));
        let seen = rows.enumerate().fold(nothing, |(seen, cells), (i, (rows, image))| {
            wide(Turn { stack: *stack, i, first, rows, probe, image, seen, cells })
        });
        let seen = seen.map(|(seen, _)| seen).reduce(|| Seen::NOTHING, Seen::with);
        range
            .filter(|t| seen.doubtful(t - first))
            .try_for_each(|t| check::symmetric(&stack.kernel(t), &names[t - first]).map(|_| ()))
    }

    /// T v for the triangle at a place.
    fn image(&self, at: usize) -> Vec<f64> {
        self.images[at..].iter().step_by(self.triangles.len()).copied().collect()
    }
}

impl Stack<'_> {
    /// Entry (i, j) of some kernels.
    #[inline(always)]
    fn cell(&self, i: usize, j: usize, first: usize, count: usize) -> &[f64] {
        &self.data[(i * self.cols + j) * self.terms + first..][..count]
    }

    /// Kernel t, both triangles.
    fn kernel(&self, t: usize) -> Matrix {
        Matrix::from_parts(self.rows, self.cols, self.data[t..].iter().step_by(self.terms).copied().collect())
    }
}

/// Row i of the triangles of some kernels, `first` the first of them, checked against column i, and its product with v.
struct Turn<'a> {
    stack: Stack<'a>,
    i: usize,
    first: usize,
    rows: Vec<&'a mut [f64]>,
    probe: &'a [f64],
    image: &'a mut [f64],
    seen: Seen,
    /// Room for the row, cell after cell.
    cells: Vec<f64>,
}

impl Wide for Turn<'_> {
    type Out = (Seen, Vec<f64>);

    #[inline(always)]
    fn run(mut self) -> Self::Out {
        let (i, count) = (self.i, self.rows.len());
        let (width, length) = (count.next_multiple_of(LINE), (i + 1).next_multiple_of(LINE));
        self.cells.resize(length * width, 0.0);
        let (mut other, mut image) = ([0.0; LINE * MOST], [0.0; MOST]);
        for left in (0..length).step_by(LINE) {
            // Copied first: plain copies wait for memory together.
            for c in 0..LINE {
                let (own, other) = (&mut self.cells[(left + c) * width..][..width], &mut other[c * width..][..width]);
                if left + c <= i {
                    own[..count].copy_from_slice(self.stack.cell(i, left + c, self.first, count));
                    other[..count].copy_from_slice(self.stack.cell(left + c, i, self.first, count));
                } else {
                    own.fill(0.0);
                    other.fill(0.0);
                }
            }
            let own = &self.cells[left * width..];
            for at in (0..count).step_by(LINE) {
                self.seen.tile(own, &other, width, at);
            }
            for (v, own) in self.probe[left..].iter().take(LINE).zip(own.chunks_exact(width)) {
                for (sum, x) in image.iter_mut().zip(own) {
                    *sum += v * x;
                }
            }
        }
        self.image.copy_from_slice(&image[..count]);
        // Kernel after kernel, so that what is written is contiguous.
        for at in (0..count).step_by(LINE) {
            for left in (0..length).step_by(LINE) {
                let tile = &self.cells[left * width + at..];
                for k in 0..LINE.min(count - at) {
                    let row = &mut self.rows[at + k][left..];
                    match row.first_chunk_mut::<LINE>() {
                        Some(line) => turn(&tile[k..], width, line),
                        None => turn(&tile[k..], width, row),
                    }
                }
            }
        }
        (self.seen, self.cells)
    }
}

impl Seen {
    /// Notes a line of cells of a line of kernels, from both sides of the diagonal, cells `width` apart.
    #[inline(always)]
    fn tile(&mut self, own: &[f64], other: &[f64], width: usize, at: usize) {
        let (mut largest, mut apart, mut finite) = ([0.0f64; LINE], [0.0f64; LINE], [0.0; LINE]);
        for c in 0..LINE {
            let (own, other) = (&own[c * width + at..][..LINE], &other[c * width + at..][..LINE]);
            for k in 0..LINE {
                largest[k] = larger(larger(own[k].abs(), other[k].abs()), largest[k]);
                apart[k] = larger((own[k] - other[k]).abs(), apart[k]);
                finite[k] += (own[k] - other[k]) * 0.0;
            }
        }
        for k in 0..LINE {
            self.largest[at + k] = larger(largest[k], self.largest[at + k]);
            self.apart[at + k] = larger(apart[k], self.apart[at + k]);
            self.finite[at + k] += finite[k];
        }
    }
}

/// Every `width`-th number, as many as there is room for.
#[inline(always)]
fn turn(cells: &[f64], width: usize, line: &mut [f64]) {
    for c in 0..line.len().min(LINE) {
        line[c] = cells[c * width];
    }
}

/// One instruction, and `y` where `x` is not a number.
#[inline(always)]
fn larger(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}
