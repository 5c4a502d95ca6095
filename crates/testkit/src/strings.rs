//! Naive twins of the string kernels: letter by letter, word by word, position by position.

use mercer::{
    data::Rng,
    kernels::{Alphabet, Scoring, Text},
};

/// Every string kernel, once per interesting parameter.
pub fn all_string_kernels() -> Vec<Text> {
    let mut all = Vec::new();
    for alphabet in [Alphabet::Dna, Alphabet::Rna, Alphabet::Protein, Alphabet::Free] {
        for k in [1, 3, 30] {
            all.push(Text::Spectrum { k, alphabet });
        }
        for (degree, shift) in [(1, 0), (2, 0), (7, 0), (1, 2), (3, 70)] {
            all.push(Text::Wd { degree, shift, alphabet });
            all.push(Text::WdSum { degree, shift, alphabet });
        }
        if alphabet != Alphabet::Free {
            for (k, m) in [(2, 0), (2, 1), (3, 2)] {
                all.push(Text::Mismatch { k, m, alphabet });
            }
        }
    }
    all
}

/// Random sequences of very different lengths, with letters of either case and some that the
/// alphabet does not have. Some repeat a piece of another, so that long words are shared.
pub fn random_sequences(alphabet: Alphabet, n: usize, seed: u64) -> Vec<String> {
    let letters: Vec<char> = match alphabet {
        Alphabet::Dna => "ACGTACGTACGTacgtN-",
        Alphabet::Rna => "ACGUACGUACGUacguNT",
        Alphabet::Protein => "ACDEFGHIKLMNPQRSTVWYacdefXB",
        Alphabet::Free => "abcABC é日.",
    }
    .chars()
    .collect();
    let mut rng = Rng::new(seed);
    let mut all: Vec<String> = Vec::new();
    for i in 0..n {
        let length = 1 + rng.below(if i % 5 == 0 { 3 } else { 150 });
        let mut text: Vec<char> = (0..length).map(|_| letters[rng.below(letters.len())]).collect();
        if i > 0 && i % 2 == 0 {
            let model: Vec<char> = all[rng.below(i)].chars().collect();
            let shared = length.min(model.len());
            text[..shared].copy_from_slice(&model[..shared]);
        }
        all.push(text.into_iter().collect());
    }
    all
}

/// The letter as the alphabet knows it, or nothing.
fn letter(alphabet: Alphabet, c: char) -> Option<char> {
    let upper = c.to_ascii_uppercase();
    match alphabet {
        Alphabet::Dna | Alphabet::Rna => Some(if upper == 'U' { 'T' } else { upper })
            .filter(|u| ['A', 'C', 'G', 'T'].contains(u)),
        Alphabet::Protein => Some(upper).filter(|u| "ACDEFGHIKLMNPQRSTVWY".contains(*u)),
        Alphabet::Free => Some(c),
    }
}

/// Words of k known letters with their positions.
fn words(alphabet: Alphabet, text: &str, k: u32) -> Vec<(usize, Vec<char>)> {
    let letters: Vec<Option<char>> = text.chars().map(|c| letter(alphabet, c)).collect();
    let word = |(at, w): (usize, &[Option<char>])| {
        w.iter().copied().collect::<Option<Vec<char>>>().map(|w| (at, w))
    };
    letters.windows(k as usize).enumerate().filter_map(word).collect()
}

/// How many words lie within m mismatches of both a and b, letter after letter: `ways[i][j]`
/// prefixes differ from a in i and from b in j.
fn shared_neighbours(a: &[char], b: &[char], m: u32, size: u32) -> f64 {
    let m = m as usize;
    let mut ways = vec![vec![0.0; m + 1]; m + 1];
    ways[0][0] = 1.0;
    for (p, q) in a.iter().zip(b) {
        let mut next = vec![vec![0.0; m + 1]; m + 1];
        let mut go = |i: usize, j: usize, by: f64| {
            if i <= m && j <= m {
                next[i][j] += by;
            }
        };
        for (i, row) in ways.iter().enumerate() {
            for (j, &now) in row.iter().enumerate() {
                if p == q {
                    go(i, j, now);
                    go(i + 1, j + 1, now * f64::from(size - 1));
                } else {
                    go(i, j + 1, now);
                    go(i + 1, j, now);
                    go(i + 1, j + 1, now * f64::from(size - 2));
                }
            }
        }
        ways = next;
    }
    ways.iter().flatten().sum()
}

/// Positions and words of both sequences to their share of the kernel.
type PairOfWords<'a> = dyn Fn(usize, usize, &[char], &[char]) -> f64 + 'a;

/// The obvious value, one pair of words at a time.
pub fn naive_string_kernel(kernel: Text, x: &str, z: &str) -> f64 {
    let pairs = |alphabet: Alphabet, k: u32, value: &PairOfWords<'_>| -> f64 {
        let (x, z) = (words(alphabet, x, k), words(alphabet, z, k));
        x.iter().flat_map(|(i, a)| z.iter().map(move |(j, b)| value(*i, *j, a, b))).sum()
    };
    let degree_of = |alphabet: Alphabet, degree: u32, shift: u32| {
        pairs(alphabet, degree, &|i, j, a, b| match i.abs_diff(j) {
            _ if a != b => 0.0,
            0 => 1.0,
            s if s <= shift as usize => 1.0 / (2.0 * (s as f64 + 1.0)),
            _ => 0.0,
        })
    };
    match kernel {
        Text::Spectrum { k, alphabet } => pairs(alphabet, k, &|_, _, a, b| f64::from(a == b)),
        Text::Mismatch { k, m, alphabet } => {
            let size = if alphabet == Alphabet::Protein { 20 } else { 4 };
            pairs(alphabet, k, &|_, _, a, b| shared_neighbours(a, b, m, size))
        }
        // These have landmarks, or read graphs: twins of their own are below.
        Text::Alignment { .. } | Text::Wl { .. } => f64::NAN,
        Text::Wd { degree, shift, alphabet } => degree_of(alphabet, degree, shift),
        Text::WdSum { degree, shift, alphabet } => {
            let d = f64::from(degree);
            let beta = |k: u32| 2.0 * (d - f64::from(k) + 1.0) / (d * (d + 1.0));
            (1..=degree).map(|k| beta(k) * degree_of(alphabet, k, shift)).sum()
        }
    }
}

/// The best local alignment by its definition: every gap length is tried everywhere.
pub fn naive_alignment(scoring: Scoring, open: u32, extend: u32, x: &str, z: &str) -> i32 {
    let code = |c: char| {
        "ACDEFGHIKLMNPQRSTVWY".chars().position(|l| l == c.to_ascii_uppercase()).map(|p| p as u32)
    };
    let (x, z): (Vec<_>, Vec<_>) = (x.chars().map(code).collect(), z.chars().map(code).collect());
    let cost = |g: usize| (open + (g as u32 - 1) * extend).cast_signed();
    let mut best = vec![vec![0; z.len() + 1]; x.len() + 1];
    let mut top = 0;
    for i in 1..=x.len() {
        for j in 1..=z.len() {
            let mut value = (best[i - 1][j - 1] + scoring.score(x[i - 1], z[j - 1])).max(0);
            for g in 1..=i {
                value = value.max(best[i - g][j] - cost(g));
            }
            for g in 1..=j {
                value = value.max(best[i][j - g] - cost(g));
            }
            best[i][j] = value;
            top = top.max(value);
        }
    }
    top
}

/// A graph of a few nodes: labels and edges.
pub type SmallGraph = (Vec<String>, Vec<(usize, usize)>);

/// Random graphs with three labels.
pub fn random_graphs(n: usize, seed: u64) -> Vec<SmallGraph> {
    let mut rng = Rng::new(seed);
    let graph = |rng: &mut Rng| {
        let nodes = 1 + rng.below(7);
        let labels = (0..nodes).map(|_| ["C", "N", "O"][rng.below(3)].to_string()).collect();
        let edges =
            (0..rng.below(2 * nodes)).map(|_| (rng.below(nodes), rng.below(nodes))).collect();
        (labels, edges)
    };
    (0..n).map(|_| graph(&mut rng)).collect()
}

/// The Weisfeiler–Lehman subtree kernel with labels written out in full.
pub fn naive_wl(rounds: u32, x: &SmallGraph, z: &SmallGraph) -> f64 {
    let refine = |(labels, edges): &SmallGraph| -> Vec<String> {
        let around = |v: usize| {
            let other =
                |&(a, b): &(usize, usize)| if a == v { Some(b) } else { (b == v).then_some(a) };
            let mut found: Vec<&str> =
                edges.iter().filter_map(other).map(|w| labels[w].as_str()).collect();
            found.sort_unstable();
            format!("({}:{})", labels[v], found.join(","))
        };
        (0..labels.len()).map(around).collect()
    };
    let (mut x, mut z) = (x.clone(), z.clone());
    let mut total = 0.0;
    for round in 0..=rounds {
        total += x.0.iter().map(|a| z.0.iter().filter(|b| a == *b).count() as f64).sum::<f64>();
        if round < rounds {
            (x.0, z.0) = (refine(&x), refine(&z));
        }
    }
    total
}
