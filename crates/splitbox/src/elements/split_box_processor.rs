//! `SplitBoxProcessor`: computes shares of a function that it cannot read.

use super::datagram_packet::{HEADER, clear_headers, sealed};
use super::exit::ProcessorExit as Exit;
use super::party_args::PartyArgs;
use crate::bits::Bits;
use crate::counter::LaneCounter;
use crate::datagram::{DatagramInfo, DatagramKind, Link, LinkKey};
use crate::epoch::EpochRows;
use crate::epochs::{MAX_EPOCHS, ProcessorEpoch, ProcessorEpochs};
use crate::party::{BlindedHeader, Processor};
use crate::party_file;
use crate::replay::{Freshness, ReplayWindow};
use crate::setup::ProcessorParty;
use crate::share::ActionShare;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::sync::Arc;

/// Computes shares of a network function for packets that it cannot read.
///
/// The element is a cloud middlebox B(j) of SplitBox (SUPERFLUIDITY I5.1, section 3). Its input takes
/// datagrams of the entry, with blinded header strings, and of the client, with the rows of epochs. Its
/// output gives datagrams for the client, with shares of results: payloads for UDP, whose paint
/// annotation is the number of the lane.
///
/// The element learns the projections of the policies and which packets match, and neither matches,
/// actions nor packets; `castanet splitbox inspect` tells what that comes to. The example has all
/// parties in one graph:
///
/// ```click
/// a :: SplitBoxEntry(entry.splitbox, KEY_FILE key);
/// b1 :: SplitBoxProcessor(processor-1.splitbox, KEY_FILE key);
/// b2 :: SplitBoxProcessor(processor-2.splitbox, KEY_FILE key);
/// c :: SplitBoxClient(client.splitbox, KEY_FILE key);
/// in -> a -> c -> out;  a[1] -> b1 -> c[1] -> [1]a;  a[2] -> b2 -> c;  c[2] -> b1;  c[3] -> b2;
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = a.drops.no_epoch 1
/// + 1s
/// = b1.epochs epoch 1000000000000 complete\nepoch 1000000000010 complete
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// ```
#[derive(Clone, Element)]
#[element(room = "splitbox", args = SplitBoxProcessorArgs, alias = "Processor", methods)]
#[element(ports = "1/1", processing = "h/h", flow = "x/x")]
pub struct SplitBoxProcessor {
    party: Arc<ProcessorParty>,
    epochs: RwShared<ProcessorEpochs>,
    /// The session of the reports to the client, and the number of the next one.
    session: Shared<(u64, u64)>,
    each_match: bool,
}

#[derive(Args)]
pub struct SplitBoxProcessorArgs {
    #[arg(flatten)]
    party: PartyArgs,
    /// Megabytes that the rows of epochs may take.
    #[arg(keyword, default = 4096)]
    memory: u64,
    /// Whether to hash once for each match that is tried, as the paper has it, and not once for each
    /// projection; results are the same.
    #[arg(keyword, default = false)]
    each_match: bool,
}

/// Time between reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time between reports while rows are missing.
const SHORT_REPORT_INTERVAL: Duration = Duration::from_millis(10);

/// The files that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &SplitBoxProcessorArgs| it.party.resources())
}

impl Build for SplitBoxProcessor {
    type Args = SplitBoxProcessorArgs;

    fn build(args: SplitBoxProcessorArgs, _: &Setup) -> Result<Self, ArgError> {
        let unlock = args.party.unlock()?;
        let party = party_file::load_processor(args.party.path(), &unlock, None);
        let party = party.map_err(|error| ArgError::new(error.to_string()))?;
        let bytes = EpochRows::memory_bytes(&party.function, party.info.options.blinds);
        let (needed, limit) = (bytes.saturating_mul(MAX_EPOCHS as u64), args.memory << 20);
        if needed > limit {
            let megabytes = needed.div_ceil(1 << 20);
            let message =
                format!("the rows of {MAX_EPOCHS} epochs take {megabytes} MB, more than MEMORY");
            return Err(ArgError::new(message).help("fewer blinds or fewer matches take less"));
        }
        let (epochs, session) = (RwShared::default(), Shared::default());
        let each_match = args.each_match;
        Ok(SplitBoxProcessor { party: party.into(), epochs, session, each_match })
    }
}

/// The work of one worker.
#[derive(Default, Local)]
pub struct SplitBoxProcessorState {
    /// By epoch: the tree with rows and scratch buffers.
    processors: Vec<(u64, Processor)>,
    /// Datagrams that have not been opened, and what their headers say.
    datagrams: Batch,
    infos: Vec<DatagramInfo>,
    headers: Vec<BlindedHeader>,
    shares: Vec<ActionShare>,
    packets: Batch,
    rows: Batch,
}

#[handlers]
impl SplitBoxProcessor {
    /// The epochs, and whether their rows are complete, a line each.
    #[read]
    fn epochs(&self) -> String {
        let line = |epoch: &ProcessorEpoch| {
            let state = if epoch.rows().is_some() { "complete" } else { "incomplete" };
            format!("epoch {} {state}\n", epoch.number)
        };
        self.epochs.read(|all| all.all().iter().map(line).collect())
    }
    /// Number of the setup, the same at all parties.
    #[read]
    fn setup(&self) -> String {
        format!("{:08x}", self.party.info.id)
    }
}

impl SplitBoxProcessor {
    /// Opens the datagram of a header string in an epoch; `window` has the counters of its lane.
    fn open(
        &self,
        (epoch, window): (&ProcessorEpoch, &mut ReplayWindow),
        info: &DatagramInfo,
        packet: &mut Packet,
    ) -> Result<BlindedHeader, Exit> {
        let sequence = LaneCounter::of(info.counter).sequence;
        match window.check(sequence) {
            Freshness::New => {}
            freshness => return Err(freshness.into()),
        }
        let payload = epoch.match_key.open(info, packet.bytes_mut())?;
        let mut header = Bits::ZERO;
        match header.0.get_mut(..self.party.info.options.header_bits / 8) {
            Some(bytes) if bytes.len() == payload.len() => bytes.copy_from_slice(payload),
            _ => return Err(Exit::Malformed),
        }
        match window.accept(sequence) {
            Freshness::New => Ok(BlindedHeader { counter: info.counter, header }),
            _ => Err(Exit::Replayed),
        }
    }

    /// Opens the datagrams that wait, which are of one epoch and one lane: the lane is locked once for
    /// all of them.
    fn open_all(
        &self,
        state: &mut SplitBoxProcessorState,
        (epoch, lane): (&ProcessorEpoch, u8),
        cx: &mut Cx,
    ) {
        let SplitBoxProcessorState { infos, datagrams, headers, packets, .. } = state;
        let opened = epoch.with_lane(lane, |window| {
            for (info, mut packet) in infos.drain(..).zip(datagrams.drain()) {
                match self.open((epoch, window), &info, &mut packet) {
                    Ok(header) => {
                        headers.push(header);
                        packets.push(packet);
                    }
                    Err(exit) => cx.emit(exit, packet),
                }
            }
        });
        if opened.is_none() {
            datagrams.drain().for_each(|packet| cx.emit(Exit::Malformed, packet));
        }
        infos.clear();
    }

    /// Processes packets of one epoch, which have been opened.
    fn process(&self, state: &mut SplitBoxProcessorState, epoch: &ProcessorEpoch, cx: &mut Cx) {
        let Some(rows) = epoch.rows() else { return };
        let SplitBoxProcessorState { processors, headers, shares, packets, .. } = state;
        if !processors.iter().any(|it| it.0 == epoch.number) {
            processors.push((epoch.number, Processor::new(&self.party, rows.clone())));
        }
        let Some((_, processor)) = processors.iter_mut().find(|it| it.0 == epoch.number) else {
            return;
        };
        shares.clear();
        match self.each_match {
            true => shares.extend(headers.iter().map(|it| processor.process_each_match(it))),
            false => processor.process_burst(headers, shares),
        }
        let len = self.party.info.options.header_bits / 8;
        for ((mut packet, header), share) in packets.drain().zip(headers.iter()).zip(shares.iter())
        {
            packet.put_back(len);
            clear_headers(&mut packet);
            let payload = packet.bytes_mut().get_mut(HEADER..).unwrap_or_default();
            write_share(share, len, payload);
            // The packet has room for header and tag.
            _ = epoch.share_key.seal(header.counter, 0, packet.bytes_mut());
            packet.set_paint(LaneCounter::of(header.counter).lane);
            cx.emit(Exit::Out(0), packet);
        }
        headers.clear();
    }

    /// Takes the datagrams of header strings, epoch by epoch.
    fn push(
        &self,
        state: &mut SplitBoxProcessorState,
        batch: Batch,
        epochs: &ProcessorEpochs,
        cx: &mut Cx,
    ) {
        // Rows of epochs that the processor has no more take no memory.
        if state.processors.len() > epochs.all().len() {
            state.processors.retain(|it| epochs.find(it.0).is_some());
        }
        let own = Link { kind: DatagramKind::Match, processor: self.party.number };
        let mut current: Option<(&ProcessorEpoch, u8)> = None;
        for packet in batch {
            let info = match DatagramInfo::of(packet.bytes()) {
                Ok(info) => info,
                Err(error) => {
                    cx.emit(Exit::from(error), packet);
                    continue;
                }
            };
            if info.link.kind == DatagramKind::Rows {
                state.rows.push(packet);
                continue;
            }
            if info.setup != self.party.info.id || info.link != own {
                cx.emit(Exit::Foreign, packet);
                continue;
            }
            let lane = LaneCounter::of(info.counter).lane;
            if current.is_none_or(|it| (it.0.number, it.1) != (info.epoch, lane)) {
                current.into_iter().for_each(|it| self.open_all(state, it, cx));
                if current.is_none_or(|it| it.0.number != info.epoch) {
                    current.into_iter().for_each(|it| self.process(state, it.0, cx));
                }
                let epoch = epochs.find(info.epoch).filter(|it| it.rows().is_some());
                current = epoch.map(|it| (it, lane));
            }
            match current {
                Some(_) => {
                    state.infos.push(info);
                    state.datagrams.push(packet);
                }
                None => cx.emit(Exit::NoEpoch, packet),
            }
        }
        if let Some((epoch, lane)) = current {
            self.open_all(state, (epoch, lane), cx);
            self.process(state, epoch, cx);
        }
    }

    /// Takes chunks of rows.
    fn take_rows(&self, rows: Batch, cx: &mut Cx) {
        let mut is_report_due = false;
        for mut packet in rows {
            match self.take_chunk(packet.bytes_mut()) {
                Ok(is_complete) => {
                    is_report_due |= is_complete;
                    cx.count_consumed(1);
                }
                Err(exit) => cx.emit(exit, packet),
            }
        }
        if is_report_due {
            self.report(cx);
        }
    }

    /// Takes a chunk of rows; returns whether it makes its epoch complete. Other workers wait for
    /// authentic chunks alone.
    fn take_chunk(&self, datagram: &mut [u8]) -> Result<bool, Exit> {
        let (party, info) = (&*self.party, DatagramInfo::of(datagram)?);
        let payload = self.epochs.read(|epochs| epochs.open(party, &info, datagram))?;
        Ok(self.epochs.change(|epochs| epochs.insert(party, &info, payload))?)
    }

    /// Emits a report for the client.
    fn report(&self, cx: &mut Cx) {
        let now = cx.now().nanos();
        let (session, counter) = self.session.with(|session| {
            if session.0 == 0 {
                session.0 = now;
            }
            session.1 += 1;
            *session
        });
        let link = Link { kind: DatagramKind::Status, processor: self.party.number };
        let key = LinkKey::new(&self.party.client_secret, self.party.info.id, link, session);
        let status = self.epochs.read(ProcessorEpochs::status);
        if let Some(key) = key
            && let Some(packet) = sealed(&status.encode(), &key, (counter, 0), cx)
        {
            cx.emit(Exit::Out(0), packet);
        }
    }
}

/// Writes a share to the beginning of a payload: two strings of `len` bytes.
fn write_share(share: &ActionShare, len: usize, payload: &mut [u8]) {
    for (half, string) in payload.chunks_exact_mut(len).zip([&share.value, &share.projection]) {
        if let Some(bytes) = string.0.get(..len) {
            half.copy_from_slice(bytes);
        }
    }
}

impl PerBatch for SplitBoxProcessor {
    type On = on::Any;
    type Local = SplitBoxProcessorState;
    type Fate = Exit;

    fn init(&self, _: &mut SplitBoxProcessorState, cx: &mut Cx) -> Result<(), ArgError> {
        cx.set_timer(cx.now());
        Ok(())
    }

    fn after_take_state(&self, _: &mut SplitBoxProcessorState, cx: &mut Cx) {
        cx.set_timer(cx.now());
    }

    fn can_take_state(&self, before: &Self) -> bool {
        self.party.info == before.party.info && self.party.number == before.party.number
    }

    fn merged_config(&self, before: &Self) -> Option<Self> {
        let SplitBoxProcessor { epochs, session, .. } = before.clone();
        self.can_take_state(before).then(|| SplitBoxProcessor { epochs, session, ..self.clone() })
    }

    fn run_timer(&self, _: &mut SplitBoxProcessorState, cx: &mut Cx) {
        self.report(cx);
        let is_incomplete = self.epochs.read(ProcessorEpochs::is_incomplete);
        let next = if is_incomplete { SHORT_REPORT_INTERVAL } else { REPORT_INTERVAL };
        cx.set_timer(cx.now() + next);
    }

    fn batch(&self, state: &mut SplitBoxProcessorState, _: usize, batch: Batch, cx: &mut Cx) {
        self.epochs.read(|epochs| self.push(state, batch, epochs, cx));
        if !state.rows.is_empty() {
            self.take_rows(std::mem::take(&mut state.rows), cx);
        }
    }
}
