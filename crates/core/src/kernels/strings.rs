//! Kernels of two sequences of letters.
//!
//! - spectrum(k): Σ over words u of k letters of c_u(x) c_u(z), c_u the number of places where u
//!   stands;
//! - mismatch(k, m): the same with c_u the number of places where a word stands that differs from u
//!   in at most m letters;
//! - wd(d): the number of positions l at which the same d letters stand in both, x[l..l+d] =
//!   z[l..l+d];
//! - alignment: ⟨φ(x), φ(z)⟩ with φ the scores of local alignment with landmarks;
//! - wl(h): of labelled graphs, Σ over labels of c_u(x) c_u(z), labels being refined h times by
//!   those around (Weisfeiler–Lehman subtrees);
//! - wdsum(d): Σ_{k ≤ d} β_k wd(k) with β_k = 2 (d − k + 1) / (d (d + 1)), the classical weighted
//!   degree kernel.
//!
//! With a shift S, words also count where they stand s ≤ S positions apart, with the factor 1 / (2
//! (s + 1)) for either direction. Word by word that is a Toeplitz form in the positions with the
//! symbol 1 + Σ_{s ≤ S} cos(s t) / (s + 1), which is positive for every S (a test looks), so that
//! shifts keep the kernel positive semidefinite.
//!
//! **Letters outside the alphabet** (N in DNA, X in a protein, a gap) are unknown: a word that
//! contains one stands nowhere, and at its position nothing matches, not even itself.

use serde::{Deserialize, Serialize};

mod alignment;
mod counts;
mod graphs;
mod planes;

pub use self::alignment::Scoring;
use self::{counts::Counts, planes::Planes};
use crate::{
    Result,
    data::Sequences,
    linalg::{Matrix, dot},
};

/// Letters that a string kernel tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alphabet {
    /// A, C, G, T in either case; U is read as T.
    Dna,
    /// A, C, G, U in either case; T is read as U.
    Rna,
    /// The 20 amino acids in either case.
    Protein,
    /// Every character is a letter, and cases differ.
    Free,
}

const NUCLEOTIDES: &str = "ACGT";
const AMINO_ACIDS: &str = "ACDEFGHIKLMNPQRSTVWY";
/// What stands for several letters or for none, in DNA and RNA, and in proteins.
const AMBIGUOUS_NUCLEOTIDES: &str = "RYSWKMBDHVNX-.";
const AMBIGUOUS_AMINO_ACIDS: &str = "BZXJUO*-.";

impl Alphabet {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Dna, "dna"), (Self::Rna, "rna"), (Self::Protein, "protein"), (Self::Free, "free")];

    /// Its word in the kernel language.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(a, _)| *a == self).map_or("", |(_, word)| word)
    }

    /// The number of a letter, or `None` for one outside the alphabet.
    pub fn code(self, letter: char) -> Option<u32> {
        let upper = letter.to_ascii_uppercase();
        let place =
            |letters: &str, c: char| letters.chars().position(|l| l == c).map(|at| at as u32);
        match self {
            Self::Free => Some(u32::from(letter)),
            Self::Protein => place(AMINO_ACIDS, upper),
            Self::Dna | Self::Rna => place(NUCLEOTIDES, if upper == 'U' { 'T' } else { upper }),
        }
    }

    /// How many letters there are, where that is known.
    pub fn size(self) -> Option<u32> {
        match self {
            Self::Dna | Self::Rna => Some(4),
            Self::Protein => Some(20),
            Self::Free => None,
        }
    }

    /// Bits that hold every code.
    fn bits(self) -> u32 {
        match self {
            Self::Dna | Self::Rna => 2,
            Self::Protein => 5,
            Self::Free => 21,
        }
    }

    /// What these sequences are written in: DNA (RNA where U occurs and T does not) if all letters
    /// are nucleotides or stand for several and nine of ten are nucleotides; else protein if all
    /// letters are amino acids or stand for several; else free.
    pub fn of(sequences: &Sequences) -> Self {
        let (mut nucleotides, mut ambiguous, mut t, mut u) = (0usize, 0usize, false, false);
        let (mut dna, mut protein) = (true, true);
        for letter in sequences.iter().flat_map(str::chars) {
            let upper = letter.to_ascii_uppercase();
            (t, u) = (t || upper == 'T', u || upper == 'U');
            if Self::Dna.code(upper).is_some() {
                nucleotides += 1;
            } else if AMBIGUOUS_NUCLEOTIDES.contains(upper) {
                ambiguous += 1;
            } else {
                dna = false;
            }
            protein = protein
                && (Self::Protein.code(upper).is_some() || AMBIGUOUS_AMINO_ACIDS.contains(upper));
        }
        match (dna && nucleotides >= 9 * ambiguous, protein) {
            (true, _) if u && !t => Self::Rna,
            (true, _) => Self::Dna,
            (false, true) => Self::Protein,
            (false, false) => Self::Free,
        }
    }
}

/// A kernel function of two sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "text", rename_all = "snake_case")]
pub enum Text {
    /// Words of `k` letters in common.
    Spectrum {
        /// From 1 to [`MAX_WORD`].
        k: u32,
        /// The alphabet that its letters are of.
        alphabet: Alphabet,
    },
    /// Words of `k` letters in common up to `m` mismatches.
    Mismatch {
        /// From 1 to [`MAX_WORD`].
        k: u32,
        /// The number of mismatches, below `k`.
        m: u32,
        /// Its letters; not free, because mismatches run over all letters.
        alphabet: Alphabet,
    },
    /// Positions with the same `degree` letters.
    Wd {
        /// From 1 to [`MAX_WORD`].
        degree: u32,
        /// How far apart they may stand, at most [`MAX_SHIFT`].
        shift: u32,
        /// The alphabet that its letters are of.
        alphabet: Alphabet,
    },
    /// Scores of local alignment with landmarks.
    Alignment {
        /// What two letters score.
        scoring: Scoring,
        /// Cost of the first letter of a gap.
        open: u32,
        /// Cost of each further letter.
        extend: u32,
    },
    /// Weisfeiler–Lehman subtrees of labelled graphs.
    Wl {
        /// Rounds of refinement, at most 20.
        iterations: u32,
    },
    /// The weighted sum of `Wd` up to `degree`.
    WdSum {
        /// From 1 to [`MAX_WORD`].
        degree: u32,
        /// How far apart they may stand, at most [`MAX_SHIFT`].
        shift: u32,
        /// The alphabet that its letters are of.
        alphabet: Alphabet,
    },
}

/// The longest word of `spectrum` and `mismatch`, in letters.
pub const MAX_WORD: u32 = 64;
/// The largest shift of `wd` and `wdsum`, in positions.
pub const MAX_SHIFT: u32 = 1000;
/// The most words that may lie within the mismatches of one word; every word of a sequence is
/// counted under all of them.
pub(super) const MAX_NEIGHBOURS: f64 = 100_000.0;

impl Text {
    /// The alphabet that the kernel's letters are of.
    pub fn alphabet(self) -> Alphabet {
        match self {
            Self::Spectrum { alphabet, .. }
            | Self::Mismatch { alphabet, .. }
            | Self::Wd { alphabet, .. }
            | Self::WdSum { alphabet, .. } => alphabet,
            Self::Alignment { .. } => Alphabet::Protein,
            Self::Wl { .. } => Alphabet::Free,
        }
    }

    /// What weighted degree kernels have in common that share a pass over pairs: shift and letters.
    /// `None` for others.
    pub fn family(self) -> Option<(u32, Alphabet)> {
        match self {
            Self::Wd { shift, alphabet, .. } | Self::WdSum { shift, alphabet, .. } => {
                Some((shift, alphabet))
            }
            _ => None,
        }
    }

    /// Can it read these sequences? `name` is what errors call them.
    pub(super) fn check(self, sequences: &Sequences, name: &str) -> Result<()> {
        if matches!(self, Self::Wl { .. }) { graphs::check(sequences, name) } else { Ok(()) }
    }

    /// Does it compare with landmarks?
    pub(super) fn needs_landmarks(self) -> bool {
        matches!(self, Self::Alignment { .. })
    }

    /// Words within the mismatches of one word; `None` where the alphabet has no size.
    pub(super) fn neighbours(self) -> Option<f64> {
        let Self::Mismatch { k, m, alphabet } = self else { return Some(1.0) };
        let others = f64::from(alphabet.size()? - 1);
        let mut ways = 1.0;
        let mut near = 1.0;
        for i in 1..=m {
            ways *= others * f64::from(k - i + 1) / f64::from(i);
            near += ways;
        }
        Some(near)
    }

    /// What is to be computed once per sequence.
    pub(super) fn encode(self, sequences: &Sequences, landmarks: &[String]) -> Encoded {
        match self {
            Self::Alignment { scoring, open, extend } => {
                Encoded::Scores(alignment::scores(sequences, landmarks, scoring, open, extend))
            }
            Self::Wl { iterations } => Encoded::Counts(graphs::counts(sequences, iterations)),
            Self::Spectrum { k, alphabet } => {
                Encoded::Counts(Counts::spectrum(sequences, k, alphabet))
            }
            Self::Mismatch { k, m, alphabet } => {
                Encoded::Counts(Counts::mismatch(sequences, k, m, alphabet))
            }
            Self::Wd { shift, alphabet, .. } | Self::WdSum { shift, alphabet, .. } => {
                Encoded::Planes(
                    Planes::new(sequences, alphabet),
                    Weighting { weights: self.weights(), shift },
                )
            }
        }
    }

    /// What a match of each degree counts in a weighted degree kernel.
    fn weights(self) -> Vec<f64> {
        match self {
            Self::Wd { degree, .. } => (1..=degree).map(|k| f64::from(k == degree)).collect(),
            Self::WdSum { degree, .. } => {
                let d = f64::from(degree);
                (1..=degree).map(|k| 2.0 * (d - f64::from(k) + 1.0) / (d * (d + 1.0))).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// How matches of each degree count: `weights[k - 1]` for degree k, shifted by at most `shift`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weighting {
    weights: Vec<f64>,
    shift: u32,
}

impl Weighting {
    fn value(&self, counts: &[f64]) -> f64 {
        // A single degree is the last one.
        match self.weights.split_last() {
            Some((last, rest)) if rest.iter().all(|w| *w == 0.0) => last * counts[rest.len()],
            _ => self.weights.iter().zip(counts).map(|(w, c)| w * c).sum(),
        }
    }
}

/// Weighted degree kernels that share letters and shift: one pass over a pair of sequences gives
/// the matches of all degrees.
pub(super) struct Family {
    planes: Planes,
    weightings: Vec<Weighting>,
}

impl Family {
    /// `None` unless these kernels are such a family.
    pub fn new(kernels: &[Text], sequences: &Sequences) -> Option<Self> {
        let (first, mut weightings) = (kernels.first()?, Vec::new());
        for kernel in kernels {
            let (Text::Wd { shift, .. } | Text::WdSum { shift, .. }) = *kernel else { return None };
            if kernel.alphabet() != first.alphabet() {
                return None;
            }
            weightings.push(Weighting { weights: kernel.weights(), shift });
        }
        let same = weightings.iter().all(|w| w.shift == weightings[0].shift);
        same.then(|| Self { planes: Planes::new(sequences, first.alphabet()), weightings })
    }

    /// `out[t][j]` = k_t(own sequence i, sequence j of `other`) for its first sequences.
    pub fn row(&self, i: usize, other: &Self, out: &mut [&mut [f64]]) {
        let degrees = self.weightings.iter().map(|w| w.weights.len()).max().unwrap_or(0);
        let m = out.first().map_or(0, |o| o.len());
        self.planes.row(i, (&other.planes, m), degrees, self.weightings[0].shift, |j, counts| {
            out.iter_mut().zip(&self.weightings).for_each(|(o, w)| o[j] = w.value(counts));
        });
    }
}

/// Sequences as one string kernel sees them.
#[derive(Debug, Clone)]
pub(super) enum Encoded {
    Scores(Matrix),
    Counts(Counts),
    Planes(Planes, Weighting),
}

impl Encoded {
    /// How many sequences there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Scores(s) => s.rows(),
            Self::Counts(c) => c.len(),
            Self::Planes(p, _) => p.len(),
        }
    }

    /// A bound on the rank of the kernel matrix, or `enough` where it is larger than that.
    pub fn rank_bound(&self, enough: usize) -> usize {
        match self {
            Self::Scores(s) => s.cols().min(enough),
            Self::Counts(c) => c.features().min(enough),
            Self::Planes(p, how) => {
                let degrees =
                    how.weights.iter().enumerate().filter(|(_, w)| **w != 0.0).map(|(k, _)| k + 1);
                degrees.map(|degree| p.features(degree, enough)).sum::<usize>().min(enough)
            }
        }
    }

    /// The value k(x, x) of every sequence.
    pub fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Scores(s) => (0..s.rows()).map(|i| dot(s.row(i), s.row(i))).collect(),
            Self::Counts(c) => c.diagonal(),
            Self::Planes(p, how) => {
                let own = |i: usize| {
                    let mut value = 0.0;
                    p.row(i, (&p.select(i), 1), how.weights.len(), how.shift, |_, counts| {
                        value = how.value(counts);
                    });
                    value
                };
                (0..p.len()).map(own).collect()
            }
        }
    }

    /// `out[j]` = k(own sequence i, sequence j of `other`), for the first sequences of `other`.
    pub fn row(&self, i: usize, other: &Self, out: &mut [f64]) {
        match (self, other) {
            (Self::Scores(own), Self::Scores(other)) => {
                out.iter_mut().enumerate().for_each(|(j, o)| *o = dot(own.row(i), other.row(j)));
            }
            (Self::Counts(own), Self::Counts(other)) => own.row(i, other, out),
            (Self::Planes(own, how), Self::Planes(other, _)) => {
                let all = (other, out.len());
                own.row(i, all, how.weights.len(), how.shift, |j, counts| {
                    out[j] = how.value(counts);
                });
            }
            // One kernel encodes both sides in one way.
            _ => out.fill(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets_are_recognised() {
        let of = |texts: &[&str]| Alphabet::of(&Sequences::new("s", texts).unwrap());
        assert_eq!(of(&["ACGTNACGTACGTA", "acgt"]), Alphabet::Dna);
        assert_eq!(of(&["ACGUACGU"]), Alphabet::Rna);
        assert_eq!(of(&["MKVLAAGIX", "CARD"]), Alphabet::Protein);
        assert_eq!(of(&["hello world"]), Alphabet::Free);
        // Ambiguous letters alone are no DNA.
        assert_eq!(of(&["NNNNNNNNNA"]), Alphabet::Protein);
        assert_eq!((Alphabet::Dna.code('u'), Alphabet::Dna.code('T')), (Some(3), Some(3)));
        assert_eq!(
            (Alphabet::Dna.code('N'), Alphabet::Protein.code('B'), Alphabet::Free.code('a')),
            (None, None, Some(97))
        );
    }

    #[test]
    fn shifts_have_a_positive_symbol() {
        for shift in [1, 2, 3, 5, 10, 100, MAX_SHIFT] {
            let symbol = |t: f64| {
                1.0 + (1..=shift)
                    .map(|s| (f64::from(s) * t).cos() / (f64::from(s) + 1.0))
                    .sum::<f64>()
            };
            let least = (0..=20_000)
                .map(|i| symbol(std::f64::consts::PI * f64::from(i) / 2e4))
                .fold(f64::MAX, f64::min);
            assert!(least > 0.25, "shift {shift}: {least}");
        }
    }
}
