//! The numbers of a matrix: in memory, or in a file that is mapped where there are more than memory should hold.

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

/// Files so far.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Numbers that are turned into bytes at a time.
const CHUNK: usize = 1 << 16;

/// To be read like a slice; writing to what lies in a file first brings it back into memory.
#[derive(Debug, Clone)]
pub(super) enum Numbers {
    Memory(Vec<f64>),
    File(Arc<Mmap>),
}

impl Numbers {
    /// Moves the numbers into a file in the system's folder for such files, which goes with the last matrix that reads it.
    pub(super) fn to_file(&self) -> io::Result<Self> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mercer-{}-{number}.numbers", std::process::id()));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        // Written, not mapped, so that a full disk is an error and no crash.
        let written = self.chunks(CHUNK).try_for_each(|chunk| {
            let bytes: Vec<u8> = chunk.iter().flat_map(|x| x.to_ne_bytes()).collect();
            file.write_all(&bytes)
        });
        // SAFETY: nobody else knows the file, which has no name any more (or, where systems keep it, one of this process alone).
        let map = written.and_then(|()| unsafe { Mmap::map(&file) });
        let _ = std::fs::remove_file(&path);
        Ok(Self::File(Arc::new(map?)))
    }

    pub(super) fn into_vec(self) -> Vec<f64> {
        match self {
            Self::Memory(v) => v,
            Self::File(_) => self.to_vec(),
        }
    }

    /// Bytes in memory.
    pub(super) fn resident(&self) -> u64 {
        match self {
            Self::Memory(v) => size_of_val(v.as_slice()) as u64,
            Self::File(_) => 0,
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(v: Vec<f64>) -> Self {
        Self::Memory(v)
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
            Self::Memory(v) => v,
            // SAFETY: the file holds whole numbers written as they lie in memory, every pattern of bits is one, and maps begin on a page.
            Self::File(map) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), map.len() / size_of::<f64>()) },
        }
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [f64] {
        if let Self::File(_) = self {
            *self = Self::Memory(self.to_vec());
        }
        match self {
            Self::Memory(v) => v,
            Self::File(_) => &mut [],
        }
    }
}

/// Numbers of which so many are a task of their own.
const RUN: usize = 1 << 16;

/// So many zeros, written by all threads where they are many: pages that are read before they are written cost twice, and stop all threads.
pub fn zeros<T: Copy + Default + Send + Sync>(count: usize) -> Vec<T> {
    let mut out = vec![T::default(); count];
    if count > RUN {
        in_large_pages(&out);
        out.par_chunks_mut(RUN).for_each(|run| run.fill(T::default()));
    }
    out
}

/// Pages of 2 MiB for memory that nothing was written to yet, where there is enough: five hundred times fewer faults, and rows far apart
/// stay within reach. A hint: where the system has none, nothing changes.
pub fn in_large_pages<T>(fresh: &[T]) {
    #[cfg(target_os = "linux")]
    {
        const LARGE: usize = 1 << 21;
        let range = fresh.as_ptr_range();
        let (start, end) = (range.start.addr().next_multiple_of(LARGE), range.end.addr() & !(LARGE - 1));
        if end > start {
            // SAFETY: whole pages inside memory that `fresh` borrows; their contents stay as they are.
            unsafe { libc::madvise(range.start.with_addr(start).cast_mut().cast(), end - start, libc::MADV_HUGEPAGE) };
        }
    }
}
