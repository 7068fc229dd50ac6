//! A copy-on-write vector: clones share the chunks that neither has changed.

use std::sync::Arc;

/// Values in one chunk, which is the most that a change has to copy: about 10 µs.
const CHUNK: usize = 4096;

/// A vector in chunks. [`CowVec::share`] followed by a clone takes some nanoseconds per chunk. The
/// first change of a shared chunk copies it. Other changes cost one comparison, where the vectors
/// of `imbl` would read an atomic counter on each level.
#[derive(Clone, Debug)]
pub struct CowVec<T> {
    chunks: Vec<Chunk<T>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Chunk<T> {
    /// The values, if they are not in `shared`.
    unshared: Vec<T>,
    shared: Option<Arc<Vec<T>>>,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        CowVec { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunk<T> {
    #[inline]
    fn values(&self) -> &[T] {
        self.shared.as_deref().unwrap_or(&self.unshared)
    }

    #[inline]
    fn values_mut(&mut self) -> &mut Vec<T> {
        if self.shared.is_some() {
            self.unshare();
        }
        &mut self.unshared
    }

    #[cold]
    fn unshare(&mut self) {
        self.unshared = self.shared.take().map_or_else(Vec::new, Arc::unwrap_or_clone);
    }

    fn share(&mut self) {
        if self.shared.is_none() {
            self.shared = Some(Arc::new(std::mem::take(&mut self.unshared)));
        }
    }
}

impl<T: Clone> CowVec<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Chunk { unshared: Vec::new(), shared: None });
        }
        if let Some(last) = self.chunks.last_mut() {
            last.values_mut().push(value);
            self.len += 1;
        }
    }

    /// The value at an index.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.values().get(at % CHUNK)
    }

    /// The value at an index, mutable.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / CHUNK)?.values_mut().get_mut(at % CHUNK)
    }

    /// The values from an index on.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &T> {
        let rest = self.chunks.get(at / CHUNK..).unwrap_or_default();
        rest.iter().flat_map(|chunk| chunk.values()).skip(at % CHUNK)
    }

    /// Makes all chunks shareable, until they are changed.
    pub fn share(&mut self) {
        self.chunks.iter_mut().for_each(Chunk::share);
    }

    /// Makes the chunk that ends at index `at` shareable, if there is one. For values that are
    /// written in order: a clone then has only one chunk to copy.
    #[inline]
    pub fn share_chunk_ending_at(&mut self, at: usize) {
        if (at + 1).is_multiple_of(CHUNK)
            && let Some(chunk) = self.chunks.get_mut(at / CHUNK)
        {
            chunk.share();
        }
    }
}

#[cfg(test)]
impl<T> CowVec<T> {
    /// How many chunks are not shared.
    pub(crate) fn unshared_chunks(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.shared.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clones_share_unchanged_chunks() {
        let mut all = CowVec::default();
        (0..10 * CHUNK + 1).for_each(|value| all.push(value));
        all.share();
        let copy = all.clone();
        assert_eq!((all.unshared_chunks(), copy.unshared_chunks()), (0, 0));
        *all.get_mut(3 * CHUNK).unwrap() = 7;
        *all.get_mut(3 * CHUNK + 1).unwrap() = 8;
        all.push(9);
        assert_eq!(
            (all.unshared_chunks(), all.len(), copy.len()),
            (2, 10 * CHUNK + 2, 10 * CHUNK + 1)
        );
        assert_eq!((all.get(3 * CHUNK), copy.get(3 * CHUNK)), (Some(&7), Some(&(3 * CHUNK))));
        assert!(copy.iter_from(5).copied().eq(5..10 * CHUNK + 1));
        assert_eq!((copy.get(copy.len()), copy.iter_from(copy.len()).next()), (None, None));
    }

    #[test]
    fn values_written_in_order_leave_one_unshared_chunk() {
        let mut all = CowVec::default();
        for at in 0..5 * CHUNK + 2 {
            all.push(at);
            all.share_chunk_ending_at(at);
            assert!(all.unshared_chunks() <= 1);
        }
        for at in 0..3 * CHUNK {
            *all.get_mut(at).unwrap() += 1;
            all.share_chunk_ending_at(at);
        }
        assert_eq!(all.unshared_chunks(), 1);
        assert!(all.iter_from(0).copied().take(3 * CHUNK).eq(1..=3 * CHUNK));
    }

    proptest! {
        #[test]
        fn is_a_vector(steps in prop::collection::vec((0usize..3, 0..3 * CHUNK), 1..60)) {
            let (mut it, mut model): (CowVec<usize>, Vec<usize>) = Default::default();
            let mut copies = Vec::new();
            for (step, n) in steps {
                match step {
                    0 => (0..n).for_each(|value| { it.push(value); model.push(value) }),
                    1 => {
                        let places = (it.get_mut(n), model.get_mut(n));
                        prop_assert_eq!(places.0.is_some(), places.1.is_some());
                        places.0.into_iter().chain(places.1).for_each(|value| *value += 1);
                    }
                    _ => {
                        it.share();
                        copies.push((it.clone(), model.clone()));
                    }
                }
            }
            copies.push((it, model));
            for (it, model) in copies {
                prop_assert!(it.iter_from(0).eq(&model));
                prop_assert_eq!(it.len(), model.len());
            }
        }
    }
}
