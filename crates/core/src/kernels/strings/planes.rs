//! Sequences as bit planes: bit l of plane b is bit b of the letter at position l, and one more plane says where letters are known. 64
//! positions are compared at once, and the matches of all degrees follow from those of degree 1: a run of k + 1 matches starts where two
//! runs of k matches start at neighbouring positions.

use super::{Alphabet, Weighting};
use crate::data::Sequences;

/// Two bits per nucleotide, five per amino acid.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    /// Planes per letter, that of the known positions included.
    planes: usize,
    /// Where the words of each sequence begin, and the end of the last.
    start: Vec<usize>,
    /// Per sequence, plane by plane.
    words: Vec<u64>,
}

impl Planes {
    /// One bit plane per bit that occurs.
    pub fn new(sequences: &Sequences, alphabet: Alphabet) -> Self {
        let codes: Vec<Vec<Option<u32>>> =
            sequences.iter().map(|s| s.chars().map(|c| alphabet.code(c)).collect()).collect();
        let used = codes.iter().flatten().flatten().fold(0, |all, code| all | code);
        let bits = (u32::BITS - used.leading_zeros()) as usize;
        let (mut words, mut start) = (Vec::new(), vec![0]);
        for codes in &codes {
            let (from, width) = (words.len(), codes.len().div_ceil(64));
            words.resize(from + width * (bits + 1), 0);
            for (l, code) in codes.iter().enumerate().filter_map(|(l, code)| code.map(|c| (l, c))) {
                words[from + l / 64] |= 1 << (l % 64);
                for b in (0..bits).filter(|b| code >> b & 1 == 1) {
                    words[from + (b + 1) * width + l / 64] |= 1 << (l % 64);
                }
            }
            start.push(words.len());
        }
        Self { planes: bits + 1, start, words }
    }

    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    fn sequence(&self, i: usize) -> (&[u64], usize) {
        let words = &self.words[self.start[i]..self.start[i + 1]];
        (words, words.len() / self.planes)
    }

    /// Weighted matches of all degrees between sequence i here and sequence j there.
    pub fn value(&self, i: usize, other: &Self, j: usize, how: &Weighting, scratch: &mut Vec<u64>) -> f64 {
        let mut value = 0.0;
        self.each_degree(i, other, j, how.weights.len(), how.shift, scratch, |degree, factor, count| {
            value += how.weights[degree - 1] * factor * f64::from(count);
        });
        value
    }

    /// Calls `visit(degree, factor of the shift, matches)` for every degree and shift that has matches.
    pub fn each_degree(
        &self,
        i: usize,
        other: &Self,
        j: usize,
        degrees: usize,
        shift: u32,
        scratch: &mut Vec<u64>,
        mut visit: impl FnMut(usize, f64, u32),
    ) {
        let (x, z) = ((self.sequence(i), self.planes), (other.sequence(j), other.planes));
        runs(matches(x, z, 0, scratch), degrees, |degree, count| visit(degree, 1.0, count));
        for s in 1..=shift as usize {
            let factor = 0.5 / (s as f64 + 1.0);
            runs(matches(x, z, s, scratch), degrees, |degree, count| visit(degree, factor, count));
            runs(matches(z, x, s, scratch), degrees, |degree, count| visit(degree, factor, count));
        }
    }
}

type Side<'a> = ((&'a [u64], usize), usize);

/// Bit l: the letters x[l] and z[l + shift] are known and equal.
fn matches<'a>(x: Side<'_>, z: Side<'_>, shift: usize, out: &'a mut Vec<u64>) -> &'a mut [u64] {
    let (((x, x_width), x_planes), ((z, z_width), z_planes)) = (x, z);
    let (skip, bit) = (shift / 64, shift % 64);
    let width = x_width.min(z_width.saturating_sub(skip));
    out.clear();
    // Word w of a plane of z, moved down by the shift.
    let moved = |plane: usize, w: usize| {
        let at = plane * z_width + w + skip;
        if bit == 0 {
            return z[at];
        }
        let next = if w + skip + 1 < z_width { z[at + 1] } else { 0 };
        z[at] >> bit | next << (64 - bit)
    };
    let shared = x_planes.min(z_planes);
    for w in 0..width {
        let mut differ = 0;
        for plane in 1..shared {
            differ |= x[plane * x_width + w] ^ moved(plane, w);
        }
        // Letters of higher codes than the other side has are different letters.
        (shared..x_planes).for_each(|plane| differ |= x[plane * x_width + w]);
        (shared..z_planes).for_each(|plane| differ |= moved(plane, w));
        out.push(x[w] & moved(0, w) & !differ);
    }
    out
}

/// Calls `visit(k, positions at which k matches in a row begin)` for k = 1, 2, … while there are any.
fn runs(bits: &mut [u64], degrees: usize, mut visit: impl FnMut(usize, u32)) {
    for k in 1..=degrees {
        let count: u32 = bits.iter().map(|w| w.count_ones()).sum();
        if count == 0 {
            return;
        }
        visit(k, count);
        for w in 0..bits.len() {
            let next = bits.get(w + 1).copied().unwrap_or(0);
            bits[w] &= bits[w] >> 1 | next << 63;
        }
    }
}
