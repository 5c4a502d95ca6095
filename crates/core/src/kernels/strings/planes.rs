//! Sequences as bit planes: bit l of plane b is bit b of the letter at position l, and one more
//! plane says where letters are known. 64 positions are compared at once, and the matches of all
//! degrees follow from those of degree 1: a run of k + 1 matches starts where two runs of k matches
//! start at neighbouring positions.

use super::Alphabet;
use crate::data::Sequences;

/// Two bits per nucleotide, five per amino acid.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    /// Planes per letter, that of the known positions included.
    depth: usize,
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
        Self { depth: bits + 1, start, words }
    }

    /// Different words of `degree` letters at different positions: at least the rank of the kernel
    /// of this degree. Stops at `enough`.
    pub fn features(&self, degree: usize, enough: usize) -> usize {
        let mut seen = std::collections::HashSet::new();
        for i in 0..self.len() {
            let x = self.sequence(i);
            let letter = |l: usize| {
                (0..x.planes).fold(0u32, |c, p| {
                    c << 1 | (x.words[p * x.width + l / 64] >> (l % 64) & 1) as u32
                })
            };
            let letters: Vec<u32> = (0..64 * x.width).map(letter).collect();
            let known = 1 << (x.planes - 1);
            for (l, word) in letters
                .windows(degree)
                .enumerate()
                .filter(|(_, w)| w.iter().all(|c| c & known != 0))
            {
                seen.insert((l, word.to_vec()));
            }
            if seen.len() >= enough {
                break;
            }
        }
        seen.len()
    }

    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// The planes of sequence i alone.
    pub fn select(&self, i: usize) -> Self {
        let words = self.words[self.start[i]..self.start[i + 1]].to_vec();
        Self { depth: self.depth, start: vec![0, words.len()], words }
    }

    fn sequence(&self, i: usize) -> Side<'_> {
        let words = &self.words[self.start[i]..self.start[i + 1]];
        Side { words, width: words.len() / self.depth, planes: self.depth }
    }

    /// Calls `visit(j, counts)` for the first `m` sequences of `other`: `counts[k - 1]` are the
    /// matches of degree k with sequence i here, shifted ones by their factor.
    pub fn row(
        &self,
        i: usize,
        (other, m): (&Self, usize),
        degrees: usize,
        shift: u32,
        visit: impl FnMut(usize, &[f64]),
    ) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has just been seen to have it.
            return unsafe { self.row_popcnt(i, (other, m), degrees, shift, visit) };
        }
        self.row_plain(i, (other, m), degrees, shift, visit);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn row_popcnt(
        &self,
        i: usize,
        others: (&Self, usize),
        degrees: usize,
        shift: u32,
        visit: impl FnMut(usize, &[f64]),
    ) {
        self.row_plain(i, others, degrees, shift, visit);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // inlined into each instruction-set variant
    fn row_plain(
        &self,
        i: usize,
        (other, m): (&Self, usize),
        degrees: usize,
        shift: u32,
        mut visit: impl FnMut(usize, &[f64]),
    ) {
        let x = self.sequence(i);
        let (mut bits, mut counts) = (vec![0; x.width], vec![0.0; degrees]);
        for j in 0..m {
            let z = other.sequence(j);
            counts.fill(0.0);
            let width = matches(&x, &z, 0, &mut bits);
            runs(&mut bits[..width], 1.0, &mut counts);
            for s in 1..=shift as usize {
                let factor = 0.5 / (s as f64 + 1.0);
                let width = matches(&x, &z, s, &mut bits);
                runs(&mut bits[..width], factor, &mut counts);
                bits.resize(x.width.max(z.width), 0);
                let width = matches(&z, &x, s, &mut bits);
                runs(&mut bits[..width], factor, &mut counts);
            }
            visit(j, &counts);
        }
    }
}

/// One sequence, plane by plane of `width` words.
struct Side<'a> {
    words: &'a [u64],
    width: usize,
    planes: usize,
}

impl Side<'_> {
    /// Word w of a plane, moved down by `bit` < 64 positions.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn word(&self, plane: usize, w: usize, bit: usize) -> u64 {
        let at = plane * self.width + w;
        if bit == 0 {
            return self.words[at];
        }
        let next = if w + 1 < self.width { self.words[at + 1] } else { 0 };
        self.words[at] >> bit | next << (64 - bit)
    }
}

/// Bit l of `out`: the letters x[l] and z[l + shift] are known and equal. Returns the number of
/// words written.
#[inline(always)]
#[allow(clippy::inline_always)]
fn matches(x: &Side<'_>, z: &Side<'_>, shift: usize, out: &mut [u64]) -> usize {
    let (skip, bit) = (shift / 64, shift % 64);
    let width = x.width.min(z.width.saturating_sub(skip));
    let shared = x.planes.min(z.planes);
    for (w, out) in out[..width].iter_mut().enumerate() {
        let mut differ = 0;
        for plane in 1..shared {
            differ |= x.word(plane, w, 0) ^ z.word(plane, w + skip, bit);
        }
        // Letters of higher codes than the other side has are different letters.
        (shared..x.planes).for_each(|plane| differ |= x.word(plane, w, 0));
        (shared..z.planes).for_each(|plane| differ |= z.word(plane, w + skip, bit));
        *out = x.word(0, w, 0) & z.word(0, w + skip, bit) & !differ;
    }
    width
}

/// `counts[k - 1]` += factor · positions at which k matches in a row begin, for k = 1, 2, … while
/// there are any.
#[inline(always)]
#[allow(clippy::inline_always)]
fn runs(bits: &mut [u64], factor: f64, counts: &mut [f64]) {
    for total in counts {
        let count: u32 = bits.iter().map(|w| w.count_ones()).sum();
        if count == 0 {
            return;
        }
        *total += factor * f64::from(count);
        for w in 0..bits.len() {
            let next = if w + 1 < bits.len() { bits[w + 1] } else { 0 };
            bits[w] &= bits[w] >> 1 | next << 63;
        }
    }
}
