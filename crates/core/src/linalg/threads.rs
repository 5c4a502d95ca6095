//! One thread pool per process and size, rebuilt in a forked child.
//!
//! A pool's worker threads do not survive `fork`, and a child that used its parent's pool would
//! wait for them for ever; so pools are keyed by the process id. Results never depend on the pool:
//! chunks and the order of reductions are fixed by the problem's size alone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

type Pools = Mutex<HashMap<(u32, usize), Arc<ThreadPool>>>;

/// Runs `work` with `threads` threads (`None`: one per core).
pub fn install<R: Send>(threads: Option<usize>, work: impl FnOnce() -> R + Send) -> R {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    let size = threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        .max(1);
    let pool = {
        let mut pools =
            POOLS.get_or_init(Pools::default).lock().unwrap_or_else(PoisonError::into_inner);
        let key = (std::process::id(), size);
        // A parent's pools are leaked in the child: dropping them would join threads that are not
        // there.
        if !pools.contains_key(&key)
            && let Ok(pool) = ThreadPoolBuilder::new().num_threads(size).build()
        {
            for (_, old) in pools.extract_if(|k, _| k.0 != key.0) {
                std::mem::forget(old);
            }
            pools.insert(key, Arc::new(pool));
        }
        pools.get(&key).cloned()
    };
    // No threads to be had: the work still gets done.
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
