//! Seeded random numbers whose values are part of the contract: same seed, same answer, on every
//! machine.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A PCG-64 stream with the few draws the project needs.
#[derive(Debug, Clone)]
pub struct Rng(Pcg64);

impl Rng {
    /// A stream that depends on nothing but `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n (n > 0), by rejection: exactly uniform.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.0.next_u64();
            if draw < limit {
                return (draw % n) as usize;
            }
        }
    }

    /// Draws from the standard normal distribution, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Puts the items into random order, each order equally likely (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
