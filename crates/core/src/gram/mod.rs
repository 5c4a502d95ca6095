//! The one seam between kernels and solvers.

/// Ready-made kernel values, kernel axis last: entry (i, j) of kernel t is `data[(i·cols + j)·terms + t]`.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// Samples.
    pub rows: usize,
    /// Training samples.
    pub cols: usize,
    /// Kernels.
    pub terms: usize,
    /// The numbers.
    pub data: &'a [f64],
}
