//! How several classes become machines.

use serde::{Deserialize, Serialize};

/// How more than two classes become machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// A machine per class, against all others.
    #[default]
    #[serde(alias = "ovr")]
    OneVsRest,
    /// A machine per pair of classes i < j, in the order (0,1), (0,2), …, (1,2), …; positive = j.
    #[serde(alias = "ovo")]
    OneVsOne,
}

impl Scheme {
    /// As it is written in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OneVsRest => "one_vs_rest",
            Self::OneVsOne => "one_vs_one",
        }
    }

    /// Machines that this many classes make.
    pub fn machines(self, classes: usize) -> usize {
        match self {
            _ if classes <= 2 => 1,
            Self::OneVsRest => classes,
            Self::OneVsOne => classes * (classes - 1) / 2,
        }
    }

    /// Pairs of classes in machine order.
    pub fn pairs(classes: usize) -> Vec<(usize, usize)> {
        (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect()
    }
}
