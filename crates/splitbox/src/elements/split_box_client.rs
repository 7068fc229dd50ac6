//! `SplitBoxClient`: puts the results of a private network function together.

use super::client_lane::{ClientLane, LaneLimits};
use super::datagram_packet::sealed;
use super::exit::ClientExit as Exit;
use super::party_args::PartyArgs;
use crate::counter::LaneCounter;
use crate::datagram::{DatagramInfo, DatagramKind, Link, LinkKey};
use crate::epochs::{ClientEpoch, ClientEpochs, Hello, Status};
use crate::party_file;
use crate::setup::ClientParty;
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::fmt::Write;
use std::sync::Arc;

/// Puts packets together whose function was computed by cloud middleboxes that cannot read it.
///
/// The element is the client C of SplitBox (SUPERFLUIDITY I5.1, section 3). Its input takes datagrams of
/// the entry and of all processors. Output 0 gives IP packets, as the function leaves them; output 1
/// datagrams for the entry, outputs 2 to t + 1 datagrams for the processors, all of them payloads for
/// UDP.
///
/// A packet whose datagrams have not all come after TIMEOUT is given up, as is one that is older than
/// another by WINDOW packets. Datagrams of a packet may come in any order, and packets leave as soon as
/// they are complete.
///
/// The client makes the rows of the next epoch ahead and sends them to the processors. It permits the
/// entry to use an epoch when all processors have its rows. The example has all parties in one graph:
///
/// ```click
/// a :: SplitBoxEntry(entry.splitbox, KEY_FILE key);
/// b1 :: SplitBoxProcessor(processor-1.splitbox, KEY_FILE key);
/// b2 :: SplitBoxProcessor(processor-2.splitbox, KEY_FILE key);
/// c :: SplitBoxClient(client.splitbox, KEY_FILE key);
/// in -> a -> c -> out;  a[1] -> b1 -> c[1] -> [1]a;  a[2] -> b2 -> c;  c[2] -> b1;  c[3] -> b2;
/// + 1s
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// > in 1.0.0.1:5 > 2.0.0.2:23 tcp syn
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = c.drops.policy 1
/// = c.packets 2 complete\n0 incomplete\n0 without entry\n0 without processor 1\n0 without processor 2
/// = c.waiting 0
/// = c.state entry heard 0.0 s ago\nprocessor 1 heard 0.0 s ago\nprocessor 2 heard 0.0 s ago\nepoch 1000000000000 in use, rows at 2 of 2 processors\nepoch 1000000000010 prepared, rows at 2 of 2 processors
/// ```
#[derive(Clone, Element)]
#[element(room = "splitbox", args = SplitBoxClientArgs, alias = "Client", methods)]
#[element(ports = "1/4-", processing = "h/h", flow = "x/x")]
pub struct SplitBoxClient {
    party: Arc<ClientParty>,
    control: Shared<Option<ClientEpochs>>,
    /// The epochs whose datagrams are accepted.
    usable: RwShared<Vec<Arc<ClientEpoch>>>,
    lanes: Vec<Shared<ClientLane>>,
    limits: LaneLimits,
    /// Nanoseconds between epochs, where blinds are used again.
    rotation: u64,
    /// Chunks of rows that are sent to each processor in a millisecond.
    rows: usize,
}

#[derive(Args)]
pub struct SplitBoxClientArgs {
    #[arg(flatten)]
    party: PartyArgs,
    /// Maximum number of packets of a lane that wait for datagrams.
    #[arg(keyword, default = 8192, range = 1..=4194304)]
    window: u32,
    /// Maximum time that a packet waits for its datagrams.
    #[arg(keyword, default = Duration::from_millis(500))]
    timeout: Duration,
    /// Time between epochs, where blinds are used again.
    #[arg(keyword, default = Duration::from_secs(60))]
    rotation: Duration,
    /// Datagrams of rows that go to each processor in a millisecond.
    #[arg(keyword, default = 32, range = 1..=4096)]
    rows: u32,
}

/// Time between two steps while rows are being sent.
const SENDING_INTERVAL: Duration = Duration::from_millis(1);
/// Time between two steps else.
const INTERVAL: Duration = Duration::from_millis(10);

/// The files that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &SplitBoxClientArgs| it.party.resources())
}

impl Build for SplitBoxClient {
    type Args = SplitBoxClientArgs;

    fn build(args: SplitBoxClientArgs, setup: &Setup) -> Result<Self, ArgError> {
        let unlock = args.party.unlock()?;
        let party = party_file::load_client(args.party.path(), &unlock);
        let party = Arc::new(party.map_err(|error| ArgError::new(error.to_string()))?);
        let options = party.info.options;
        if setup.outputs != options.processors + 2 {
            let message = format!("{} outputs are connected", setup.outputs);
            let last = options.processors + 1;
            return Err(ArgError::new(message).help(format!(
                "output 0 gives packets, output 1 goes to the entry, outputs 2 to {last} to the processors"
            )));
        }
        let nanos = |it: Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
        let (control, rotation) = (Shared::default(), nanos(args.rotation));
        let epochs = ClientEpochs::new(party.clone(), rotation);
        control.with(|it| *it = Some(epochs));
        let lane = |_| {
            let lane: Shared<ClientLane> = Shared::default();
            lane.with(|it| it.count_shares_of(options.processors));
            lane
        };
        Ok(SplitBoxClient {
            control,
            usable: RwShared::default(),
            lanes: (0..options.lanes).map(lane).collect(),
            limits: LaneLimits { window: args.window as usize, timeout: nanos(args.timeout) },
            rotation,
            rows: args.rows as usize,
            party,
        })
    }
}

/// Scratch buffers of a worker, and whether it is the one that reports for all.
#[derive(Default, Local)]
pub struct SplitBoxClientState {
    reports: Batch,
    /// Datagrams of one lane, and what their headers say.
    datagrams: Batch,
    infos: Vec<DatagramInfo>,
    is_home: bool,
}

#[handlers]
impl SplitBoxClient {
    /// The entry, the processors and the epochs, a line each.
    #[read]
    fn state(&self, ask: &ReadRequest) -> String {
        self.with_control(|all| all.state(ask.now.nanos())).unwrap_or_default()
    }
    /// Packets that were put together, and those that were given up, by the datagrams that are missing.
    #[read]
    fn packets(&self) -> String {
        let mut sums = [0; 3];
        let mut without_share = vec![0; self.party.info.options.processors];
        for lane in &self.lanes {
            lane.with(|lane| {
                let counts = lane.counts;
                let own = [counts.complete, counts.incomplete, counts.without_rest];
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                let own = lane.without_share.iter();
                without_share.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            });
        }
        let [complete, incomplete, without_rest] = sums;
        let mut text =
            format!("{complete} complete\n{incomplete} incomplete\n{without_rest} without entry\n");
        for (processor, count) in without_share.iter().enumerate() {
            _ = writeln!(text, "{count} without processor {}", processor + 1);
        }
        text
    }
    /// Datagrams that wait for others of their packets.
    #[read]
    fn waiting(&self) -> usize {
        self.held_in_lanes()
    }
    /// Number of the setup, the same at all parties.
    #[read]
    fn setup(&self) -> String {
        format!("{:08x}", self.party.info.id)
    }
    /// Begins the next epoch as soon as all processors have its rows.
    #[write]
    fn rotate(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        self.with_control(ClientEpochs::rotate);
        Ok(self.clone())
    }
}

impl SplitBoxClient {
    fn with_control<R>(&self, f: impl FnOnce(&mut ClientEpochs) -> R) -> Option<R> {
        self.control.with(|it| it.as_mut().map(f))
    }

    fn held_in_lanes(&self) -> usize {
        self.lanes.iter().map(|it| it.with(|lane| lane.held())).sum()
    }

    /// Takes the datagrams of packets; those about epochs stay in `state`.
    fn push(
        &self,
        state: &mut SplitBoxClientState,
        batch: Batch,
        usable: &[Arc<ClientEpoch>],
        cx: &mut Cx,
    ) {
        let setup = &self.party.info;
        let mut current = 0;
        for packet in batch {
            let info = match DatagramInfo::of(packet.bytes()) {
                Ok(info) => info,
                Err(error) => {
                    cx.emit(Exit::from(error), packet);
                    continue;
                }
            };
            let lane = usize::from(LaneCounter::of(info.counter).lane);
            let exit = match info.link.kind {
                _ if info.setup != setup.id => Exit::Foreign,
                DatagramKind::Rest | DatagramKind::Share if lane < self.lanes.len() => {
                    if lane != current {
                        self.take_all(state, current, usable, cx);
                        current = lane;
                    }
                    state.infos.push(info);
                    state.datagrams.push(packet);
                    continue;
                }
                DatagramKind::Rest | DatagramKind::Share => Exit::Malformed,
                DatagramKind::Hello | DatagramKind::Status => {
                    state.reports.push(packet);
                    continue;
                }
                DatagramKind::Match | DatagramKind::Rows | DatagramKind::Grant => Exit::Foreign,
            };
            cx.emit(exit, packet);
        }
        self.take_all(state, current, usable, cx);
    }

    /// Takes the datagrams of a lane that wait: the lane is locked once for all of them.
    fn take_all(
        &self,
        state: &mut SplitBoxClientState,
        lane: usize,
        usable: &[Arc<ClientEpoch>],
        cx: &mut Cx,
    ) {
        let SplitBoxClientState { datagrams, infos, .. } = state;
        let Some(lane) = self.lanes.get(lane).filter(|_| !infos.is_empty()) else { return };
        let setup = (&self.party.info, self.limits);
        lane.with(|lane| {
            for (info, packet) in infos.drain(..).zip(datagrams.drain()) {
                match usable.iter().rev().find(|it| it.number == info.epoch) {
                    Some(epoch) => lane.take(setup, (epoch, &info), packet, cx),
                    None => cx.emit(Exit::NoEpoch, packet),
                }
            }
        });
    }

    /// Takes a report of the entry or of a processor.
    fn take_report(&self, packet: &mut Packet, cx: &mut Cx) -> Result<(), Exit> {
        let info = DatagramInfo::of(packet.bytes())?;
        let ClientParty { info: setup, entry_secret, processor_secrets, .. } = &*self.party;
        let secret = match info.link.kind {
            DatagramKind::Hello if info.link.processor == 0 => Some(entry_secret),
            DatagramKind::Status => processor_secrets.get(usize::from(info.link.processor)),
            _ => None,
        };
        let secret = secret.ok_or(Exit::Foreign)?;
        let key = LinkKey::new(secret, setup.id, info.link, info.epoch).ok_or(Exit::Forged)?;
        let payload = key.open(&info, packet.bytes_mut())?;
        let (now, number) = (cx.now().nanos(), (info.epoch, info.counter));
        if info.link.kind == DatagramKind::Status {
            let status = Status::decode(payload).ok_or(Exit::Malformed)?;
            let processor = usize::from(info.link.processor);
            let taken = self.with_control(|all| all.take_status(now, processor, number, &status));
            return taken.unwrap_or(Ok(())).map_err(Exit::from);
        }
        let hello = Hello::decode(payload).ok_or(Exit::Malformed)?;
        let taken = self.with_control(|all| all.take_hello(now, number, &hello));
        let Some(taken) = taken else { return Ok(()) };
        let report = taken.map_err(Exit::from)?;
        if !report.grants.is_empty() {
            // In one step, as workers take reports at the same time: none puts an older list in place.
            self.usable.change(|all| {
                *all = self.with_control(|control| control.usable()).unwrap_or_default();
            });
        }
        let link = Link { kind: DatagramKind::Grant, processor: 0 };
        let key = LinkKey::new(entry_secret, setup.id, link, info.epoch).ok_or(Exit::Forged)?;
        for epoch in report.grants {
            if let Some(packet) = sealed(&[], &key, (epoch, report.is_now.into()), cx) {
                cx.emit(Exit::Out(1), packet);
            }
        }
        Ok(())
    }

    /// Prepares epochs and sends their rows; returns whether more are to be sent.
    fn step(&self, cx: &mut Cx) -> bool {
        let now = cx.now().nanos();
        let is_sending = self.with_control(|all| {
            all.prepare(now);
            all.send_rows(now, self.rows, |row, bytes| {
                if let Some(packet) = sealed(bytes, row.key, (row.chunk.into(), 0), cx) {
                    cx.emit(Exit::Out(row.processor as u8 + 2), packet);
                }
            });
            all.is_sending(now)
        });
        is_sending == Some(true)
    }
}

impl PerBatch for SplitBoxClient {
    type On = on::Any;
    type Local = SplitBoxClientState;
    type Fate = Exit;

    fn init(&self, state: &mut SplitBoxClientState, cx: &mut Cx) -> Result<(), ArgError> {
        state.is_home = true;
        cx.set_timer(cx.now());
        Ok(())
    }

    fn cleanup(&self, _: &mut SplitBoxClientState, cx: &mut Cx) {
        self.lanes.iter().for_each(|lane| lane.with(|lane| lane.expire(u64::MAX, cx)));
    }

    fn held(&self, state: &SplitBoxClientState) -> usize {
        if state.is_home { self.held_in_lanes() } else { 0 }
    }

    fn after_take_state(&self, _: &mut SplitBoxClientState, cx: &mut Cx) {
        self.with_control(|all| all.set_rotation(self.rotation));
        cx.set_timer(cx.now());
    }

    fn can_take_state(&self, before: &Self) -> bool {
        self.party.info == before.party.info
    }

    fn merged_config(&self, before: &Self) -> Option<Self> {
        let SplitBoxClient { control, usable, mut lanes, .. } = before.clone();
        if self.can_take_state(before) {
            return Some(SplitBoxClient { control, usable, lanes, ..self.clone() });
        }
        // The file is of another setup now. Packets of the one before wait until their time has passed.
        for lane in &lanes {
            let processors = self.party.info.options.processors;
            lane.with(|lane| lane.count_shares_of(processors));
        }
        lanes.extend(self.lanes.iter().skip(lanes.len()).cloned());
        Some(SplitBoxClient { lanes, ..self.clone() })
    }

    fn run_timer(&self, _: &mut SplitBoxClientState, cx: &mut Cx) {
        let is_sending = self.step(cx);
        let now = cx.now().nanos();
        self.lanes.iter().for_each(|lane| lane.with(|lane| lane.expire(now, cx)));
        cx.set_timer(cx.now() + if is_sending { SENDING_INTERVAL } else { INTERVAL });
    }

    fn batch(&self, state: &mut SplitBoxClientState, _: usize, batch: Batch, cx: &mut Cx) {
        self.usable.read(|usable| self.push(state, batch, usable, cx));
        for mut packet in std::mem::take(&mut state.reports) {
            match self.take_report(&mut packet, cx) {
                Ok(()) => cx.count_consumed(1),
                Err(exit) => cx.emit(exit, packet),
            }
        }
    }
}
