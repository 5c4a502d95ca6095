//! Explicit sparse features: how often each word occurs in each sequence, by sequence and by word.
//! A row of the kernel matrix is one pass over the places of its own words.
//!
//! A word is a 128-bit key: its letters side by side where they fit (64 nucleotides, 25 amino
//! acids, 6 free letters), else a 128-bit hash of them, so that two words share a key with a
//! probability of about 10⁻³⁸.

use super::Alphabet;
use crate::data::Sequences;

/// Counts over the words that occur.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The words as numbers, in ascending order.
    keys: Vec<u128>,
    /// Per sequence: word (its place in `keys`) and count.
    by_row: Lists,
    /// Per word: sequence, ascending, and count.
    by_key: Lists,
}

/// Lists of (index, count) one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lists {
    start: Vec<usize>,
    items: Vec<(u32, u32)>,
}

impl Lists {
    fn get(&self, i: usize) -> &[(u32, u32)] {
        &self.items[self.start[i]..self.start[i + 1]]
    }
}

impl Counts {
    /// Words of `k` letters.
    pub fn spectrum(sequences: &Sequences, k: u32, alphabet: Alphabet) -> Self {
        Self::new(sequences.iter().map(|s| {
            let mut words = Vec::new();
            each_word(s, k, alphabet, |codes| words.push((key(codes, alphabet.bits()), 1)));
            words
        }))
    }

    /// Words of `k` letters, each counted for every word that differs from it in at most `m`
    /// letters.
    pub fn mismatch(sequences: &Sequences, k: u32, m: u32, alphabet: Alphabet) -> Self {
        let size = alphabet.size().unwrap_or(0);
        Self::new(sequences.iter().map(|s| {
            let mut own = Vec::new();
            each_word(s, k, alphabet, |codes| own.push(codes.to_vec()));
            own.sort_unstable();
            let mut words = Vec::new();
            for same in own.chunk_by(|a, b| a == b) {
                neighbours(&mut same[0].clone(), 0, m, size, &mut |near| {
                    words.push((key(near, alphabet.bits()), same.len() as u32));
                });
            }
            words
        }))
    }

    /// From (word, count) of each row, in any order and with repetitions.
    pub fn new(rows: impl Iterator<Item = Vec<(u128, u32)>>) -> Self {
        let rows: Vec<Vec<(u128, u32)>> = rows.map(merged).collect();
        let mut keys: Vec<u128> = rows.iter().flatten().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut by_row, mut sizes) =
            (Lists { start: vec![0], items: Vec::new() }, vec![0usize; keys.len() + 1]);
        for row in &rows {
            for (key, count) in row {
                let id = keys.partition_point(|k| k < key);
                sizes[id + 1] += 1;
                by_row.items.push((id as u32, *count));
            }
            by_row.start.push(by_row.items.len());
        }
        for id in 0..keys.len() {
            sizes[id + 1] += sizes[id];
        }
        let mut by_key = Lists { start: sizes.clone(), items: vec![(0, 0); by_row.items.len()] };
        for i in 0..rows.len() {
            for &(id, count) in by_row.get(i) {
                by_key.items[sizes[id as usize]] = (i as u32, count);
                sizes[id as usize] += 1;
            }
        }
        Self { keys, by_row, by_key }
    }

    pub fn len(&self) -> usize {
        self.by_row.start.len() - 1
    }

    /// Different words: at least the rank of the kernel.
    pub fn features(&self) -> usize {
        self.keys.len()
    }

    /// The words that occur, as numbers in ascending order.
    pub fn keys(&self) -> &[u128] {
        &self.keys
    }

    /// Calls `visit(place in keys, count)` for the words of sequence i that `keys`, ascending, has.
    pub fn each_in(&self, i: usize, keys: &[u128], mut visit: impl FnMut(usize, f64)) {
        let same = std::ptr::eq(keys, self.keys());
        for &(id, count) in self.by_row.get(i) {
            let place =
                if same { Ok(id as usize) } else { keys.binary_search(&self.keys[id as usize]) };
            if let Ok(place) = place {
                visit(place, f64::from(count));
            }
        }
    }

    pub fn diagonal(&self) -> Vec<f64> {
        let square = |&(_, count): &(u32, u32)| f64::from(count).powi(2);
        (0..self.len()).map(|i| self.by_row.get(i).iter().map(square).sum()).collect()
    }

    /// Counts are whole numbers, so that sums do not depend on their order.
    pub fn row(&self, i: usize, other: &Self, out: &mut [f64]) {
        out.fill(0.0);
        let rows = out.len();
        self.each_in(i, other.keys(), |there, count| {
            for &(j, times) in
                other.by_key.get(there).iter().take_while(|(j, _)| (*j as usize) < rows)
            {
                out[j as usize] += count * f64::from(times);
            }
        });
    }
}

/// Equal words joined, ascending.
fn merged(mut words: Vec<(u128, u32)>) -> Vec<(u128, u32)> {
    words.sort_unstable();
    words.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    words
}

/// Every word of `k` known letters.
fn each_word(sequence: &str, k: u32, alphabet: Alphabet, mut visit: impl FnMut(&[u32])) {
    let codes: Vec<Option<u32>> = sequence.chars().map(|c| alphabet.code(c)).collect();
    for known in codes.split(Option::is_none) {
        let known: Vec<u32> = known.iter().copied().flatten().collect();
        known.windows(k as usize).for_each(&mut visit);
    }
}

fn key(codes: &[u32], bits: u32) -> u128 {
    if codes.len() * bits as usize <= 128 {
        return codes.iter().fold(0, |key, &code| key << bits | u128::from(code));
    }
    hash(codes.iter().map(|&code| u128::from(code)))
}

/// FNV-1a with 128 bits over whole numbers, and a last stir.
pub fn hash(numbers: impl Iterator<Item = u128>) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    let stirred = |h: u128| (h ^ (h >> 67)).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let all = numbers.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |h: u128, n| {
        stirred((h ^ n).wrapping_mul(PRIME))
    });
    all ^ (all >> 64)
}

/// Every word that differs from `word` in at most `m` letters at or after `from`, each once.
fn neighbours(word: &mut [u32], from: usize, m: u32, size: u32, visit: &mut dyn FnMut(&[u32])) {
    visit(word);
    if m == 0 {
        return;
    }
    for at in from..word.len() {
        let own = word[at];
        for letter in (0..size).filter(|&letter| letter != own) {
            word[at] = letter;
            neighbours(word, at + 1, m - 1, size, visit);
        }
        word[at] = own;
    }
}
