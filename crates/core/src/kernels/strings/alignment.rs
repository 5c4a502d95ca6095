//! Local alignment: the best score of aligning a piece of one sequence with a piece of another (Smith and Waterman), gaps of g letters
//! costing open + (g − 1) · extend (Gotoh's three recurrences).
//!
//! Scores are no kernel: their matrix is not positive semidefinite. The empirical map makes one of them: φ(x) is the vector of scores with
//! fixed landmarks, and k(x, z) = ⟨φ(x), φ(z)⟩.

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
    pub const ALL: [(Self, &'static str); 2] = [(Self::Blosum62, "blosum62"), (Self::Pam50, "pam50")];

    /// Its word in the kernel language.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, word)| word)
    }

    /// Of two letters; unknown ones score −1.
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

/// Scores of every sequence with every landmark, one row per sequence.
pub fn scores(sequences: &Sequences, landmarks: &[String], scoring: Scoring, open: u32, extend: u32) -> Matrix {
    let codes = |s: &str| -> Vec<Option<u32>> { s.chars().map(|c| Alphabet::Protein.code(c)).collect() };
    let landmarks: Vec<Vec<Option<u32>>> = landmarks.iter().map(|s| codes(s)).collect();
    let mut out = Matrix::zeros(sequences.len(), landmarks.len());
    out.data_mut().par_chunks_mut(landmarks.len().max(1)).enumerate().for_each(|(i, row)| {
        let own = codes(sequences.get(i));
        row.iter_mut().zip(&landmarks).for_each(|(o, z)| *o = f64::from(local(&own, z, scoring, open, extend)));
    });
    out
}

/// The best local alignment of `x` and `z`.
fn local(x: &[Option<u32>], z: &[Option<u32>], scoring: Scoring, open: u32, extend: u32) -> i32 {
    let (open, extend) = (open.cast_signed(), extend.cast_signed());
    // best[j]: of alignments that end at x[i] and z[j]; gap[j]: of those that end with a gap in z there.
    let (mut best, mut gap) = (vec![0; z.len() + 1], vec![i32::MIN / 2; z.len() + 1]);
    // A line per letter, the unknown one last.
    let profiles: Vec<Vec<i32>> =
        (0..=20).map(|a| z.iter().map(|&b| scoring.score(Some(a).filter(|a| *a < 20), b)).collect()).collect();
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
