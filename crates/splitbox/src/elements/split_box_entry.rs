//! `SplitBoxEntry`: blinds packets for middleboxes that must not read them.

use super::datagram_packet::sealed;
use super::entry_lane::{EntryContext, EntryLane};
use super::exit::EntryExit as Exit;
use super::party_args::PartyArgs;
use crate::datagram::{DatagramInfo, DatagramKind, Link, LinkKey};
use crate::epochs::EntryEpochs;
use crate::header::SourceHash;
use crate::party_file;
use crate::random::RandomStream;
use crate::setup::{BlindUse, EntryParty};
use castanet_element::prelude::*;
use castanet_element::resource::from_args;
use std::sync::Arc;

/// Blinds packets for cloud middleboxes that compute a function of them without reading them.
///
/// The element is the entry A of SplitBox (SUPERFLUIDITY I5.1, section 3). Input 0 takes IP packets,
/// input 1 datagrams of the client. Each packet becomes datagrams: one for each processor with the
/// blinded header string, by outputs 1 to t, and one or more for the client with the packet, by output
/// 0. All are payloads for UDP; the paint annotation is the number of the lane, which is the worker's.
///
/// The file comes from `castanet splitbox setup`. The client tells the entry which epochs it may use;
/// until it has, packets are dropped. docs/splitbox.md describes the protocol.
///
/// The example puts all parties into one graph:
///
/// ```click
/// a :: SplitBoxEntry(entry.splitbox, KEY_FILE key);
/// b1 :: SplitBoxProcessor(processor-1.splitbox, KEY_FILE key);
/// b2 :: SplitBoxProcessor(processor-2.splitbox, KEY_FILE key);
/// c :: SplitBoxClient(client.splitbox, KEY_FILE key);
/// in -> a -> c -> out;  a[1] -> b1 -> c[1] -> [1]a;  a[2] -> b2 -> c;  c[2] -> b1;  c[3] -> b2;
/// forged -> [1]a
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// > forged hex 0107
/// = a.drops.no_epoch 1
/// = a.drops.malformed 1
/// + 1s
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// > in 1.0.0.1:5 > 2.0.0.2:23 tcp syn
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = c.drops.policy 1
/// = a.session 1000000000000000000
/// = a.epoch 1000000000000
/// ! c.rotate
/// + 1s
/// > in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
/// = a.epoch 1000000000010
/// ```
#[derive(Clone, Element)]
#[element(room = "splitbox", args = SplitBoxEntryArgs, alias = "Entry", methods)]
#[element(ports = "2/3-", processing = "h/h", flow = "x/x")]
pub struct SplitBoxEntry {
    party: Arc<EntryParty>,
    source_hash: SourceHash,
    epochs: RwShared<EntryEpochs>,
    lanes: Vec<Shared<Option<EntryLane>>>,
    mtu: usize,
}

#[derive(Args)]
pub struct SplitBoxEntryArgs {
    #[arg(flatten)]
    party: PartyArgs,
    /// Maximum length of the IP packets with datagrams; longer packets take several.
    #[arg(keyword, default = 1500, range = 256..=65535)]
    mtu: u32,
}

/// Time between reports where blinds are used again.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time between reports where blinds are used once, or where there is no epoch.
const SHORT_REPORT_INTERVAL: Duration = Duration::from_millis(10);

/// The files that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &SplitBoxEntryArgs| it.party.resources())
}

impl Build for SplitBoxEntry {
    type Args = SplitBoxEntryArgs;

    fn build(args: SplitBoxEntryArgs, setup: &Setup) -> Result<Self, ArgError> {
        let unlock = args.party.unlock()?;
        let party = party_file::load_entry(args.party.path(), &unlock);
        let party = Arc::new(party.map_err(|error| ArgError::new(error.to_string()))?);
        let processors = party.info.options.processors;
        if setup.outputs != processors + 1 {
            let message = format!("{} outputs are connected", setup.outputs);
            return Err(ArgError::new(message).help(format!(
                "output 0 goes to the client, and outputs 1 to {processors} go to the processors"
            )));
        }
        let lane = |number| {
            let random = RandomStream::new().map_err(|error| ArgError::new(error.to_string()))?;
            let lane = Shared::default();
            lane.with(|it| *it = Some(EntryLane::new(number as u8, random)));
            Ok(lane)
        };
        Ok(SplitBoxEntry {
            source_hash: SourceHash::new(&party.source_key),
            lanes: (0..party.info.options.lanes).map(lane).collect::<Result<_, ArgError>>()?,
            epochs: RwShared::default(),
            mtu: args.mtu as usize,
            party,
        })
    }
}

#[handlers]
impl SplitBoxEntry {
    /// Number of the epoch for which the last packet was blinded; 0 if there is none.
    #[read]
    fn epoch(&self) -> u64 {
        self.epochs.read(EntryEpochs::current)
    }
    /// Number of the newest epoch that the client permits; 0 if there is none. It is for the packets to come.
    #[read]
    fn newest_epoch(&self) -> u64 {
        self.epochs.read(EntryEpochs::newest)
    }
    /// Number of the session, in which the client permits epochs.
    #[read]
    fn session(&self) -> u64 {
        self.epochs.read(EntryEpochs::session)
    }
    /// Number of the setup, the same at all parties.
    #[read]
    fn setup(&self) -> String {
        format!("{:08x}", self.party.info.id)
    }
}

impl SplitBoxEntry {
    /// Takes a datagram of the client: the permission to use an epoch.
    fn take_grant(&self, packet: &mut Packet) -> Result<(), Exit> {
        let info = DatagramInfo::of(packet.bytes())?;
        let link = Link { kind: DatagramKind::Grant, processor: 0 };
        let session = self.epochs.read(EntryEpochs::session);
        if info.setup != self.party.info.id || info.link != link {
            return Err(Exit::Foreign);
        }
        if info.epoch != session {
            return Err(Exit::Old);
        }
        let key = LinkKey::new(&self.party.client_secret, info.setup, link, session);
        key.ok_or(Exit::Forged)?.open(&info, packet.bytes_mut())?;
        let is_now = info.part != 0;
        let is_new = self.epochs.change(|all| all.grant(&self.party, info.counter, is_now));
        if is_new { Ok(()) } else { Err(Exit::Replayed) }
    }

    /// Emits a report for the client; returns when the next one is due.
    fn report(&self, cx: &mut Cx) -> Duration {
        let now = cx.now().nanos();
        let (session, counter, hello) = self.epochs.change(|all| {
            if all.session() == 0 {
                // Not in `init`: the element may go on for one with the file of another setup.
                *all = EntryEpochs::new(now);
            }
            let (counter, hello) = all.report();
            (all.session(), counter, hello)
        });
        let link = Link { kind: DatagramKind::Hello, processor: 0 };
        let key = LinkKey::new(&self.party.client_secret, self.party.info.id, link, session);
        if let Some(key) = key
            && let Some(packet) = sealed(&hello.encode(), &key, (counter, 0), cx)
        {
            cx.emit(Exit::Out(0), packet);
        }
        match self.party.info.options.blind_use {
            BlindUse::Again if hello.newest != 0 => REPORT_INTERVAL,
            BlindUse::Again | BlindUse::Once => SHORT_REPORT_INTERVAL,
        }
    }
}

impl PerBatch for SplitBoxEntry {
    type On = on::Any;
    type Local = ();
    type Fate = Exit;

    fn init(&self, _: &mut (), cx: &mut Cx) -> Result<(), ArgError> {
        cx.set_timer(cx.now());
        Ok(())
    }

    fn after_take_state(&self, _: &mut (), cx: &mut Cx) {
        cx.set_timer(cx.now());
    }

    fn can_take_state(&self, before: &Self) -> bool {
        self.party.info == before.party.info
    }

    fn merged_config(&self, before: &Self) -> Option<Self> {
        let SplitBoxEntry { epochs, lanes, .. } = before.clone();
        self.can_take_state(before).then(|| SplitBoxEntry { epochs, lanes, ..self.clone() })
    }

    fn run_timer(&self, _: &mut (), cx: &mut Cx) {
        let next = self.report(cx);
        cx.set_timer(cx.now() + next);
    }

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        if port == 0 {
            let SplitBoxEntry { party, source_hash, epochs, mtu, .. } = self;
            let context = EntryContext { party, source_hash, epochs, mtu: *mtu };
            let lane = &self.lanes[cx.worker() % self.lanes.len()];
            return lane.with(|lane| {
                if let Some(lane) = lane {
                    lane.push(&context, batch, cx);
                }
            });
        }
        for mut packet in batch {
            match self.take_grant(&mut packet) {
                Ok(()) => cx.count_consumed(1),
                Err(exit) => cx.emit(exit, packet),
            }
        }
    }
}
