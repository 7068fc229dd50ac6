//! The context of a call to an element: time, outputs, frames, timers.

use crate::bypass::BypassTarget;
use crate::exec::{
    AfterCall, ChannelLine, Destination, ExecState, HandlerCall, RandomNumbers, is_default_channel,
};
use crate::fate::{Fate, NO_FRAME, NO_MEMORY};
use crate::frames::Shortage;
use crate::time::Time;
use castanet_packet::{Batch, Exits, Packet, PacketTotals, Pool};
use std::slice;
use std::time::Duration;

/// Time after which a source that found no frame runs again at the latest: frames come back without a
/// notice.
const AFTER_FAMINE: Duration = Duration::from_millis(1);
/// Length in bytes up to which a packet is copied rather than shared: a copy of a few cache lines to a
/// frame that was used last takes no longer than two atomic operations, and no element that writes to
/// the packet has to copy it.
const SHORT: usize = 256;
/// The share of the device pool's reserve that each element may keep: one of so many frames.
const MOMENTARY: usize = 64;

/// The other elements of a worker, as far as an element may reach them; implemented by the runtime.
/// `me` is the element that asks.
pub trait Peers {
    /// Pulls up to `n` packets from input `input` into `into`.
    fn pull(&mut self, exec: &mut ExecState, me: usize, input: usize, n: usize, into: &mut Batch);
    /// Lends the element to which this source may hand packets that have no descriptors; `lend` says whether this takes any.
    /// `false` where it does not, the graph does not allow it, or an element between the two needs descriptors `now`.
    fn bypass(&mut self, me: usize, now: Time, lend: &mut dyn FnMut(BypassTarget) -> bool) -> bool;
    /// Has the elements past which packets of this source have gone count them.
    fn count_past(&mut self, exec: &mut ExecState, me: usize, totals: PacketTotals);
    /// Room in the stores below: as many packets as the emptiest takes; `usize::MAX` if a path leads elsewhere.
    fn room_below(&self, me: usize) -> usize;
    /// Packets in the emptiest of the stores below; `None` if a path leads elsewhere.
    fn least_held_below(&self, me: usize) -> Option<usize>;
    /// Room in the fullest of the stores that the element watches.
    fn watched_room(&self, me: usize) -> usize;
    /// Packets in all stores that the element watches.
    fn watched_held(&self, me: usize) -> usize;
    /// Connected inputs.
    fn inputs(&self, me: usize) -> usize;
}

/// The context of one call to an element.
pub struct Cx<'a> {
    /// State of the worker that runs the element.
    pub exec: &'a mut ExecState,
    /// Index of the element.
    pub me: usize,
    /// The other elements of this worker, for those that pull.
    pub peers: Option<&'a mut dyn Peers>,
}

impl Exits for Cx<'_> {
    type Destination = Destination;

    #[inline]
    fn batches_for(
        &mut self,
        fates: &[u8],
        places: &mut [usize],
    ) -> Option<&mut [(Destination, Batch)]> {
        if fates.iter().any(|&fate| self.exec.is_drop(fate)) {
            return None;
        }
        for (place, &fate) in places.iter_mut().zip(fates) {
            *place = self.exec.outputs.place_or_emit(fate);
        }
        Some(self.exec.outputs.as_mut_slice())
    }

    /// The batch for an output; counts a drop for a reason to drop.
    #[inline(always)]
    fn batch_for(&mut self, fate: u8) -> Option<&mut Batch> {
        if self.exec.is_drop(fate) {
            self.exec.count_drops(self.me, fate, 1);
            return None;
        }
        Some(self.exec.outputs.find_or_emit(fate))
    }

    #[inline(always)]
    fn drop_one(&mut self, fate: u8, packet: &Packet) {
        self.exec.keep_example(self.me, fate, packet);
    }
}

impl Cx<'_> {
    /// The time, read once per burst.
    #[inline]
    pub fn now(&self) -> Time {
        self.exec.now
    }

    /// Packets that a source produces at once by default.
    pub fn burst(&self) -> usize {
        self.exec.burst
    }

    /// As [`ExecState::long_burst`].
    pub fn long_burst(&self, n: usize) -> usize {
        self.exec.long_burst(n)
    }

    /// Emits a packet to an output, or drops and counts it.
    #[inline]
    pub fn emit(&mut self, fate: impl Fate, packet: Packet) {
        self.emit_index(fate.index(), packet);
    }

    /// Emits a whole batch to an output, or drops and counts it.
    #[inline]
    pub fn emit_batch(&mut self, fate: impl Fate, batch: Batch) {
        self.emit_batch_index(fate.index(), batch);
    }

    #[inline]
    /// Emits a packet by the index of its fate.
    pub fn emit_index(&mut self, index: u8, packet: Packet) {
        if self.exec.is_drop(index) {
            return self.exec.drop_packets(self.me, index, slice::from_ref(&packet));
        }
        self.exec.outputs.find_or_emit(index).push(packet);
    }

    #[inline]
    /// Emits a batch by the index of its fate.
    pub fn emit_batch_index(&mut self, index: u8, batch: Batch) {
        if self.exec.is_drop(index) {
            return self.drop_batch(index, batch);
        }
        self.exec.outputs.emit_or_join(index, batch);
    }

    /// Drops a batch and counts it.
    #[inline(never)]
    fn drop_batch(&mut self, index: u8, batch: Batch) {
        self.exec.drop_packets(self.me, index, batch.as_slice());
    }

    /// Sends each packet where its fate's index says; the first output keeps
    /// the array. Changes fates as [`Cx::divide`] does.
    pub fn route(&mut self, mut batch: Batch, fates: &mut [u8]) {
        let keep = self.divide(&mut batch, fates);
        if !batch.is_empty() {
            self.emit_batch_index(keep, batch);
        }
    }

    /// Emits all packets but those for the first output that any of them is
    /// for; which that is. Outputs that lead to the same input become one in `fates`.
    pub fn divide(&mut self, batch: &mut Batch, fates: &mut [u8]) -> u8 {
        let ways = &mut fates[..batch.len()];
        if let Some(Some(groups)) = self.exec.output_groups.get(self.me) {
            groups.apply(ways);
        }
        let keep = ways.iter().copied().find(|&f| !self.exec.is_drop(f)).unwrap_or(0);
        batch.divide(ways, keep, self);
        keep
    }

    /// Ends packets that arrived where they were going: sent, written, used.
    pub fn consume(&mut self, batch: Batch) {
        self.exec.counters[self.me].consumed += batch.len() as u64;
    }

    /// Counts `n` packets that the element has taken apart itself.
    pub fn count_consumed(&mut self, n: usize) {
        self.exec.counters[self.me].consumed += n as u64;
    }

    /// Counts `n` drops whose packets the element has already let go. An element that still has them
    /// emits them with the fate instead, so that one of them becomes the example.
    pub fn count_dropped(&mut self, fate: impl Fate, n: usize) {
        let index = fate.index();
        debug_assert!(self.exec.is_drop(index), "an output is not a reason to drop");
        self.exec.count_drops(self.me, index, n as u64);
    }

    /// Keeps a packet that the element drops, and counts with [`Cx::count_dropped`], as the example of
    /// that reason if one is wanted.
    pub fn keep_example(&mut self, fate: impl Fate, packet: &Packet) {
        self.exec.keep_example(self.me, fate.index(), packet);
    }

    /// A second packet with the same bytes; they are copied when written.
    pub fn share(&mut self, packet: &mut Packet) -> Packet {
        self.exec.counters[self.me].made += 1;
        packet.share()
    }

    /// Passes `n` batches with a second packet of each of these, and their numbers, to `give`: copies
    /// if all packets are short, because that costs no more than to count owners, and the device pool is
    /// ample; else packets that share the bytes until one of them is written.
    pub fn duplicate(
        &mut self,
        batch: &mut Batch,
        n: u8,
        mut give: impl FnMut(&mut Self, u8, Batch),
    ) {
        self.exec.counters[self.me].made += batch.len() as u64 * u64::from(n);
        if self.has_frames_for_copies() && batch.iter().all(|packet| packet.len() <= SHORT) {
            (0..n).for_each(|number| give(self, number, batch.copies()));
        } else {
            let clones = batch.clones(n.into());
            (0..n).zip(clones).for_each(|(number, clones)| give(self, number, clones));
        }
    }

    /// A second packet with the same bytes and annotations: a copy, or one that shares the bytes, as
    /// with [`Cx::duplicate`].
    #[inline]
    pub fn copy_or_share(&mut self, packet: &mut Packet) -> Packet {
        if packet.len() > SHORT || !self.has_frames_for_copies() {
            return self.share(packet);
        }
        self.exec.counters[self.me].made += 1;
        packet.copy()
    }

    /// Whether packets may be copied that could be shared.
    #[inline]
    fn has_frames_for_copies(&self) -> bool {
        self.exec.frames.is_ample()
    }

    /// An empty packet from the worker's pool; counted under `no_frame`, and reported once, when
    /// there is no frame left.
    pub fn alloc(&mut self) -> Option<Packet> {
        self.exec.counters[self.me].made += 1;
        match self.exec.new_packets().alloc() {
            None => self.make_in_storage(Pool::alloc),
            packet => packet,
        }
    }

    /// A packet with a copy of these bytes after at least `headroom` bytes.
    pub fn copy_in_after(&mut self, headroom: usize, bytes: &[u8]) -> Option<Packet> {
        let short = headroom.saturating_sub(self.exec.frames.pool.headroom());
        if short == 0 {
            return self.copy_in(bytes);
        }
        let mut packet = self.alloc()?;
        packet.put_back(short + bytes.len())[short..].copy_from_slice(bytes);
        packet.pull_front(short);
        Some(packet)
    }

    /// A packet with a copy of these bytes.
    pub fn copy_in(&mut self, bytes: &[u8]) -> Option<Packet> {
        self.exec.counters[self.me].made += 1;
        match self.exec.new_packets().copy_in(bytes) {
            None => self.make_in_storage(|storage| storage.copy_in(bytes)),
            packet => packet,
        }
    }

    /// Adds `n` packets with a copy of these bytes after at least `headroom` bytes to `batch`: fewer
    /// if frames run out, as with [`Cx::copy_in`].
    pub fn copy_in_batch(&mut self, n: usize, headroom: usize, bytes: &[u8], batch: &mut Batch) {
        let mut made = 0;
        if headroom <= self.exec.frames.pool.headroom() {
            made = self.exec.new_packets().copy_in_batch(bytes, n, batch);
            self.exec.counters[self.me].made += made as u64;
        }
        // One by one where frames have to be found elsewhere.
        batch.extend((made..n).map_while(|_| self.copy_in_after(headroom, bytes)));
    }

    /// Makes a packet, counted already, in the storage pool.
    #[cold]
    fn make_in_storage(&mut self, make: impl FnOnce(&Pool) -> Option<Packet>) -> Option<Packet> {
        let packet = make(&self.exec.frames.storage);
        if packet.is_none() {
            self.exec.count_shortage(self.me, Shortage::Frames, 1);
        }
        packet
    }

    /// Makes packets ready to be kept beyond this burst, by an element that keeps `held` already:
    /// while free frames are fewer than devices need, their bytes move to the storage pool. Packets that
    /// find no room there are dropped, counted under `no_frame` and reported once. An element may keep
    /// as many packets there as are still free, so that one that keeps as many as it can leaves room for
    /// others. Packets that are longer than frames stay on the heap, and take of the same memory: all of
    /// them together may take half.
    ///
    /// Packets beyond the limits of the element's account are dropped, counted under `no_memory`.
    ///
    /// While frames are ample, no more than a mebibyte is on the heap, and no account has limits, this
    /// reads two cache lines.
    #[inline]
    pub fn keep(&mut self, batch: &mut Batch, held: impl FnOnce() -> usize) {
        if Pool::any_low() || !self.exec.kept.is_empty() {
            self.admit(batch, held());
        }
    }

    /// As [`Cx::keep`] for one packet; `None` if it was dropped.
    #[inline]
    pub fn keep_one(&mut self, packet: Packet, held: impl FnOnce() -> usize) -> Option<Packet> {
        if !Pool::any_low() && self.exec.kept.is_empty() {
            return Some(packet);
        }
        let mut batch = Batch::from(packet);
        self.admit(&mut batch, held());
        batch.pop()
    }

    /// Keeps what the pools and the account have room for.
    #[inline(never)]
    fn admit(&mut self, batch: &mut Batch, held: usize) {
        if Pool::any_low() {
            self.store(batch, held);
        }
        let Some(Some(kept)) = self.exec.kept.get(self.me) else { return };
        let stay = kept.admit(held, batch.len());
        if stay < batch.len() {
            let excess = batch.split_off(stay);
            self.drop_unaffordable(excess);
        }
    }

    /// Drops packets for which the account of the element has no memory.
    #[cold]
    fn drop_unaffordable(&mut self, packets: Batch) {
        self.exec.drop_packets(self.me, NO_MEMORY, packets.as_slice());
        self.exec.report_no_memory(self.me);
    }

    #[cold]
    fn store(&mut self, batch: &mut Batch, held: usize) {
        let ExecState { frames, observers, now, .. } = &mut *self.exec;
        let (storage, before) = (&frames.storage, batch.len());
        let few = frames.pool.reserve() / MOMENTARY;
        let is_few = held + before <= few;
        let stays = match is_few {
            true => !batch.iter().any(Packet::is_on_heap),
            false => !batch.iter().any(Packet::pool_is_low),
        };
        if stays {
            return;
        }
        let mut room = frames.room().saturating_sub(held);
        // Sources that count their packets in (`grant`) are never beyond this.
        let is_greedy = held > 2 * storage.spare();
        let mut stays =
            |packet: &mut Packet| match (packet.pool_is_low(), packet.heap_bytes_in(storage)) {
                (false, _) => true,
                (true, bytes) if bytes > 0 => {
                    // As many as the frames that it would take.
                    let frame_count = bytes.div_ceil(storage.stride());
                    let more = if packet.is_on_heap() { 0 } else { bytes };
                    let stays = (held + 1) * frame_count <= few || frames.has_room_on_heap(more);
                    stays && packet.move_to(storage)
                }
                (true, _) if is_few => true,
                // Another owner, such as a trace, has the bytes there anyhow: a copy would be more memory.
                (true, _)
                    if packet.is_on_heap() && packet.is_shared() && frames.has_room_on_heap(0) =>
                {
                    true
                }
                (true, _) if packet.pool_id() == storage.id() => !is_greedy,
                (true, _) => {
                    let moves = room > 0 && packet.move_to(storage);
                    room -= usize::from(moves);
                    moves
                }
            };
        batch.retain(|packet| {
            let stays = stays(packet);
            if !stays && observers.examples.wants(self.me, NO_FRAME) {
                observers.show_drops(self.me, NO_FRAME, slice::from_ref(packet), *now);
            }
            stays
        });
        let lost = (before - batch.len()) as u64;
        if lost > 0 {
            self.exec.count_shortage(self.me, Shortage::Storage, lost);
        }
    }

    /// How many of `n` packets a source can make in this call so that none is lost for want of a frame. If
    /// none, the source returns `NextRun::Empty`; it runs again when a store that it pushes into was
    /// emptied, and in a millisecond.
    ///
    /// It makes none while its account has no memory, and looks again in a millisecond.
    ///
    /// A source all of whose packets are kept takes frames of the storage pool once those of devices are
    /// no longer ample, and no more than fit in the stores' shares.
    pub fn grant(&mut self, n: usize) -> usize {
        if let Some(Some(kept)) = self.exec.kept.get(self.me)
            && kept.memory().room() == 0
        {
            self.retry_at(self.now() + AFTER_FAMINE);
            return 0;
        }
        let frames = &self.exec.frames;
        let mut share = usize::MAX;
        self.exec.from_storage = false;
        if !frames.is_ample()
            && let Some(peers) = self.peers.as_deref()
            && let Some(held) = peers.least_held_below(self.me)
        {
            self.exec.from_storage = true;
            share = self.exec.frames.room().saturating_sub(held);
        }
        let got = self.exec.new_packets().fill_cache(n.min(share));
        if got == 0 && n > 0 {
            self.retry_at(self.now() + AFTER_FAMINE);
        }
        got
    }

    /// Reports, once, that a device lost packets for want of frames: `now` in all, of which `seen` were
    /// known.
    #[inline]
    pub fn report_missed(&mut self, seen: &mut u64, now: u64) {
        if now > *seen {
            *seen = now;
            self.report_starved();
        }
    }

    /// Reports, once, that a device has no frame to receive anything.
    #[cold]
    pub fn report_starved(&mut self) {
        self.exec.report_shortage(self.me, Shortage::Frames);
    }

    /// Counts `n` packets that came in from outside (a device, a file).
    pub fn count_received(&mut self, n: usize) {
        self.exec.counters[self.me].made += n as u64;
    }

    /// The device pool, for devices that fill frames in place and count the packets with
    /// [`Cx::count_received`].
    pub fn pool(&self) -> &Pool {
        &self.exec.frames.pool
    }

    /// Has `run_timer` called at `time`, in place of an earlier time of the same element.
    pub fn set_timer(&mut self, time: Time) {
        self.exec.timers.set(self.me, time);
    }

    /// Cancels the timer.
    pub fn cancel_timer(&mut self) {
        self.exec.timers.cancel(self.me);
    }

    /// Has a puller that finds nothing try again at `time`.
    pub fn retry_at(&mut self, time: Time) {
        self.exec.retry = Some(self.exec.retry.map_or(time, |t| t.min(time)));
    }

    /// Pulls up to `n` packets from input `input`.
    pub fn pull(&mut self, input: usize, n: usize) -> Batch {
        let mut into = Batch::new();
        if let Some(peers) = self.peers.as_deref_mut() {
            peers.pull(self.exec, self.me, input, n, &mut into);
        }
        into
    }

    /// The output for which a source produces; 0 when its task runs.
    pub fn requested_output(&self) -> usize {
        self.exec.requested_output
    }

    /// The output through which the element is pulled; `None` if packets are pushed.
    pub fn pulling_output(&self) -> Option<usize> {
        self.is_pulled().then_some(self.exec.requested_output)
    }

    /// Whether a source produces because it is pulled, rather than as a task.
    pub fn is_pulled(&self) -> bool {
        self.exec.pulls > 0
    }

    /// Room in the stores that this source pushes into; `usize::MAX` if its packets also go elsewhere. A
    /// source that finds none returns `NextRun::Empty` and runs again once there is room.
    pub fn room(&self) -> usize {
        self.peers.as_deref().map_or(usize::MAX, |peers| peers.room_below(self.me))
    }

    /// Packets in the stores that the element watches ([`crate::class::Class::with_watch`]), at the
    /// beginning of this burst.
    pub fn watched(&self) -> usize {
        self.exec.watched
    }

    /// For a source: room in the fullest of the stores that it watches.
    pub fn watched_room(&self) -> usize {
        self.peers.as_deref().map_or(usize::MAX, |peers| peers.watched_room(self.me))
    }

    /// For a source: packets in all stores that it watches, at present.
    pub fn watched_held(&self) -> usize {
        self.peers.as_deref().map_or(0, |peers| peers.watched_held(self.me))
    }

    /// Whether a pulled element has said when to try again ([`Cx::retry_at`]).
    pub fn has_retry(&self) -> bool {
        self.exec.retry.is_some()
    }

    /// Connected inputs.
    pub fn inputs(&self) -> usize {
        self.peers.as_deref().map_or(0, |peers| peers.inputs(self.me))
    }

    /// Asks the whole router to stop, as Click's sources do with `STOP true`.
    pub fn stop(&mut self) {
        self.exec.stops += 1;
    }

    /// Writes `value` to a handler, the router's own or `element.handler`, when all that the element has
    /// emitted has come to its end, and before anything that it emits from now on goes on; where the element
    /// is pulled, before anything that is pulled goes on. Errors of the handler are not reported.
    pub fn call(&mut self, handler: &str, value: &str) {
        self.emit_call(HandlerCall::new(handler, value, AfterCall::Nothing), Batch::new());
    }

    /// Has the element's own program decide by which output a packet leaves; without an output the packet
    /// is dropped under the element's first reason. A packet for an output that is pulled comes back to the
    /// element, to the input behind its last one, and leaves by
    /// [`emit_decided`](crate::element::PerBatch::emit_decided) when that output is pulled again.
    pub fn call_for_output(&mut self, handler: &str, value: &str, packet: Packet) {
        self.emit_call(HandlerCall::new(handler, value, AfterCall::Leave), Batch::from(packet));
    }

    /// As [`Cx::call`]; then the packet comes to input `port` again. For packets that were pushed.
    pub fn call_and_return(&mut self, handler: &str, value: &str, port: usize, packet: Packet) {
        self.emit_call(
            HandlerCall::new(handler, value, AfterCall::Return(port)),
            Batch::from(packet),
        );
    }

    fn emit_call(&mut self, call: Box<HandlerCall>, batch: Batch) {
        self.exec.outputs.emit_call(call, batch);
    }

    /// Index of the worker.
    pub fn worker(&self) -> usize {
        self.exec.worker
    }

    /// Whether this is the worker that runs the element's task and timers.
    pub fn is_home(&self) -> bool {
        self.exec.at_home[self.me]
    }

    /// Writes a line about the element: `NAME :: CLASS: ` and the message.
    #[cold]
    pub fn report(&mut self, message: &str) {
        let line = format!("{}: {message}", self.exec.labels[self.me]);
        self.chatter(&line);
    }

    /// Writes a line to standard error, as Click's elements do.
    pub fn chatter(&mut self, line: &str) {
        self.exec.chatter.push_str(line);
        self.exec.chatter.push('\n');
    }

    /// Writes a line to a channel, the default one if it has no name.
    #[cold]
    pub fn chatter_on(&mut self, channel: &str, line: &str) {
        match is_default_channel(channel) {
            true => self.chatter(line),
            false => self.exec.channel_lines.push(ChannelLine {
                channel: channel.to_owned(),
                line: format!("{line}\n"),
                after: self.exec.chatter.len(),
            }),
        }
    }

    /// Sixty-four random bits; the same sequence every time under simulated
    /// time.
    pub fn random(&mut self) -> u64 {
        self.exec.random.bits()
    }

    /// The random numbers of this thread, to be drawn by Click's rules.
    pub fn random_numbers(&mut self) -> &mut RandomNumbers {
        &mut self.exec.random
    }
}
