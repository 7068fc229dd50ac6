//! Parallel mapping over the processors that the thread may use.

use std::thread;

/// Applies `f` to each item and returns the results in order. Each thread gets at least `min_share`
/// items, so that small jobs run on the caller's thread.
pub fn map<T: Sync, R: Send>(items: &[T], min_share: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let share = items.len().div_ceil(processors).max(min_share).max(1);
    let mut shares = items.chunks(share);
    let Some(own) = shares.next() else { return Vec::new() };
    let map_share = |share: &[T]| share.iter().map(&f).collect::<Vec<R>>();
    let map_share = &map_share;
    thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || map_share(share))).collect();
        let mut all = map_share(own);
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        for count in [0, 1, 7, 1000] {
            let items: Vec<usize> = (0..count).collect();
            for min_share in [0, 1, 10, 5000] {
                let expected: Vec<usize> = items.iter().map(|n| n * n).collect();
                assert_eq!(map(&items, min_share, |n| n * n), expected);
            }
        }
    }

    #[test]
    fn a_panic_is_not_lost() {
        let items: Vec<u32> = (0..100).collect();
        let ran = std::panic::catch_unwind(|| map(&items, 1, |n| 1 / (99 - n)));
        assert!(ran.is_err());
    }
}
