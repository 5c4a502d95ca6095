//! Sequences of letters: DNA, RNA, proteins, any text.

use crate::{Error, Result, Told};

/// One text per sample, none of them empty, in one buffer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sequences {
    text: String,
    ends: Vec<usize>,
}

impl Sequences {
    /// One sequence per item; `name` is what errors call them. An empty sequence is refused: it is
    /// a missing value.
    pub fn new<S: AsRef<str>>(name: &str, texts: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut all = Self::default();
        for text in texts {
            let text = text.as_ref();
            if text.is_empty() {
                return Err(Error::data(
                    format!("column `{name}`"),
                    Told::row(all.len(), "is an empty text"),
                    "fill it in, drop the row, or leave the column out",
                ));
            }
            all.push(text);
        }
        Ok(all)
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// How many sequences there are, one for each row.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Are there no sequences at all?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The letters of sequence `i`.
    pub fn get(&self, i: usize) -> &str {
        &self.text[i.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[i]]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The sequences `index`, in that order.
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        let mut out = Self::default();
        index.iter().for_each(|&i| out.push(self.get(i)));
        out
    }

    /// All letters in one text, and where each sequence ends in it, in bytes: what a model file
    /// stores.
    pub fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }

    /// From [`Sequences::parts`]; `None` where the ends do not cut the text into non-empty pieces.
    pub fn from_parts(text: String, ends: Vec<usize>) -> Option<Self> {
        let ascending = ends.windows(2).all(|w| w[0] < w[1]) && ends.first() != Some(&0);
        let whole = ends.last().copied().unwrap_or(0) == text.len()
            && ends.iter().all(|&e| text.is_char_boundary(e));
        (ascending && whole).then_some(Self { text, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_cut_where_they_were_joined() {
        let s = Sequences::new("s", ["ACGT", "é", "TT"]).unwrap();
        assert_eq!(s.iter().collect::<Vec<_>>(), ["ACGT", "é", "TT"]);
        assert_eq!(s.select(&[2, 0, 2]).iter().collect::<Vec<_>>(), ["TT", "ACGT", "TT"]);
        let (text, ends) = s.parts();
        assert_eq!(Sequences::from_parts(text.into(), ends.to_vec()), Some(s.clone()));
        for wrong in [vec![4, 5, 8], vec![4, 4, 8], vec![0, 8], vec![4, 6, 9], vec![4]] {
            assert_eq!(Sequences::from_parts(text.into(), wrong.clone()), None, "{wrong:?}");
        }
        let e = Sequences::new("s", ["A", ""]).unwrap_err().to_string();
        assert!(e.contains("column `s`: row 2 is an empty text"), "{e}");
    }
}
