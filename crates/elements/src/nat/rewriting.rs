//! What all rewriters are told, where they find their mappings, and what their handlers say.

use super::burst::{Burst, Turn};
use super::fragments::HeldFragment;
use super::named::{Later, member, number};
use super::settings::OfAll;
use castanet_engine::class::{Change, Piece, Read};
use castanet_engine::element::{DROP, FateKind, FateSpec};
use castanet_engine::prelude::*;
use castanet_engine::wire::ip_proto;
use castanet_kit::flow::Tuple4;
use castanet_kit::fragment_tracker::FragmentTracker;
use castanet_kit::nat::{
    InputSpec, Refusal, RewriterConfig, RewriterKind, Table, Timeouts, Translation,
};
use std::marker::PhantomData;

/// A rewriter's settings.
pub(super) struct Rewriter {
    table: Common<Table>,
    /// Packets whose fragments are under way, if later ones are to follow the first.
    pub(super) datagrams: Option<Common<FragmentTracker<HeldFragment>>>,
    /// Whose the table is.
    head: String,
    member: String,
    pub(super) rules: RewriterConfig,
    capacity: Option<u32>,
    outputs: usize,
    dst_anno: bool,
    reply_anno: Option<AnnoAt<1>>,
    reap: Option<u64>,
    names: Names,
    /// When it was built, in nanoseconds.
    started: u64,
}

/// Why packets go nowhere.
const REASONS: [FateSpec; 7] = [
    FateSpec {
        name: "unmapped",
        doc: "Packets that no mapping is for, and none is to be made for.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "exhausted",
        doc: "Packets whose flow finds nothing left to become, or no room for a mapping.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "not_rewritten",
        doc: "Packets of other protocols, later fragments, and packets cut short.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "tiny_fragment",
        doc: "Fragments that cut the headers of their packet in two, and all others of that \
              packet, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "overlapping_fragment",
        doc: "Fragments that overlap or contradict others of their packet, and all others of \
              that packet, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "lone_fragment",
        doc: "Fragments whose packet's first fragment did not come in time, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "excess_fragment",
        doc: "Fragments that found no room to wait, or made room for others, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
];

/// Where packets go, of rewriters that go by addresses.
#[derive(Clone, Copy)]
pub struct Way(u8);

/// The same, of rewriters that do not take every packet.
#[derive(Clone, Copy)]
pub struct WayOfSome(pub(super) u8);

impl Fate for Way {
    const FATES: &'static [FateSpec] = REASONS.split_at(2).0;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

impl Fate for WayOfSome {
    const FATES: &'static [FateSpec] = &REASONS;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

/// The same, of ICMP errors about what rewriters have rewritten.
#[derive(Clone, Copy)]
pub struct WayOfErrors(u8);

impl Fate for WayOfErrors {
    const FATES: &'static [FateSpec] = REASONS.split_at(1).0;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

impl WayOfErrors {
    /// Where messages go that are about nothing that was rewritten, if that is connected.
    pub(crate) const OTHERS: WayOfErrors = WayOfErrors(1);
    /// If not.
    pub(crate) const UNMAPPED: WayOfErrors = WayOfErrors(UNMAPPED);

    /// An output that is connected.
    pub(crate) fn output(n: u8) -> WayOfErrors {
        WayOfErrors(n)
    }
}

pub(super) const UNMAPPED: u8 = DROP;
pub(super) const EXHAUSTED: u8 = DROP - 1;
pub(super) const NOT_REWRITTEN: u8 = DROP - 2;
pub(super) const TINY: u8 = DROP - 3;
pub(super) const OVERLAPPING: u8 = DROP - 4;
pub(super) const LONE: u8 = DROP - 5;
pub(super) const EXCESS: u8 = DROP - 6;

/// Whether a fate is a reason to drop.
pub(super) fn is_reason(fate: u8) -> bool {
    fate >= EXCESS
}

impl Rewriter {
    pub(super) fn new<E: Describe>(
        common: &OfAll,
        by: RewriterKind,
        lives: [Timeouts; 2],
        setup: &Setup,
    ) -> Result<Rewriter, ArgError> {
        let rules = common.rules(setup, by, lives)?;
        let (capacity, head) = common.head(setup)?;
        Ok(Rewriter {
            table: setup.common(&head),
            datagrams: (common.fragments && !by.ignores_ports()).then(Common::default),
            // Of others' tables the capacity is theirs.
            capacity: Some(capacity.unwrap_or(castanet_kit::nat::DEFAULT_CAPACITY))
                .filter(|_| head == setup.name),
            head,
            member: member(setup.name, E::SPEC.class),
            rules,
            outputs: setup.outputs,
            dst_anno: common.dst_anno,
            reply_anno: common.reply_anno,
            reap: common.reap(),
            names: setup.names.snapshot(),
            started: setup.started.nanos(),
        })
    }

    /// At home, where handlers are heard.
    pub(super) fn start<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        self.table.change(|table| {
            self.capacity.iter().for_each(|&capacity| table.set_capacity(capacity));
            self.join(table);
        });
        self.attach(it);
        self.go_on(it, cx);
    }

    /// The same under these settings, with mappings that were made under others.
    pub(super) fn resume<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        if it.head != self.head {
            return self.start(it, cx);
        }
        it.table.change(|table| {
            table.reconfigure(it.zone, self.rules.clone(), self.outputs);
            self.capacity.iter().for_each(|&capacity| table.set_capacity(capacity));
        });
        self.go_on(it, cx);
    }

    fn go_on<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        let (names, outputs, by) = (self.names.snapshot(), self.outputs, self.rules.kind);
        it.home = Some(Home { names, outputs, by });
        cx.cancel_wake();
        it.waits = false;
        self.release(it, cx);
        if !it.table.read(Table::is_empty) {
            self.wait(it, cx);
        }
    }

    fn join(&self, table: &mut Table) -> u16 {
        table.add_member(&self.member, self.rules.clone(), self.outputs, self.started)
    }

    /// Finds the table, of which this is a member from now on if no worker was one before.
    fn attach<K: Kind>(&self, it: &mut Rewriting<K>) {
        (it.table, it.head) = (self.table.clone(), self.head.clone());
        let zone = |table: &mut Table| table.zone(&self.member);
        it.zone = it.table.change(|table| zone(table).unwrap_or_else(|| self.join(table)));
    }

    /// Lets what another configuration has made go on here, if it has made anything.
    pub(super) fn settle<K: Kind>(&self, it: &mut Rewriting<K>) {
        self.adopt(it);
        if !it.head.is_empty() && !self.is_followed(it) {
            self.follow(it);
        }
    }

    #[inline]
    fn is_followed<K: Kind>(&self, it: &Rewriting<K>) -> bool {
        it.named == self.rules.references && it.head == self.head
    }

    /// Another configuration may have changed a mapper, or whose the capacity is.
    #[cold]
    fn follow<K: Kind>(&self, it: &mut Rewriting<K>) {
        if it.head != self.head {
            self.attach(it);
        }
        it.named.clone_from(&self.rules.references);
        it.table.change(|table| table.reconfigure_if_changed(it.zone, &self.rules, self.outputs));
    }

    /// Sees to it that mappings that are over are found while no packets come.
    fn wait<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        if let Some(interval) = self.reap.filter(|_| !it.waits) {
            it.waits = true;
            cx.wake_at(cx.now() + Duration::from_nanos(interval));
        }
    }

    /// Ends mappings that are over while no packets come.
    pub(super) fn wake<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        /// How many are looked at in one go, while other workers wait.
        const SOME: usize = 256;
        let now = cx.now().nanos();
        it.waits = false;
        self.release(it, cx);
        if it.table.read(|table| table.is_due(now)) && !it.table.change(|it| it.expire(now, SOME)) {
            it.waits = true;
            return cx.wake_at(cx.now() + Duration::from_nanos(1));
        }
        if !it.table.read(Table::is_empty) {
            self.wait(it, cx);
        }
    }

    /// Rewrites a burst.
    pub(super) fn batch<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let is_fragment = |packet: &Packet| packet.ipv4_header().is_some_and(|ip| ip.is_fragment());
        match self.datagrams.is_some() && batch.iter().any(is_fragment) {
            true => self.piecewise(it, port, batch, cx),
            false => self.whole(it, port, batch, cx),
        }
    }

    /// Rewrites a burst without caring for fragments: first what mappings that are there say, while other workers do the same,
    /// then what changes mappings.
    pub(super) fn whole<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        port: usize,
        mut batch: Batch,
        cx: &mut Cx,
    ) {
        if !self.is_followed(it) {
            self.follow(it);
        }
        let now = cx.now().nanos();
        let Rewriting { table, zone, burst, .. } = it;
        let turn = Turn { rewriter: self, zone: *zone, port, now };
        let (is_due, is_any) = table.read(|table| {
            turn.early(burst, &mut batch, table);
            (table.is_due(now), !table.is_empty())
        });
        if is_due || !burst.late.is_empty() {
            table.change(|table| {
                table.expire(now, 2 * batch.len());
                turn.late(burst, &mut batch, table, cx);
            });
        }
        cx.route(batch, &burst.fates);
        if is_any || !burst.late.is_empty() {
            self.wait(it, cx);
        }
    }

    pub(super) fn anno(&self, packet: &Packet) -> u8 {
        self.reply_anno.map_or(0, |anno| anno.get(packet))
    }

    /// What a packet is told of what became of it.
    #[inline]
    pub(super) fn tell(&self, packet: &mut Packet, passed: &Result<Translation, Refusal>) {
        if let Ok(Translation::Rewritten { dst, anno, .. }) = *passed {
            dst.iter().filter(|_| self.dst_anno).for_each(|dst| packet.set_dst(*dst));
            if let (Some(anno), Some(place)) = (anno, self.reply_anno) {
                place.set(packet, anno);
            }
        }
    }
}

/// What kinds of rewriters tell more of.
pub trait Kind: Sized + Send + 'static {
    /// Their handlers.
    const READS: &'static [Read<Rewriting<Self>>];
}

/// What handlers need that write: of all workers' states they change the one at home.
struct Home {
    names: Names,
    outputs: usize,
    by: RewriterKind,
}

/// The mappings, for those who read the handlers, and what a burst needs.
pub struct Rewriting<K: Kind> {
    pub(super) table: Common<Table>,
    /// Packets whose fragments are under way, of all workers.
    pub(super) datagrams: Common<FragmentTracker<HeldFragment>>,
    head: String,
    pub(super) zone: u16,
    named: Vec<String>,
    /// Of the worker that handlers change.
    home: Option<Home>,
    /// Whether it is to be woken.
    pub(super) waits: bool,
    pub(super) burst: Burst,
    kind: PhantomData<K>,
}

impl<K: Kind> Default for Rewriting<K> {
    fn default() -> Self {
        Rewriting {
            table: Common::default(),
            datagrams: Common::default(),
            head: String::new(),
            zone: 0,
            named: Vec::new(),
            home: None,
            waits: false,
            burst: Burst::default(),
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Local for Rewriting<K> {
    const READS: &'static [&'static [Read<Self>]] = &[Self::READ_METHODS, K::READS];
    const WRITES: &'static [&'static [Change<Self>]] = &[Self::CHANGE_METHODS];
}

#[handlers]
impl<K: Kind> Rewriting<K> {
    /// Mappings.
    #[read]
    fn table_size(&self, ask: &Ask) -> Value {
        self.now(ask, |table| table.counts(self.zone).0)
    }

    /// Mappings, by the name that Click had before.
    #[read]
    fn nmappings(&self, ask: &Ask) -> Value {
        self.table_size(ask)
    }

    /// How often there was nothing left that a flow could become, or no room for its mapping.
    #[read]
    fn mapping_failures(&self) -> Value {
        Value::common(self.table.read(|table| table.counts(self.zone).1))
    }

    /// What becomes of packets without a mapping, and how many mappings that has made: a line
    /// for each input.
    #[read]
    fn patterns(&self, ask: &Ask) -> Value {
        self.now(ask, |table| table.patterns(self.zone, None))
    }

    /// The same of one input: `pattern0`, `pattern1` and so on.
    #[read]
    fn pattern_(&self, ask: &Ask) -> Value {
        let input = ask.param.parse().unwrap_or(usize::MAX);
        self.now(ask, |table| table.patterns(self.zone, Some(input)))
    }

    /// Mappings of all rewriters that share the capacity.
    #[read]
    fn size(&self, ask: &Ask) -> Value {
        self.now(ask, Table::len)
    }

    /// What became of mappings of all rewriters that share the capacity: added, expired,
    /// evicted for others, removed (cleared, or replaced by others), refused.
    #[read]
    fn mapping_events(&self, ask: &Ask) -> Value {
        self.now(ask, |table| {
            let counts = table.events();
            Value::Counts(vec![
                (counts.added, "added"),
                (counts.expired, "expired"),
                (counts.evicted, "evicted"),
                (table.removed(), "removed"),
                (counts.refused, "refused"),
            ])
        })
    }

    /// How many mappings there may be.
    #[read]
    fn capacity(&self) -> Value {
        Value::common(self.table.read(Table::capacity))
    }

    /// Sets how many mappings there may be; those that have no room end.
    #[write(capacity)]
    fn set_capacity(&mut self, text: &str) -> Result<(), ArgError> {
        let number = number(text.trim());
        let number = number.ok_or_else(|| ArgError::new("CAPACITY wants a number"))?;
        self.at_home(|table| table.set_capacity(number));
        Ok(())
    }

    /// Ends all mappings, also those of rewriters that share the capacity.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.at_home(Table::clear);
        Ok(())
    }

    /// Sets what becomes of packets without a mapping on one input, and ends the mappings that
    /// it has made: `pattern0`, `pattern1` and so on.
    #[write(pattern_)]
    fn set_pattern(&mut self, text: &str) -> Result<(), ArgError> {
        let (input, text) = text.split_once(' ').unwrap_or((text, ""));
        let n: usize = input.parse().map_err(|_| ArgError::new("no such input"))?;
        let Some(Home { names, outputs, by }) = &self.home else { return Ok(()) };
        let input = InputSpec::parse(text, *by, *outputs, &Later(names))
            .map_err(|e| ArgError::new(e).at(format!("input spec {n}")))?;
        self.table.change(|table| table.set_input(self.zone, n, input));
        Ok(())
    }

    /// Whether handlers change this one of all workers'.
    pub(super) fn is_home(&self) -> bool {
        self.home.is_some()
    }

    /// Changes the table, once of all workers.
    fn at_home(&self, change: impl FnOnce(&mut Table)) {
        if self.home.is_some() {
            self.table.change(change);
        }
    }

    /// What the table says once mappings that are over are gone.
    fn now<V: Into<Value>>(&self, ask: &Ask, say: impl FnOnce(&Table) -> V) -> Value {
        let now = ask.now.nanos();
        self.table.change(|table| while !table.expire(now, usize::MAX) {});
        Value::common(self.table.read(say))
    }

    fn listing(&self, ask: &Ask, protocol: Option<u8>) -> Value {
        let (now, from) = (ask.now.nanos(), usize::try_from(ask.from).unwrap_or(usize::MAX));
        let (text, next) = self.table.read(|table| table.listing(self.zone, protocol, now, from));
        let next = next.map(|next| next as u64);
        Piece { text, next, finish: Piece::as_it_is }.into()
    }

    /// What `SADDR SPORT DADDR DPORT` of TCP becomes, in the same form.
    fn lookup(&self, ask: &Ask) -> Value {
        let words: Vec<&str> = ask.param.split_whitespace().collect();
        let address = |text: &str| Ipv4Addr::from_arg(text, &self.home.as_ref()?.names).ok();
        let flow = || {
            let [src, src_port, dst, dst_port] = words[..] else { return None };
            let src = (address(src)?, src_port.parse().ok()?);
            Some(Tuple4::new(src, (address(dst)?, dst_port.parse().ok()?), ip_proto::TCP))
        };
        let show = |it: Tuple4| {
            let (src, dst) = (it.src(), it.dst());
            format!("{} {} {} {}", src.0, src.1, dst.0, dst.1)
        };
        self.now(ask, |table| flow().and_then(|flow| table.lookup(self.zone, flow)).map(show))
    }
}

/// Rewriters of TCP and UDP.
pub struct OfBoth;
/// Rewriters of TCP.
pub struct OfTcp;
/// All others.
pub struct OfAny;

const TABLE: &str = "All mappings, both directions: what packets look like, what they become, \
                     both outputs, of which theirs has a star, the input whose packet began the \
                     flow, and how many seconds are left.";

impl Kind for OfBoth {
    const READS: &'static [Read<Rewriting<Self>>] = &[
        Read { name: "tcp_table", doc: TABLE, get: |it, ask| it.listing(ask, Some(ip_proto::TCP)) },
        Read { name: "udp_table", doc: TABLE, get: |it, ask| it.listing(ask, Some(ip_proto::UDP)) },
        Read {
            name: "tcp_mappings",
            doc: OLD,
            get: |it, ask| it.listing(ask, Some(ip_proto::TCP)),
        },
        Read {
            name: "udp_mappings",
            doc: OLD,
            get: |it, ask| it.listing(ask, Some(ip_proto::UDP)),
        },
        Read { name: "tcp_lookup", doc: LOOKUP, get: |it, ask| it.lookup(ask) },
    ];
}

impl Kind for OfTcp {
    const READS: &'static [Read<Rewriting<Self>>] = &[
        Read { name: "table", doc: TABLE, get: |it, ask| it.listing(ask, None) },
        Read { name: "mappings", doc: OLD, get: |it, ask| it.listing(ask, None) },
        Read { name: "lookup", doc: LOOKUP, get: |it, ask| it.lookup(ask) },
    ];
}

impl Kind for OfAny {
    const READS: &'static [Read<Rewriting<Self>>] = &[
        Read { name: "table", doc: TABLE, get: |it, ask| it.listing(ask, None) },
        Read { name: "mappings", doc: OLD, get: |it, ask| it.listing(ask, None) },
    ];
}

const OLD: &str = "The same as the table, by the name that Click had before.";
const LOOKUP: &str = "What `SADDR SPORT DADDR DPORT` becomes, in the same form; nothing if it has \
                      no mapping.";

/// The trait's methods that all rewriters have in common.
macro_rules! rewriter_methods {
    () => {
        fn continues(&self, _: &Self) -> bool {
            true
        }

        fn start(&self, it: &mut Self::Local, cx: &mut Cx) -> Result<(), ArgError> {
            self.0.start(it, cx);
            Ok(())
        }

        fn settle(&self, it: &mut Self::Local) {
            self.0.settle(it);
        }

        fn resume(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.resume(it, cx);
        }

        fn batch(&self, it: &mut Self::Local, port: usize, batch: Batch, cx: &mut Cx) {
            self.0.batch(it, port, batch, cx);
        }

        fn wake(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.wake(it, cx);
        }

        fn end(&self, it: &mut Self::Local, cx: &mut Cx) {
            self.0.end(it, cx);
        }

        fn held(&self, it: &Self::Local) -> usize {
            self.0.held(it)
        }
    };
}
pub(super) use rewriter_methods;
