//! Later.
use serde::{Deserialize, Serialize};
/// Column means and scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardizer {
    /// Column means.
    pub mean: Vec<f64>,
    /// Column scales; 1 for a constant column.
    pub scale: Vec<f64>,
}
