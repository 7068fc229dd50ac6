//! Batches that an element has emitted, until the runtime passes them on.

use super::calls::HandlerCall;
use castanet_packet::Batch;
use std::collections::VecDeque;

/// The output by which the packets leave that an element has left in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This output.
    Output(u8),
    /// None: the element has emitted, dropped or kept all packets.
    None,
}

/// Destination of an emitted batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Destination {
    /// An output of the element.
    Output(u8),
    /// A handler call: the batch goes on when the call has been made. The calls stand in a queue of
    /// their own ([`Outputs::take_call`]), in the same order.
    Call,
}

/// Batches that elements have emitted and the runtime has not passed on yet. Where an element pulls
/// another, those of the outer element come first; those of the element that runs begin at the mark.
pub struct Outputs {
    batches: Vec<(Destination, Batch)>,
    mark: usize,
    calls: VecDeque<Box<HandlerCall>>,
    /// By output: where a batch for it was last found in the list, which may have changed since.
    places: [u8; 256],
}

impl Default for Outputs {
    fn default() -> Self {
        let (batches, calls) = Default::default();
        Outputs { batches, mark: 0, calls, places: [0; 256] }
    }
}

impl Outputs {
    /// Number of batches of all elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether nothing was emitted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether handler calls are among what was emitted.
    #[inline]
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Has the batches of the next element begin at index `at`; returns where those of the present one
    /// begin.
    #[inline]
    pub fn set_mark(&mut self, at: usize) -> usize {
        std::mem::replace(&mut self.mark, at)
    }

    /// Index of the first batch of the element that runs.
    #[inline]
    pub fn mark(&self) -> usize {
        self.mark
    }

    /// The batch that the running element has emitted for `output` and that may grow: there is no
    /// more than one from the mark on.
    #[inline]
    pub fn find(&mut self, output: u8) -> Option<&mut Batch> {
        let place = self.place_of(output).or_else(|| self.search(output))?;
        self.batches.get_mut(place).map(|(_, batch)| batch)
    }

    /// The same; an empty batch, emitted now, if there is none.
    #[inline]
    pub fn find_or_emit(&mut self, output: u8) -> &mut Batch {
        let place = self.place_or_emit(output);
        &mut self.batches[place].1
    }

    /// The index of that batch.
    #[inline]
    pub(crate) fn place_or_emit(&mut self, output: u8) -> usize {
        match self.place_of(output) {
            Some(place) => place,
            None => self.search_or_emit(output),
        }
    }

    /// All batches.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [(Destination, Batch)] {
        &mut self.batches
    }

    /// Where the batch for `output` was last found, if it is there still.
    #[inline]
    fn place_of(&self, output: u8) -> Option<usize> {
        let place = usize::from(self.places[usize::from(output)]);
        let found = self.batches.get(place).map(|(to, _)| *to);
        (found == Some(Destination::Output(output)) && place >= self.mark).then_some(place)
    }

    #[cold]
    fn search_or_emit(&mut self, output: u8) -> usize {
        self.search(output).unwrap_or_else(|| {
            self.emit_empty(output);
            self.batches.len() - 1
        })
    }

    /// Looks through the list.
    fn search(&mut self, output: u8) -> Option<usize> {
        let own = &self.batches[self.mark..];
        let found = own.iter().rposition(|(to, _)| *to == Destination::Output(output))?;
        let place = self.mark + found;
        self.places[usize::from(output)] = u8::try_from(place).unwrap_or(0);
        Some(place)
    }

    /// Emits an empty batch for an output, and lends it in its place in the list: a pair that was made
    /// elsewhere would be read in wider words than it was written, and a processor waits for such a
    /// load until all stores before it, those of the burst's packets included, are in the cache.
    #[inline]
    pub fn emit_empty(&mut self, output: u8) -> &mut Batch {
        let at = self.batches.len();
        self.places[usize::from(output)] = u8::try_from(at).unwrap_or(0);
        self.batches.push((Destination::Output(output), Batch::new()));
        &mut self.batches[at].1
    }

    /// Emits a batch for an output: joined to the one that the running element has emitted for it, if
    /// there is one that may grow.
    #[inline]
    pub fn emit_or_join(&mut self, output: u8, mut batch: Batch) {
        if self.batches.len() > self.mark
            && let Some(before) = self.find(output)
        {
            return before.append(&mut batch);
        }
        *self.emit_empty(output) = batch;
    }

    /// Emits a batch for an output, and leaves an empty one.
    #[inline]
    pub fn emit(&mut self, output: u8, batch: &mut Batch) {
        std::mem::swap(self.emit_empty(output), batch);
    }

    /// Emits a handler call with the packets that wait for it. Batches emitted from now on join none
    /// that was emitted before.
    pub fn emit_call(&mut self, call: Box<HandlerCall>, batch: Batch) {
        self.calls.push_back(call);
        self.batches.push((Destination::Call, batch));
        self.mark = self.batches.len();
    }

    /// Takes the batch that was emitted last.
    #[inline]
    pub fn pop(&mut self) -> Option<(Destination, Batch)> {
        self.batches.pop()
    }

    /// Destination of the batch at `index`.
    #[inline]
    pub fn destination(&self, index: usize) -> Destination {
        self.batches[index].0
    }

    /// Takes the batch at `index`; those behind it move up.
    pub fn remove(&mut self, index: usize) -> Batch {
        self.batches.remove(index).1
    }

    /// Takes all batches from index `from` on.
    pub fn split_off(&mut self, from: usize) -> Vec<(Destination, Batch)> {
        self.batches.split_off(from)
    }

    /// Sorts the batches from index `from` on by `key` of their outputs.
    pub fn sort_from(&mut self, from: usize, key: impl Fn(u8) -> u8) {
        self.batches[from..].sort_by_key(|(to, _)| match to {
            Destination::Output(output) => key(*output),
            Destination::Call => u8::MAX,
        });
    }

    /// The batches from this index on that are for outputs, to look at.
    pub fn batches_from(&mut self, from: usize) -> impl Iterator<Item = (u8, &mut Batch)> {
        self.batches[from..].iter_mut().filter_map(|(to, batch)| match to {
            Destination::Output(output) => Some((*output, batch)),
            Destination::Call => None,
        })
    }

    /// Packets in the batches from index `from` on.
    pub fn packets_from(&self, from: usize) -> u64 {
        self.batches[from..].iter().map(|(_, batch)| batch.len() as u64).sum()
    }

    /// Takes the first call of the queue.
    pub fn take_call(&mut self) -> Option<Box<HandlerCall>> {
        self.calls.pop_front()
    }

    /// Takes the calls of the batches from index `from` on: the last ones of the queue.
    pub fn take_calls_from(&mut self, from: usize) -> VecDeque<Box<HandlerCall>> {
        let count = self.batches[from..].iter().filter(|(to, _)| *to == Destination::Call).count();
        self.calls.split_off(self.calls.len() - count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place where a batch was found may be that of another batch later.
    #[test]
    fn batches_are_found_after_others_have_left() {
        let mut outputs = Outputs::default();
        for output in [3, 0, 7] {
            outputs.find_or_emit(output).push(castanet_packet::Packet::from_bytes(&[output]));
        }
        let number =
            |outputs: &mut Outputs, output| outputs.find(output).map(|it| it[0].bytes()[0]);
        for output in [3, 0, 7] {
            assert_eq!(number(&mut outputs, output), Some(output));
        }
        assert_eq!(outputs.find(1).map(|_| ()), None);
        outputs.remove(0);
        assert_eq!(number(&mut outputs, 3), None);
        assert_eq!((number(&mut outputs, 0), number(&mut outputs, 7)), (Some(0), Some(7)));
        // Batches before the mark are those of another element.
        outputs.set_mark(1);
        assert_eq!((number(&mut outputs, 0), number(&mut outputs, 7)), (None, Some(7)));
        assert!(outputs.find_or_emit(0).is_empty());
        assert_eq!((outputs.len(), outputs.destination(2)), (3, Destination::Output(0)));
        outputs.set_mark(0);
        outputs.split_off(1);
        assert_eq!((number(&mut outputs, 0), number(&mut outputs, 7)), (Some(0), None));
    }
}
