//! The numbers of a matrix: in memory, its own or shared with other matrices, or in a file that is
//! mapped.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use memmap2::Mmap;
use rayon::prelude::*;

use crate::tuning::tuning;

tuning! { "numbers"
    /// Numbers that are turned into bytes at a time on their way to a file.
    numbers_per_write: usize = 1 << 16;
    /// Numbers that one task sets to zero; fewer are set by one thread.
    numbers_per_task: usize = 1 << 16;
}

/// Number of files made so far, for their names.
static FILES: AtomicUsize = AtomicUsize::new(0);

/// Numbers that are read like a slice. Writing to shared ones, or to those in a file, first makes a
/// copy of one's own.
#[derive(Debug)]
pub(super) enum Numbers {
    /// Numbers of one matrix; a clone copies them.
    Own(Vec<f64>),
    /// Numbers of several matrices.
    Shared(Arc<Vec<f64>>),
    /// Numbers in a mapped file.
    File(Arc<Mmap>),
}

#[cfg(test)]
thread_local! {
    /// The number of numbers that each copy on this thread copied: for tests that count copies.
    pub(crate) static COPIES: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// A copy, of which tests know.
fn copied(numbers: &[f64]) -> Vec<f64> {
    #[cfg(test)]
    COPIES.with_borrow_mut(|copies| copies.push(numbers.len()));
    numbers.to_vec()
}

impl Clone for Numbers {
    fn clone(&self) -> Self {
        match self {
            Self::Own(v) => Self::Own(copied(v)),
            Self::Shared(v) => Self::Shared(Arc::clone(v)),
            Self::File(map) => Self::File(Arc::clone(map)),
        }
    }
}

impl Numbers {
    /// Moves the numbers into a file in the system's folder for such files, which goes with the
    /// last matrix that reads it.
    pub(super) fn to_file(&self) -> io::Result<Self> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("mercer-{}-{number}.numbers", std::process::id()));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        // Written, not mapped, so that a full disk is an error and no crash.
        let written = self.chunks(TUNING.numbers_per_write).try_for_each(|chunk| {
            let bytes: Vec<u8> = chunk.iter().flat_map(|x| x.to_ne_bytes()).collect();
            file.write_all(&bytes)
        });
        // SAFETY: nobody else knows the file, which has no name any more (or, where systems keep
        // it, one of this process alone).
        let map = written.and_then(|()| unsafe { Mmap::map(&file) });
        let _ = std::fs::remove_file(&path);
        Ok(Self::File(Arc::new(map?)))
    }

    /// The same numbers, which clones will share: nothing is copied before one of them is written
    /// to.
    pub(super) fn shared(self) -> Self {
        match self {
            Self::Own(v) => Self::Shared(Arc::new(v)),
            other => other,
        }
    }

    /// The numbers as a vector; a copy where others read them too.
    pub(super) fn into_vec(self) -> Vec<f64> {
        match self {
            Self::Own(v) => v,
            Self::Shared(v) => Arc::try_unwrap(v).unwrap_or_else(|v| copied(&v)),
            Self::File(_) => copied(&self),
        }
    }

    /// Bytes in memory, which others may share.
    pub(super) fn resident(&self) -> u64 {
        match self {
            Self::Own(_) | Self::Shared(_) => size_of_val(&**self) as u64,
            Self::File(_) => 0,
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(v: Vec<f64>) -> Self {
        Self::Own(v)
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Deref for Numbers {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match self {
            Self::Own(v) => v,
            Self::Shared(v) => v,
            // SAFETY: the file holds whole numbers written as they lie in memory, every pattern of
            // bits is one, and maps begin on a page.
            Self::File(map) => unsafe {
                std::slice::from_raw_parts(map.as_ptr().cast(), map.len() / size_of::<f64>())
            },
        }
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [f64] {
        if !matches!(self, Self::Own(_)) {
            *self = Self::Own(std::mem::take(self).into_vec());
        }
        match self {
            Self::Own(v) => v,
            Self::Shared(_) | Self::File(_) => &mut [],
        }
    }
}

/// Zeros, written by all threads where they are many: pages that are read before they are written
/// cost twice, and stop all threads.
pub fn zeros<T: Copy + Default + Send + Sync>(count: usize) -> Vec<T> {
    let mut out = vec![T::default(); count];
    if count > TUNING.numbers_per_task {
        in_large_pages(&out);
        out.par_chunks_mut(TUNING.numbers_per_task).for_each(|run| run.fill(T::default()));
    }
    out
}

/// Pages of 2 MiB for memory that nothing was written to yet, where there is enough: five hundred
/// times fewer faults, and rows far apart stay within reach. A hint: where the system has none,
/// nothing changes.
pub fn in_large_pages<T>(fresh: &[T]) {
    #[cfg(target_os = "linux")]
    {
        // The size of a large page on x86-64, and on most other systems.
        const LARGE: usize = 1 << 21;
        let range = fresh.as_ptr_range();
        let (start, end) =
            (range.start.addr().next_multiple_of(LARGE), range.end.addr() & !(LARGE - 1));
        if end > start {
            // SAFETY: whole pages inside memory that `fresh` borrows; their contents stay as they
            // are.
            unsafe {
                libc::madvise(
                    range.start.with_addr(start).cast_mut().cast(),
                    end - start,
                    libc::MADV_HUGEPAGE,
                )
            };
        }
    }
}
