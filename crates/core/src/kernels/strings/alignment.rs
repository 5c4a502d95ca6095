//! Local alignment: the best score of aligning a piece of one sequence with a piece of another
//! (Smith and Waterman), gaps of g letters costing open + (g − 1) · extend (Gotoh's three
//! recurrences).
//!
//! Scores are no kernel: their matrix is not positive semidefinite. The empirical map makes one of
//! them: φ(x) is the vector of scores with fixed landmarks, and k(x, z) = ⟨φ(x), φ(z)⟩.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Alphabet;
use crate::{data::Sequences, linalg::Matrix};

/// What a pair of amino acids scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scoring {
    /// From blocks of sequences less than 62 % identical.
    Blosum62,
    /// 50 accepted mutations per 100 letters.
    Pam50,
}

impl Scoring {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Blosum62, "blosum62"), (Self::Pam50, "pam50")];

    /// Its word in the kernel language.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, word)| word)
    }

    /// The score of two letters side by side; an unknown letter scores −1.
    pub fn score(self, a: Option<u32>, b: Option<u32>) -> i32 {
        let table = match self {
            Self::Blosum62 => &BLOSUM62,
            Self::Pam50 => &PAM50,
        };
        match (a, b) {
            (Some(a), Some(b)) => i32::from(table[a as usize][b as usize]),
            _ => -1,
        }
    }
}

/// The number of the letter that stands for all but the 20 amino acids, which come before it.
const UNKNOWN: usize = 20;
/// Landmarks that are aligned at once: one 16-bit number each fills two vectors of 256 bits.
const LANES: usize = 32;
type Lanes = [i16; LANES];

/// Scores of every sequence with every landmark, one row per sequence.
pub fn scores(
    sequences: &Sequences,
    landmarks: &[String],
    scoring: Scoring,
    open: u32,
    extend: u32,
) -> Matrix {
    let coded =
        |s: &str| -> Vec<Option<u32>> { s.chars().map(|c| Alphabet::Protein.code(c)).collect() };
    let codes: Vec<Vec<Option<u32>>> = landmarks.iter().map(|s| coded(s)).collect();
    // Landmarks of like length go together, so that little is filled up.
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&l| codes[l].len());
    let batches: Vec<(&[usize], Batch)> = order
        .chunks(LANES)
        .map(|some| (some, Batch::new(some.iter().map(|&l| codes[l].as_slice()), scoring)))
        .collect();
    let small = |cost: u32| i16::try_from(cost).unwrap_or(i16::MAX);
    let mut out = Matrix::zeros(sequences.len(), landmarks.len());
    out.data_mut().par_chunks_mut(landmarks.len().max(1)).enumerate().for_each(|(i, row)| {
        let own = coded(sequences.get(i));
        for (some, batch) in &batches {
            for (&l, score) in some.iter().zip(batch.local(&own, small(open), small(extend))) {
                // Beyond 16 bits, one by one in 32.
                let score = if score < i16::MAX {
                    i32::from(score)
                } else {
                    local(&own, &codes[l], scoring, open, extend)
                };
                row[l] = f64::from(score);
            }
        }
    });
    out
}

/// Landmarks side by side: one step of the recurrences serves all of them.
struct Batch {
    columns: usize,
    /// What a letter scores with the letters of column j: at letter · columns + j.
    profiles: Vec<Lanes>,
}

impl Batch {
    fn new<'a>(
        landmarks: impl Iterator<Item = &'a [Option<u32>]> + Clone,
        scoring: Scoring,
    ) -> Self {
        let columns = landmarks.clone().map(<[_]>::len).max().unwrap_or(0);
        // No alignment gains by going on into the filler.
        let mut profiles = vec![[i16::MIN / 2; LANES]; (UNKNOWN + 1) * columns];
        for (lane, z) in landmarks.enumerate() {
            for letter in 0..=UNKNOWN {
                let own = (letter < UNKNOWN).then_some(letter as u32);
                for (j, &b) in z.iter().enumerate() {
                    profiles[letter * columns + j][lane] = scoring.score(own, b) as i16;
                }
            }
        }
        Self { columns, profiles }
    }

    /// The best local alignment of `x` with each of them, by [`local`]'s recurrences; `i16::MAX`
    /// stands for that or more.
    fn local(&self, x: &[Option<u32>], open: i16, extend: i16) -> Lanes {
        let (mut best, mut gap): (Vec<Lanes>, Vec<Lanes>) =
            (vec![[0; LANES]; self.columns], vec![[i16::MIN; LANES]; self.columns]);
        let mut top: Lanes = [0; LANES];
        for a in x {
            let letter = a.map_or(UNKNOWN, |a| a as usize);
            let profile = &self.profiles[letter * self.columns..][..self.columns];
            let (mut diagonal, mut before, mut left): (Lanes, Lanes, Lanes) =
                ([0; LANES], [0; LANES], [i16::MIN; LANES]);
            for ((best, gap), profile) in best.iter_mut().zip(&mut gap).zip(profile) {
                for l in 0..LANES {
                    gap[l] = gap[l].saturating_sub(extend).max(best[l].saturating_sub(open));
                    left[l] = left[l].saturating_sub(extend).max(before[l].saturating_sub(open));
                    before[l] =
                        diagonal[l].saturating_add(profile[l]).max(gap[l]).max(left[l]).max(0);
                    diagonal[l] = best[l];
                    best[l] = before[l];
                    top[l] = top[l].max(before[l]);
                }
            }
        }
        top
    }
}

/// The best local alignment of `x` and `z`.
fn local(x: &[Option<u32>], z: &[Option<u32>], scoring: Scoring, open: u32, extend: u32) -> i32 {
    let (open, extend) = (open.cast_signed(), extend.cast_signed());
    // best[j]: of alignments that end at x[i] and z[j]; gap[j]: of those that end with a gap in z
    // there.
    let (mut best, mut gap) = (vec![0; z.len() + 1], vec![i32::MIN / 2; z.len() + 1]);
    // A line per letter, the unknown one last.
    let profiles: Vec<Vec<i32>> = (0..=20)
        .map(|a| z.iter().map(|&b| scoring.score(Some(a).filter(|a| *a < 20), b)).collect())
        .collect();
    let mut top = 0;
    for &a in x {
        let profile = &profiles[a.map_or(20, |a| a as usize)];
        let (mut diagonal, mut left) = (0, i32::MIN / 2);
        for j in 1..=z.len() {
            gap[j] = (gap[j] - extend).max(best[j] - open);
            left = (left - extend).max(best[j - 1] - open);
            let value = (diagonal + profile[j - 1]).max(gap[j]).max(left).max(0);
            diagonal = std::mem::replace(&mut best[j], value);
            top = top.max(value);
        }
    }
    top
}

// Rows and columns in the order of the protein alphabet.
#[rustfmt::skip]
const BLOSUM62: [[i8; 20]; 20] = [
    [  4,   0,  -2,  -1,  -2,   0,  -2,  -1,  -1,  -1,  -1,  -2,  -1,  -1,  -1,   1,   0,   0,  -3,  -2], // A
    [  0,   9,  -3,  -4,  -2,  -3,  -3,  -1,  -3,  -1,  -1,  -3,  -3,  -3,  -3,  -1,  -1,  -1,  -2,  -2], // C
    [ -2,  -3,   6,   2,  -3,  -1,  -1,  -3,  -1,  -4,  -3,   1,  -1,   0,  -2,   0,  -1,  -3,  -4,  -3], // D
    [ -1,  -4,   2,   5,  -3,  -2,   0,  -3,   1,  -3,  -2,   0,  -1,   2,   0,   0,  -1,  -2,  -3,  -2], // E
    [ -2,  -2,  -3,  -3,   6,  -3,  -1,   0,  -3,   0,   0,  -3,  -4,  -3,  -3,  -2,  -2,  -1,   1,   3], // F
    [  0,  -3,  -1,  -2,  -3,   6,  -2,  -4,  -2,  -4,  -3,   0,  -2,  -2,  -2,   0,  -2,  -3,  -2,  -3], // G
    [ -2,  -3,  -1,   0,  -1,  -2,   8,  -3,  -1,  -3,  -2,   1,  -2,   0,   0,  -1,  -2,  -3,  -2,   2], // H
    [ -1,  -1,  -3,  -3,   0,  -4,  -3,   4,  -3,   2,   1,  -3,  -3,  -3,  -3,  -2,  -1,   3,  -3,  -1], // I
    [ -1,  -3,  -1,   1,  -3,  -2,  -1,  -3,   5,  -2,  -1,   0,  -1,   1,   2,   0,  -1,  -2,  -3,  -2], // K
    [ -1,  -1,  -4,  -3,   0,  -4,  -3,   2,  -2,   4,   2,  -3,  -3,  -2,  -2,  -2,  -1,   1,  -2,  -1], // L
    [ -1,  -1,  -3,  -2,   0,  -3,  -2,   1,  -1,   2,   5,  -2,  -2,   0,  -1,  -1,  -1,   1,  -1,  -1], // M
    [ -2,  -3,   1,   0,  -3,   0,   1,  -3,   0,  -3,  -2,   6,  -2,   0,   0,   1,   0,  -3,  -4,  -2], // N
    [ -1,  -3,  -1,  -1,  -4,  -2,  -2,  -3,  -1,  -3,  -2,  -2,   7,  -1,  -2,  -1,  -1,  -2,  -4,  -3], // P
    [ -1,  -3,   0,   2,  -3,  -2,   0,  -3,   1,  -2,   0,   0,  -1,   5,   1,   0,  -1,  -2,  -2,  -1], // Q
    [ -1,  -3,  -2,   0,  -3,  -2,   0,  -3,   2,  -2,  -1,   0,  -2,   1,   5,  -1,  -1,  -3,  -3,  -2], // R
    [  1,  -1,   0,   0,  -2,   0,  -1,  -2,   0,  -2,  -1,   1,  -1,   0,  -1,   4,   1,  -2,  -3,  -2], // S
    [  0,  -1,  -1,  -1,  -2,  -2,  -2,  -1,  -1,  -1,  -1,   0,  -1,  -1,  -1,   1,   5,   0,  -2,  -2], // T
    [  0,  -1,  -3,  -2,  -1,  -3,  -3,   3,  -2,   1,   1,  -3,  -2,  -2,  -3,  -2,   0,   4,  -3,  -1], // V
    [ -3,  -2,  -4,  -3,   1,  -2,  -2,  -3,  -3,  -2,  -1,  -4,  -4,  -2,  -3,  -3,  -2,  -3,  11,   2], // W
    [ -2,  -2,  -3,  -2,   3,  -3,   2,  -1,  -2,  -1,  -1,  -2,  -3,  -1,  -2,  -2,  -2,  -1,   2,   7], // Y
];

#[rustfmt::skip]
const PAM50: [[i8; 20]; 20] = [
    [  5,  -5,  -2,  -1,  -7,  -1,  -5,  -3,  -5,  -5,  -4,  -2,   0,  -3,  -5,   0,   0,  -1, -11,  -6], // A
    [ -5,   9, -11, -11, -10,  -7,  -6,  -5, -11, -12, -11,  -8,  -6, -11,  -6,  -2,  -6,  -5, -13,  -3], // C
    [ -2, -11,   7,   3, -12,  -2,  -2,  -6,  -3, -10,  -8,   2,  -6,  -1,  -7,  -2,  -3,  -6, -12,  -9], // D
    [ -1, -11,   3,   7, -11,  -3,  -3,  -4,  -3,  -7,  -5,  -1,  -4,   2,  -7,  -3,  -4,  -5, -13,  -7], // E
    [ -7, -10, -12, -11,   9,  -8,  -5,  -1, -11,  -1,  -3,  -7,  -8, -10,  -8,  -5,  -7,  -6,  -3,   3], // F
    [ -1,  -7,  -2,  -3,  -8,   6,  -7,  -8,  -6,  -9,  -7,  -2,  -4,  -5,  -7,  -1,  -4,  -4, -12, -11], // G
    [ -5,  -6,  -2,  -3,  -5,  -7,   9,  -7,  -4,  -5,  -8,   1,  -3,   2,   0,  -4,  -5,  -5,  -6,  -2], // H
    [ -3,  -5,  -6,  -4,  -1,  -8,  -7,   8,  -5,   0,   0,  -4,  -7,  -6,  -4,  -5,  -1,   3, -11,  -5], // I
    [ -5, -11,  -3,  -3, -11,  -6,  -4,  -5,   6,  -6,  -1,   0,  -5,  -2,   1,  -3,  -2,  -7,  -9,  -8], // K
    [ -5, -12, -10,  -7,  -1,  -9,  -5,   0,  -6,   6,   2,  -6,  -6,  -4,  -7,  -7,  -5,  -1,  -5,  -5], // L
    [ -4, -11,  -8,  -5,  -3,  -7,  -8,   0,  -1,   2,  10,  -6,  -6,  -3,  -3,  -4,  -3,   0, -10,  -8], // M
    [ -2,  -8,   2,  -1,  -7,  -2,   1,  -4,   0,  -6,  -6,   7,  -4,  -2,  -4,   1,  -1,  -6,  -7,  -3], // N
    [  0,  -6,  -6,  -4,  -8,  -4,  -3,  -7,  -5,  -6,  -6,  -4,   8,  -2,  -3,  -1,  -3,  -4, -11, -11], // P
    [ -3, -11,  -1,   2, -10,  -5,   2,  -6,  -2,  -4,  -3,  -2,  -2,   8,   0,  -4,  -4,  -5, -10,  -9], // Q
    [ -5,  -6,  -7,  -7,  -8,  -7,   0,  -4,   1,  -7,  -3,  -4,  -3,   0,   8,  -2,  -5,  -6,  -1,  -8], // R
    [  0,  -2,  -2,  -3,  -5,  -1,  -4,  -5,  -3,  -7,  -4,   1,  -1,  -4,  -2,   6,   1,  -4,  -4,  -5], // S
    [  0,  -6,  -3,  -4,  -7,  -4,  -5,  -1,  -2,  -5,  -3,  -1,  -3,  -4,  -5,   1,   6,  -2, -10,  -5], // T
    [ -1,  -5,  -6,  -5,  -6,  -4,  -5,   3,  -7,  -1,   0,  -6,  -4,  -5,  -6,  -4,  -2,   7, -12,  -6], // V
    [-11, -13, -12, -13,  -3, -12,  -6, -11,  -9,  -5, -10,  -7, -11, -10,  -1,  -4, -10, -12,  13,  -4], // W
    [ -6,  -3,  -9,  -7,   3, -11,  -2,  -5,  -8,  -5,  -8,  -3, -11,  -9,  -8,  -5,  -5,  -6,  -4,   9], // Y
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rng;

    /// Batches against pairs one by one; among them lengths from 1, unknown letters, more landmarks
    /// than lanes, and scores beyond 16 bits.
    #[test]
    fn batches_score_as_pairs_do() {
        let letters: Vec<char> = "ACDEFGHIKLMNPQRSTVWYX".chars().collect();
        let mut rng = Rng::new(5);
        let mut texts: Vec<String> = (0..40)
            .map(|i| (0..=i * 3).map(|_| letters[rng.below(letters.len())]).collect())
            .collect();
        texts.push("W".repeat(3000));
        let all = Sequences::new("s", &texts).unwrap();
        for (scoring, open, extend) in
            [(Scoring::Blosum62, 11, 1), (Scoring::Pam50, 5, 2), (Scoring::Blosum62, 70_000, 3)]
        {
            let found = scores(&all, &texts, scoring, open, extend);
            let codes: Vec<Vec<Option<u32>>> = texts
                .iter()
                .map(|t| t.chars().map(|c| Alphabet::Protein.code(c)).collect())
                .collect();
            for (i, x) in codes.iter().enumerate() {
                for (j, z) in codes.iter().enumerate() {
                    let want = f64::from(local(x, z, scoring, open, extend));
                    assert_eq!(found[(i, j)], want, "{scoring:?} {} {}", texts[i], texts[j]);
                }
            }
        }
        let last = texts.len() - 1;
        assert_eq!(scores(&all, &texts, Scoring::Blosum62, 11, 1)[(last, last)], 33_000.0);
    }
}
