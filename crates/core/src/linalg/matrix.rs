//! A dense row-major matrix of f64: the shape data travel in.

use crate::Error;

/// Dense, row-major, `rows × cols`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// From row-major numbers.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self, Error> {
        if data.len() != rows * cols {
            return Err(Error::shape("matrix", format!("{rows} × {cols} = {} numbers", rows * cols), data.len()));
        }
        Ok(Self { rows, cols, data })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, mutable.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All numbers, row after row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All numbers, row after row, mutable.
    pub fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// Column `j`, copied.
    pub fn column(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self.data[i * self.cols + j]).collect()
    }

    /// The rows `index`, copied in that order.
    #[must_use]
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let mut data = Vec::with_capacity(index.len() * self.cols);
        for &i in index {
            data.extend_from_slice(self.row(i));
        }
        Self { rows: index.len(), cols: self.cols, data }
    }

    /// The columns `index`, copied in that order.
    #[must_use]
    pub fn select_cols(&self, index: &[usize]) -> Self {
        let mut data = Vec::with_capacity(index.len() * self.rows);
        for i in 0..self.rows {
            let row = self.row(i);
            data.extend(index.iter().map(|&j| row[j]));
        }
        Self { rows: self.rows, cols: index.len(), data }
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[i * self.cols + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[i * self.cols + j]
    }
}
