//! The kernel language.

use super::KernelSpec;
use crate::{Result, data::Dataset};

/// A parsed bank of kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct Bank {}

/// Reads a text.
pub fn parse(_text: &str) -> Result<Bank> {
    unimplemented!()
}

impl Bank {
    /// Concrete kernels for these (already standardised) data.
    pub fn resolve(&self, _data: &Dataset) -> Result<Vec<KernelSpec>> {
        unimplemented!()
    }
}
