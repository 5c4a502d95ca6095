//! Labelled pixels of an image of many channels as rows: the spectrum, then means and deviations of
//! every channel in windows around it.

use std::path::Path;

use mercer::{
    Error, Result,
    data::{
        Dataset, Target,
        array::{Array, Values},
    },
    linalg::Matrix,
};

/// `cube` (height × width × channels) and `gt` (height × width, 0 for pixels without a label).
/// Windows are cut off at the border.
pub fn rows(
    arrays: &[(String, Array)],
    windows: &[usize],
    source: &Path,
) -> Result<(Dataset, Target)> {
    let (shape, cube) = numbers(arrays, "cube", source)?;
    let (places, labels) = numbers(arrays, "gt", source)?;
    let (&[height, width, channels], true) = (shape, shape.starts_with(places)) else {
        return Err(Error::file(
            source,
            "expected `cube` (height, width, channels) and `gt` (height, width)",
        ));
    };
    let labelled: Vec<usize> = (0..height * width).filter(|&i| labels[i] != 0.0).collect();
    let groups = 1 + 2 * windows.len();
    let mut features = Matrix::zeros(labelled.len(), groups * channels);
    for channel in 0..channels {
        let plane = |i: usize| cube[i * channels + channel];
        // Sums over the rectangle above and left of a corner, of values and of squares. Whole
        // numbers of 16 bits: both are exact.
        let (mut sums, wide) = (vec![(0.0, 0.0); (height + 1) * (width + 1)], width + 1);
        for y in 0..height {
            for x in 0..width {
                let (v, at) = (plane(y * width + x), (y + 1) * wide + x + 1);
                let (up, left, both) = (sums[at - wide], sums[at - 1], sums[at - wide - 1]);
                sums[at] = (up.0 + left.0 - both.0 + v, up.1 + left.1 - both.1 + v * v);
            }
        }
        for (row, &i) in labelled.iter().enumerate() {
            features[(row, channel)] = plane(i);
            let (y, x) = (i / width, i % width);
            for (k, window) in windows.iter().enumerate() {
                let reach = window / 2;
                let (top, bottom) = (y.saturating_sub(reach), (y + reach + 1).min(height));
                let (left, right) = (x.saturating_sub(reach), (x + reach + 1).min(width));
                let [a, b, c, d] = [(bottom, right), (top, right), (bottom, left), (top, left)]
                    .map(|(y, x)| sums[y * wide + x]);
                let n = ((bottom - top) * (right - left)) as f64;
                let (mean, square) = ((a.0 - b.0 - c.0 + d.0) / n, (a.1 - b.1 - c.1 + d.1) / n);
                features[(row, (1 + 2 * k) * channels + channel)] = mean;
                features[(row, (2 + 2 * k) * channels + channel)] =
                    (square - mean * mean).max(0.0).sqrt();
            }
        }
    }
    let classes: Vec<String> = labelled.iter().map(|&i| labels[i].to_string()).collect();
    Ok((Dataset::new(features, Vec::new())?, Target::classes(&classes)))
}

fn numbers<'a>(
    arrays: &'a [(String, Array)],
    name: &str,
    source: &Path,
) -> Result<(&'a [usize], &'a [f64])> {
    match arrays.iter().find(|(n, _)| n == name) {
        Some((_, Array { shape, values: Values::Numbers(values) })) => Ok((shape, values)),
        _ => Err(Error::file(source, format!("has no array `{name}` of numbers"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_cut_off_at_the_border() {
        let array = |shape: &[usize], values: &[f64]| Array {
            shape: shape.to_vec(),
            values: Values::Numbers(values.to_vec()),
        };
        // One channel, 2 × 3 pixels, of which the upper left and the lower right have labels.
        let arrays = vec![
            ("cube".to_string(), array(&[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            ("gt".to_string(), array(&[2, 3], &[7.0, 0.0, 0.0, 0.0, 0.0, 2.0])),
        ];
        let found = rows(&arrays, &[3], Path::new("x.npz")).ok();
        let found = found.map(|(data, target)| (data.features().data().to_vec(), target));
        let target = Target::Classes { names: vec!["2".into(), "7".into()], labels: vec![1, 0] };
        // The window of the first holds 1, 2, 4, 5: mean 3, variance 2.5; of the second 2, 3, 5, 6:
        // mean 4, variance 2.5.
        let deviation = 2.5f64.sqrt();
        assert_eq!(found, Some((vec![1.0, 3.0, deviation, 6.0, 4.0, deviation], target)));
        assert!(rows(&arrays[..1], &[3], Path::new("x.npz")).is_err());
    }
}
