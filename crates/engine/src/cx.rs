//! What an element can reach while it runs: time, outputs, frames, timers.

use crate::element::{DROP, Fate, PerBatch};
use crate::frames::Short;
use crate::node::{PerBatchNode, Slot};
use crate::time::Time;
use crate::worker::calls::{CALL, Call, Then};
use crate::worker::core::Core;
use crate::worker::exec;
use castanet_packet::{Batch, Packet, Pool};
use std::any::Any;
use std::time::Duration;

/// When a source that found no frame is asked again at the latest: nobody says when frames come
/// back that others have.
const AFTER_FAMINE: Duration = Duration::from_millis(1);
/// One of so many frames of the device pool's reserve may each element keep.
const MOMENTARY: usize = 64;

/// What an element can reach while it runs. It is lent for one call.
pub struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) me: usize,
    /// The other elements of this worker, for those that pull.
    pub(crate) nodes: Option<&'a mut [Slot]>,
}

impl Cx<'_> {
    /// The time, read once per burst.
    #[inline]
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The burst that sources are asked for by default.
    pub fn burst(&self) -> usize {
        self.core.burst
    }

    /// Sends `packet` where `fate` says: an output or a reason to drop.
    #[inline]
    pub fn emit(&mut self, fate: impl Fate, packet: Packet) {
        self.emit_index(fate.index(), packet);
    }

    /// Sends a whole batch where `fate` says.
    #[inline]
    pub fn emit_batch(&mut self, fate: impl Fate, batch: Batch) {
        self.emit_batch_index(fate.index(), batch);
    }

    #[inline]
    pub(crate) fn emit_index(&mut self, index: u8, packet: Packet) {
        if self.core.is_drop(index) {
            self.core.ledger[self.me].drops[usize::from(DROP - index)] += 1;
            return;
        }
        let mine = &mut self.core.emitted[self.core.mark..];
        if let Some((_, batch)) = mine.iter_mut().rev().find(|(o, _)| *o == index) {
            batch.push(packet);
        } else {
            let mut batch = Batch::new();
            batch.push(packet);
            self.core.emit(index, &mut batch);
        }
    }

    #[inline]
    pub(crate) fn emit_batch_index(&mut self, index: u8, mut batch: Batch) {
        if self.core.is_drop(index) {
            self.core.ledger[self.me].drops[usize::from(DROP - index)] += batch.len() as u64;
            return;
        }
        let mine = &mut self.core.emitted[self.core.mark..];
        match mine.iter_mut().rev().find(|(o, _)| *o == index) {
            Some((_, before)) => before.append(&mut batch),
            None => self.core.emit(index, &mut batch),
        }
    }

    /// Sends each packet where its fate's index says; the first output keeps
    /// the array.
    pub fn route(&mut self, mut batch: Batch, fates: &[u8]) {
        let keep = self.divide(&mut batch, fates);
        if !batch.is_empty() {
            self.emit_batch_index(keep, batch);
        }
    }

    /// Emits all packets but those for the first output that any of them is
    /// for; which that is.
    pub(crate) fn divide(&mut self, batch: &mut Batch, fates: &[u8]) -> u8 {
        let ways = &fates[..batch.len()];
        let keep = ways.iter().copied().find(|&f| !self.core.is_drop(f)).unwrap_or(0);
        batch.partition(ways, keep, |fate, packet| self.emit_index(fate, packet));
        keep
    }

    /// Ends packets that arrived where they were going: sent, written, used.
    pub fn consume(&mut self, batch: Batch) {
        self.core.ledger[self.me].consumed += batch.len() as u64;
    }

    /// Counts `n` packets that the element has taken apart itself.
    pub fn consumed(&mut self, n: usize) {
        self.core.ledger[self.me].consumed += n as u64;
    }

    /// Counts `n` drops whose packets the element has already let go.
    pub fn dropped(&mut self, fate: impl Fate, n: usize) {
        let index = fate.index();
        debug_assert!(self.core.is_drop(index), "an output is not a reason to drop");
        self.core.ledger[self.me].drops[usize::from(DROP - index)] += n as u64;
    }

    /// A second packet with the same bytes; they are copied when written.
    pub fn share(&mut self, packet: &mut Packet) -> Packet {
        self.core.ledger[self.me].made += 1;
        packet.share()
    }

    /// An empty packet from the worker's pool; counted under `no_frame`, and reported once, when
    /// there is no frame left.
    pub fn alloc(&mut self) -> Option<Packet> {
        self.core.ledger[self.me].made += 1;
        match self.core.new_packets().alloc() {
            None => self.make_in_storage(Pool::alloc),
            packet => packet,
        }
    }

    /// A packet with a copy of these bytes after at least `headroom` bytes.
    pub fn copy_in_after(&mut self, headroom: usize, bytes: &[u8]) -> Option<Packet> {
        let short = headroom.saturating_sub(self.core.frames.pool.headroom());
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
        self.core.ledger[self.me].made += 1;
        match self.core.new_packets().copy_in(bytes) {
            None => self.make_in_storage(|storage| storage.copy_in(bytes)),
            packet => packet,
        }
    }

    /// Makes a packet, counted already, in the storage pool.
    #[cold]
    fn make_in_storage(&mut self, make: impl FnOnce(&Pool) -> Option<Packet>) -> Option<Packet> {
        let packet = make(&self.core.frames.storage);
        if packet.is_none() {
            self.core.count_short(self.me, Short::Frames, 1);
        }
        packet
    }

    /// Makes packets ready to be kept beyond this burst, by an element that keeps `held` already:
    /// while free frames are fewer than devices need, their bytes move to memory of their own. What
    /// finds no room there is dropped, counted under `no_frame` and reported once. An element may
    /// keep as many packets there as are still free, so that one that keeps as many as it can
    /// leaves room for others. Packets that are longer than frames stay on the heap, and take of
    /// the same memory: all of them together may take half.
    ///
    /// While frames are ample, and no more than a mebibyte is on the heap, this is a look at one
    /// cache line.
    #[inline]
    pub fn keep(&mut self, batch: &mut Batch, held: impl FnOnce() -> usize) {
        if Pool::any_low() {
            self.store(batch, held());
        }
    }

    /// As [`Cx::keep`] for one packet; `None` if it was dropped.
    #[inline]
    pub fn keep_one(&mut self, packet: Packet, held: impl FnOnce() -> usize) -> Option<Packet> {
        if !Pool::any_low() {
            return Some(packet);
        }
        let mut batch = Batch::from(packet);
        self.store(&mut batch, held());
        batch.pop()
    }

    #[cold]
    fn store(&mut self, batch: &mut Batch, held: usize) {
        let frames = &self.core.frames;
        let (storage, before) = (&frames.storage, batch.len());
        let few = frames.pool.reserve() / MOMENTARY;
        let is_few = held + before <= few;
        if is_few && !batch.iter().any(Packet::is_on_heap) {
            return;
        }
        let mut room = frames.room().saturating_sub(held);
        // Sources that count their packets in (`grant`) are never beyond this.
        let is_greedy = held > 2 * storage.spare();
        batch.retain(|packet| match (packet.pool_is_low(), packet.heap_bytes_in(storage)) {
            (false, _) => true,
            (true, bytes) if bytes > 0 => {
                // As many as the frames that it would take.
                let frame_count = bytes.div_ceil(storage.stride());
                let more = if packet.is_on_heap() { 0 } else { bytes };
                let stays = (held + 1) * frame_count <= few || frames.has_room_on_heap(more);
                stays && packet.move_to(storage)
            }
            (true, _) if is_few => true,
            (true, _) if packet.pool_id() == storage.id() => !is_greedy,
            (true, _) => {
                let moves = room > 0 && packet.move_to(storage);
                room -= usize::from(moves);
                moves
            }
        });
        let lost = (before - batch.len()) as u64;
        if lost > 0 {
            self.core.count_short(self.me, Short::Storage, lost);
        }
    }

    /// How many of `n` packets a source can make now so that none is lost for want of a frame, as
    /// long as it makes them in this call. If none, it answers `Asked::Empty`, and is asked again
    /// when a store that it pushes into was emptied, and in a millisecond.
    ///
    /// A source all of whose packets are kept takes frames of the memory for kept packets once
    /// those of devices are no longer ample, and no more than fit in the stores' shares.
    pub fn grant(&mut self, n: usize) -> usize {
        let frames = &self.core.frames;
        let mut share = usize::MAX;
        self.core.from_storage = false;
        if !frames.is_ample()
            && let Some(nodes) = self.nodes.as_deref()
            && let Some(held) = exec::least_held_below(nodes, self.me)
        {
            self.core.from_storage = true;
            share = self.core.frames.room().saturating_sub(held);
        }
        let got = self.core.new_packets().fill_cache(n.min(share));
        if got == 0 && n > 0 {
            self.retry_at(self.now() + AFTER_FAMINE);
        }
        got
    }

    /// Reports, once, that a device lost packets for want of frames: `now` in all, where `seen` were
    /// known.
    #[inline]
    pub fn missed(&mut self, seen: &mut u64, now: u64) {
        if now > *seen {
            *seen = now;
            self.starved();
        }
    }

    /// Reports, once, that a device has no frame to receive anything.
    #[cold]
    pub fn starved(&mut self) {
        self.core.say_short(self.me, Short::Frames);
    }

    /// Counts `n` packets that came in from outside (a device, a file).
    pub fn received(&mut self, n: usize) {
        self.core.ledger[self.me].made += n as u64;
    }

    /// The worker's pool, for devices that fill frames in place; what they
    /// make is counted with [`Cx::received`].
    pub fn pool(&self) -> &Pool {
        &self.core.frames.pool
    }

    /// Asks for a call of `wake` at `time`; an earlier wish of the same
    /// element is replaced.
    pub fn wake_at(&mut self, time: Time) {
        self.core.timers.set(self.me, time);
    }

    /// Takes back a wish of `wake_at`.
    pub fn cancel_wake(&mut self) {
        self.core.timers.cancel(self.me);
    }

    /// Tells whoever pulls and finds nothing when to try again.
    pub fn retry_at(&mut self, time: Time) {
        self.core.retry = Some(self.core.retry.map_or(time, |t| t.min(time)));
    }

    /// Pulls up to `n` packets from input `input`.
    pub fn pull(&mut self, input: usize, n: usize) -> Batch {
        let mut into = Batch::new();
        if let Some(nodes) = self.nodes.as_deref_mut() {
            let pull = match self.core.visits {
                None => exec::pull_input::<false>,
                Some(_) => exec::pull_input::<true>,
            };
            pull(nodes, self.core, self.me, input, n, &mut into);
        }
        into
    }

    /// Lends a source the element to which its packets go next, so that it can hand over what
    /// nobody has to look at; `pass` says how many packets went from one to the other, and has
    /// the `Cx` of the one that takes them. Nothing, unless the graph was found to allow it
    /// ([`Class::with_straight`](crate::class::Class::with_straight)), or if somebody wants to
    /// know what each element costs.
    pub fn straight<E: PerBatch>(
        &mut self,
        pass: impl FnOnce(&E, &mut E::Local, &mut Cx) -> usize,
    ) -> Option<usize> {
        let nodes = self.nodes.as_deref_mut()?;
        let to = nodes[self.me].straight.filter(|_| self.core.visits.is_none())?;
        let node: &mut dyn Any = nodes[to].node.as_deref_mut()?;
        let node = node.downcast_mut::<PerBatchNode<E>>()?;
        let count = node.lend(|config, local| {
            pass(config, local, &mut Cx { core: self.core, me: to, nodes: None })
        });
        self.core.ledger[self.me].made += count as u64;
        self.core.ledger[self.me].output += count as u64;
        self.core.ledger[to].input += count as u64;
        Some(count)
    }

    /// The output that a source is asked for; 0 when it is asked as a task.
    pub fn asked(&self) -> usize {
        self.core.asked
    }

    /// The output through which somebody pulls; `None` if packets are pushed.
    pub fn pulled(&self) -> Option<usize> {
        self.is_pulled().then_some(self.core.asked)
    }

    /// Whether a source is asked because somebody pulls, rather than as a task.
    pub fn is_pulled(&self) -> bool {
        self.core.pulls > 0
    }

    /// How many packets the stores that this source pushes into have room
    /// for; no limit if its packets also go elsewhere. A source that finds
    /// none answers `Asked::Empty` and is asked again once there is room.
    pub fn room(&self) -> usize {
        let nodes = self.nodes.as_deref();
        nodes.map_or(usize::MAX, |nodes| exec::room_below(nodes, self.me))
    }

    /// How many packets the stores keep that the element watches
    /// ([`crate::class::Class::with_watch`]), as of the beginning of this burst.
    pub fn watched(&self) -> usize {
        self.core.watched
    }

    /// For a source: how many packets the fullest of the stores that it watches
    /// has room for.
    pub fn watched_room(&self) -> usize {
        let nodes = self.nodes.as_deref();
        nodes.map_or(usize::MAX, |nodes| exec::watched_room(nodes, self.me))
    }

    /// Whether whoever was pulled said when to try again ([`Cx::retry_at`]).
    pub fn is_later(&self) -> bool {
        self.core.retry.is_some()
    }

    /// How many inputs are connected.
    pub fn inputs(&self) -> usize {
        self.nodes.as_deref().map_or(0, |nodes| nodes[self.me].upstream.len())
    }

    /// Asks the whole router to stop, as Click's sources do with `STOP true`.
    pub fn stop(&mut self) {
        self.core.stops += 1;
    }

    /// Writes `value` to a handler, the router's own or `element.handler`: when everything that
    /// the element has emitted has come to its end, and before anything that it emits from now
    /// on goes on. Where the element is pulled: before anything that is pulled goes on. Nobody
    /// hears what the handler says.
    pub fn call(&mut self, handler: &str, value: &str) {
        self.emit_call(Call::new(handler, value, Then::Nothing), Batch::new());
    }

    /// Asks the element's own program by which output a packet is to leave; by none is a drop,
    /// under the element's first reason. For elements whose outputs push.
    pub fn decide(&mut self, handler: &str, value: &str, packet: Packet) {
        self.emit_call(Call::new(handler, value, Then::Leave), Batch::from(packet));
    }

    /// As [`Cx::call`]; then the packet comes to input `port` again. For packets that were pushed.
    pub fn call_and_return(&mut self, handler: &str, value: &str, port: usize, packet: Packet) {
        self.emit_call(Call::new(handler, value, Then::Return(port)), Batch::from(packet));
    }

    fn emit_call(&mut self, call: Box<Call>, batch: Batch) {
        self.core.calls.push_back(call);
        self.core.emitted.push((CALL, batch));
        // What is emitted next joins nothing that was emitted before.
        self.core.mark = self.core.emitted.len();
    }

    /// Which worker this is.
    pub fn worker(&self) -> usize {
        self.core.worker
    }

    /// Whether this is the worker that runs the element's task and timers.
    pub fn at_home(&self) -> bool {
        self.core.at_home[self.me]
    }

    /// Writes a line about the element: `NAME :: CLASS: ` and this.
    #[cold]
    pub fn report(&mut self, what: &str) {
        let line = format!("{}: {what}", self.core.labels[self.me]);
        self.chatter(&line);
    }

    /// Writes a line where Click writes what elements say: standard error.
    pub fn chatter(&mut self, line: &str) {
        self.core.chatter.push_str(line);
        self.core.chatter.push('\n');
    }

    /// Sixty-four random bits; the same sequence every time under simulated
    /// time.
    pub fn random(&mut self) -> u64 {
        self.core.random()
    }
}
