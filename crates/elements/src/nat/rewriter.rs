//! The code that all rewriters share: arguments, access to the table of mappings, handlers.

use super::burst::{BurstContext, BurstState};
use super::metrics;
use super::name_resolution::{NamesResolver, member_name, parse_capacity};
use super::rewriter_args::RewriterArgs;
use super::worker_tables::WorkerTables;
use castanet_element::fragment::FragmentGate;
use castanet_element::handler::{HandlerMethods, ReadHandler, StateHandler, TextChunk};
use castanet_element::portable_state::StateField;
use castanet_element::prelude::*;
use castanet_element::wire::ip_proto;
use castanet_kit::conntrack::Tuple4;
use castanet_kit::nat::{
    InputSpec, MappingNumbers, Refusal, RewriterConfig, RewriterKind, Table, Timeouts, Translation,
};
use std::marker::PhantomData;

/// A rewriter as its arguments configure it.
#[derive(Clone)]
pub(super) struct Rewriter {
    tables: WorkerTables,
    /// Packets of which fragments have come, with FRAGMENTS.
    pub(super) fragments: FragmentGate,
    tracks_fragments: bool,
    /// The name of the rewriter that owns the table and its capacity.
    owner: String,
    member: String,
    pub(super) config: RewriterConfig,
    capacity: Option<u32>,
    outputs: usize,
    dst_anno: bool,
    pub(super) set_aggregate: bool,
    reply_anno: Option<AnnoAt<1>>,
    /// The numbers of the mappings of all rewriters.
    numbers: MappingNumbers,
    reap: Option<u64>,
    names: Names,
}

impl Rewriter {
    pub(super) fn new<E: Describe>(
        args: &RewriterArgs,
        kind: RewriterKind,
        timeouts: [Timeouts; 2],
        setup: &Setup,
    ) -> Result<Rewriter, ArgError> {
        let config = args.config(setup, kind, timeouts)?;
        let (capacity, owner) = args.capacity_owner(setup)?;
        Ok(Rewriter {
            tables: WorkerTables::new(setup, &owner),
            fragments: FragmentGate::default(),
            tracks_fragments: args.fragments && !kind.ignores_ports(),
            // Only the owner of the table sets its capacity.
            capacity: Some(capacity.unwrap_or(castanet_kit::nat::DEFAULT_CAPACITY))
                .filter(|_| owner == setup.name),
            owner,
            member: member_name(setup.name, E::SPEC.class),
            config,
            outputs: setup.outputs,
            dst_anno: args.dst_anno,
            set_aggregate: args.set_aggregate,
            reply_anno: args.reply_anno,
            numbers: setup
                .shared_in_scope("rewriters' mappings")
                .with(|it: &mut MappingNumbers| it.clone()),
            reap: args.reap_interval_nanos(),
            names: setup.names.clone(),
        })
    }

    /// The rewriter as it goes on for `before` in a hot swap, with the fragments that wait there.
    pub(super) fn merged(&self, before: &Rewriter) -> Rewriter {
        Rewriter { fragments: before.fragments.clone(), ..self.clone() }
    }

    /// Joins the table, on the worker whose state handlers change.
    pub(super) fn start<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        self.tables.change_all(|table| {
            self.capacity.iter().for_each(|&capacity| table.set_capacity(capacity));
            self.join(table);
        });
        self.attach(it, cx.worker());
        self.activate(it, cx);
    }

    /// The same with the state of the previous configuration: its mappings stay.
    pub(super) fn resume<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        if it.owner != self.owner {
            return self.start(it, cx);
        }
        it.tables.change_all(|table| {
            table.reconfigure(it.zone, self.config.clone(), self.outputs);
            self.capacity.iter().for_each(|&capacity| table.set_capacity(capacity));
        });
        self.activate(it, cx);
    }

    /// Gives handlers what they need, and schedules the next wake-up.
    fn activate<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        let (names, outputs, kind) = (self.names.clone(), self.outputs, self.config.kind);
        it.handlers = Some(HandlerContext { names, outputs, kind });
        cx.cancel_timer();
        it.wake_pending = false;
        self.expire_fragments(it, cx);
        if !it.table.read(Table::is_empty) {
            self.schedule_reap(it, cx);
        }
    }

    fn join(&self, table: &mut Table) -> u16 {
        table.set_numbers(self.numbers.clone());
        table.add_member(&self.member, self.config.clone(), self.outputs)
    }

    /// Finds a worker's table and the zone in it; the first worker of the rewriter joins the tables.
    fn attach<K: TableHandlers>(&self, it: &mut RewriterState<K>, worker: usize) {
        (it.tables, it.owner) = (self.tables.clone(), self.owner.clone());
        (it.table, it.worker) = (self.tables.of(worker), worker);
        let zone = |table: &mut Table| table.zone(&self.member);
        it.zone = it.table.change(|table| zone(table).unwrap_or_else(|| self.join(table)));
    }

    /// Takes over the state of the previous configuration, if there is any.
    pub(super) fn settle<K: TableHandlers>(&self, it: &mut RewriterState<K>) {
        if !it.owner.is_empty() && !self.is_current(it) {
            self.reconfigure(it, it.worker);
        }
    }

    #[inline]
    fn is_current<K: TableHandlers>(&self, it: &RewriterState<K>) -> bool {
        it.references == self.config.references && it.owner == self.owner
    }

    /// Applies a changed configuration: mappers, or the owner of the capacity, may have changed.
    #[cold]
    fn reconfigure<K: TableHandlers>(&self, it: &mut RewriterState<K>, worker: usize) {
        if it.owner != self.owner {
            self.attach(it, worker);
        }
        it.references.clone_from(&self.config.references);
        it.table.change(|table| table.reconfigure_if_changed(it.zone, &self.config, self.outputs));
    }

    /// Schedules the search for expired mappings while no packets come.
    fn schedule_reap<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        if let Some(interval) = self.reap.filter(|_| !it.wake_pending) {
            it.wake_pending = true;
            cx.set_timer(cx.now() + Duration::from_nanos(interval));
        }
    }

    /// Removes expired mappings while no packets come.
    pub(super) fn wake<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        /// The most mappings to check while other workers wait for the table.
        const EXPIRE_LIMIT: usize = 256;
        let now = cx.now().nanos();
        it.wake_pending = false;
        self.expire_fragments(it, cx);
        if it.table.read(|table| table.is_due(now))
            && !it.table.change(|it| it.expire(now, EXPIRE_LIMIT))
        {
            it.wake_pending = true;
            return cx.set_timer(cx.now() + Duration::from_nanos(1));
        }
        if !it.table.read(Table::is_empty) {
            self.schedule_reap(it, cx);
        }
    }

    /// Rewrites a burst.
    pub(super) fn batch<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let is_fragment = |packet: &Packet| packet.ipv4_header().is_some_and(|ip| ip.is_fragment());
        match self.tracks_fragments && batch.iter().any(is_fragment) {
            true => self.batch_with_fragments(it, port, batch, cx),
            false => self.batch_without_fragments(it, port, batch, cx),
        }
    }

    /// Rewrites a burst without regard to fragments. Packets that only use mappings come first,
    /// with shared access to the table; then, with exclusive access, packets that change it.
    pub(super) fn batch_without_fragments<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        port: usize,
        mut batch: Batch,
        cx: &mut Cx,
    ) {
        if !self.is_current(it) {
            self.reconfigure(it, cx.worker());
        }
        let now = cx.now().nanos();
        let RewriterState { table, zone, burst, .. } = it;
        let context = BurstContext { rewriter: self, zone: *zone, port, now };
        let (is_due, has_mappings) = table.read(|table| {
            match self.set_aggregate {
                true => context.rewrite_shared::<true>(burst, &mut batch, table),
                false => context.rewrite_shared::<false>(burst, &mut batch, table),
            }
            (table.is_due(now), !table.is_empty())
        });
        if is_due || !burst.deferred.is_empty() {
            table.change(|table| {
                table.expire(now, 2 * batch.len());
                context.rewrite_exclusive(burst, &mut batch, table, cx);
            });
        }
        cx.route(batch, &mut burst.fates);
        if has_mappings || !burst.deferred.is_empty() {
            self.schedule_reap(it, cx);
        }
    }

    pub(super) fn reply_anno(&self, packet: &Packet) -> u8 {
        self.reply_anno.map_or(0, |anno| anno.get(packet))
    }

    /// Sets the destination and reply annotations of a packet by its translation.
    #[inline]
    pub(super) fn set_annotations(
        &self,
        packet: &mut Packet,
        result: &Result<Translation, Refusal>,
    ) {
        if let Ok(Translation::Rewritten { dst, anno, .. }) = *result {
            dst.iter().filter(|_| self.dst_anno).for_each(|dst| packet.set_dst(*dst));
            if let (Some(anno), Some(field)) = (anno, self.reply_anno) {
                field.set(packet, anno);
            }
        }
    }
}

/// The handlers about mappings that a kind of rewriter has.
pub trait TableHandlers: Sized + Send + 'static {
    const READS: &'static [ReadHandler<RewriterState<Self>>];
}

/// Data for the write handlers, which change the state of one worker.
pub(super) struct HandlerContext {
    names: Names,
    pub(super) outputs: usize,
    kind: RewriterKind,
}

/// A worker's state: the table of mappings, and the buffers of a burst.
pub struct RewriterState<K: TableHandlers> {
    pub(super) table: RwShared<Table>,
    /// The tables of all workers.
    pub(super) tables: WorkerTables,
    worker: usize,
    owner: String,
    pub(super) zone: u16,
    references: Vec<String>,
    /// Set on the one worker whose state handlers change.
    pub(super) handlers: Option<HandlerContext>,
    /// Whether a wake-up is scheduled.
    pub(super) wake_pending: bool,
    pub(super) burst: BurstState,
    kind: PhantomData<K>,
}

impl<K: TableHandlers> Default for RewriterState<K> {
    fn default() -> Self {
        RewriterState {
            table: RwShared::default(),
            tables: WorkerTables::default(),
            worker: 0,
            owner: String::new(),
            zone: 0,
            references: Vec::new(),
            handlers: None,
            wake_pending: false,
            burst: BurstState::default(),
            kind: PhantomData,
        }
    }
}

impl<K: TableHandlers> Local for RewriterState<K> {
    const READS: &'static [&'static [ReadHandler<Self>]] =
        &[<Self as HandlerMethods<Self>>::READS, K::READS];
    const WRITES: &'static [&'static [StateHandler<Self>]] =
        &[<Self as HandlerMethods<Self>>::CHANGES];
    const PORTABLE: &'static [StateField<Self>] = &[StateField {
        name: "mappings",
        is_table: true,
        export: Self::export_mappings,
        import: Self::import_mapping,
        remove: Self::remove_mapping,
    }];
}

#[handlers]
impl<K: TableHandlers> RewriterState<K> {
    /// Number of mappings.
    #[read]
    fn table_size(&self, ask: &ReadRequest) -> Value {
        self.sum_current(ask, |table| table.counts(self.zone).0)
    }

    /// Number of mappings, by the older name of the handler in Click.
    #[read]
    fn nmappings(&self, ask: &ReadRequest) -> Value {
        self.table_size(ask)
    }

    /// Number of mappings, with those that have expired and are yet to be removed.
    #[read]
    #[metric(metrics::MAPPINGS)]
    fn mapping_count(&self) -> Value {
        Value::common(self.tables.sum(|table| table.counts(self.zone).0))
    }

    /// Number of times that no free address or port, or no room for a mapping, was left.
    #[read]
    #[metric(metrics::FAILURES)]
    fn mapping_failures(&self) -> Value {
        Value::common(self.tables.sum(|table| table.counts(self.zone).1))
    }

    /// The action for packets without a mapping, and the number of mappings that it has made:
    /// a line for each input.
    #[read]
    fn patterns(&self, ask: &ReadRequest) -> Value {
        self.pattern_lines(ask, None)
    }

    /// The same of one input: `pattern0`, `pattern1` and so on.
    #[read]
    fn pattern_(&self, ask: &ReadRequest) -> Value {
        let input = ask.param.parse().unwrap_or(usize::MAX);
        self.pattern_lines(ask, Some(input))
    }

    /// Number of mappings of all rewriters that share the capacity.
    #[read]
    fn size(&self, ask: &ReadRequest) -> Value {
        self.sum_current(ask, |table| table.len() as u64)
    }

    /// Counters of mappings of all rewriters that share the capacity: added, expired,
    /// evicted for others, removed (cleared, or replaced by others), refused.
    #[read]
    #[metric(metrics::EVENTS)]
    fn mapping_events(&self) -> Value {
        let sum = |count: fn(&Table) -> u64| self.tables.sum(count);
        let events = [
            (sum(|table| table.events().added), "added"),
            (sum(|table| table.events().expired), "expired"),
            (sum(|table| table.events().evicted), "evicted"),
            (sum(Table::removed), "removed"),
            (sum(|table| table.events().refused), "refused"),
        ];
        Value::common(Value::Counts(events.map(|(count, event)| (count, event.into())).into()))
    }

    /// The most mappings that there may be.
    #[read]
    #[metric(metrics::CAPACITY)]
    fn capacity(&self) -> Value {
        Value::common(self.table.read(Table::capacity))
    }

    /// Sets the most mappings that there may be, and removes those beyond.
    #[write(capacity)]
    fn set_capacity(&mut self, text: &str) -> Result<(), ArgError> {
        let number = parse_capacity(text.trim());
        let number = number.ok_or_else(|| ArgError::new("CAPACITY wants a number"))?;
        self.change_once(|table| table.set_capacity(number));
        Ok(())
    }

    /// Removes all mappings, also those of rewriters that share the capacity.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.change_once(Table::clear);
        Ok(())
    }

    /// Sets the action for packets without a mapping on one input, and removes the mappings that
    /// it has made: `pattern0`, `pattern1` and so on.
    #[write(pattern_)]
    fn set_pattern(&mut self, text: &str) -> Result<(), ArgError> {
        let (input, text) = text.split_once(' ').unwrap_or((text, ""));
        let n: usize = input.parse().map_err(|_| ArgError::new("no such input"))?;
        let Some(HandlerContext { names, outputs, kind }) = &self.handlers else { return Ok(()) };
        let input = InputSpec::parse(text, *kind, *outputs, &NamesResolver(names))
            .map_err(|e| ArgError::new(e).at(format!("input spec {n}")))?;
        self.tables.change_all(|table| table.set_input(self.zone, n, input.clone()));
        Ok(())
    }

    /// Whether this is the state, one of all workers', that handlers change.
    pub(super) fn is_primary(&self) -> bool {
        self.handlers.is_some()
    }

    /// Changes the tables, on one worker only.
    fn change_once(&self, change: impl FnMut(&mut Table)) {
        if self.handlers.is_some() {
            self.tables.change_all(change);
        }
    }

    /// Removes expired mappings.
    fn expire_all(&self, ask: &ReadRequest) {
        let now = ask.now.nanos();
        self.tables.change_all(|table| while !table.expire(now, usize::MAX) {});
    }

    /// The sum of a count over all tables, after the removal of expired mappings.
    fn sum_current(&self, ask: &ReadRequest, count: impl FnMut(&Table) -> u64) -> Value {
        self.expire_all(ask);
        Value::common(self.tables.sum(count))
    }

    /// The actions of inputs with the mappings of all tables, after the removal of expired ones.
    fn pattern_lines(&self, ask: &ReadRequest, only: Option<usize>) -> Value {
        self.expire_all(ask);
        let counts = self.tables.sums(|table| table.input_counts(self.zone));
        Value::common(self.table.read(|table| table.patterns(self.zone, only, &counts)))
    }

    fn listing(&self, ask: &ReadRequest, protocol: Option<u8>) -> Value {
        let now = ask.now.nanos();
        let list = |table: &Table, from: u64| table.listing(self.zone, protocol, now, from);
        let (text, next) = self.tables.read_part(ask.from, list).unwrap_or_default();
        TextChunk { text, next, finish: TextChunk::as_it_is }.into()
    }

    /// The rewritten flow of `SADDR SPORT DADDR DPORT` of TCP, in the same form.
    fn lookup(&self, ask: &ReadRequest) -> Value {
        let words: Vec<&str> = ask.param.split_whitespace().collect();
        let address = |text: &str| Ipv4Addr::from_arg(text, &self.handlers.as_ref()?.names).ok();
        let flow = || {
            let [src, src_port, dst, dst_port] = words[..] else { return None };
            let src = (address(src)?, src_port.parse().ok()?);
            Some(Tuple4::new(src, (address(dst)?, dst_port.parse().ok()?), ip_proto::TCP))
        };
        let format = |it: Tuple4| {
            let (src, dst) = (it.src(), it.dst());
            format!("{} {} {} {}", src.0, src.1, dst.0, dst.1)
        };
        self.expire_all(ask);
        let found = flow().and_then(|flow| self.tables.find(|table| table.lookup(self.zone, flow)));
        Value::common(found.map(format))
    }
}

/// Handlers of rewriters of TCP and UDP, with a table each.
pub struct TcpUdpTables;
/// Handlers of rewriters of TCP.
pub struct TcpTable;
/// Handlers of all other rewriters.
pub struct SingleTable;

const TABLE: &str = "All mappings in both directions: the flow before and after rewriting, both \
                     outputs, with a star at that of the direction, the input on which the flow \
                     began, and the seconds until the mapping expires.";

impl TableHandlers for TcpUdpTables {
    const READS: &'static [ReadHandler<RewriterState<Self>>] = &[
        ReadHandler::new("tcp_table", TABLE, |it, ask| it.listing(ask, Some(ip_proto::TCP))),
        ReadHandler::new("udp_table", TABLE, |it, ask| it.listing(ask, Some(ip_proto::UDP))),
        ReadHandler::new("tcp_mappings", OLD_NAME, |it, ask| it.listing(ask, Some(ip_proto::TCP))),
        ReadHandler::new("udp_mappings", OLD_NAME, |it, ask| it.listing(ask, Some(ip_proto::UDP))),
        ReadHandler::new("tcp_lookup", LOOKUP, |it, ask| it.lookup(ask)),
    ];
}

impl TableHandlers for TcpTable {
    const READS: &'static [ReadHandler<RewriterState<Self>>] = &[
        ReadHandler::new("table", TABLE, |it, ask| it.listing(ask, None)),
        ReadHandler::new("mappings", OLD_NAME, |it, ask| it.listing(ask, None)),
        ReadHandler::new("lookup", LOOKUP, |it, ask| it.lookup(ask)),
    ];
}

impl TableHandlers for SingleTable {
    const READS: &'static [ReadHandler<RewriterState<Self>>] = &[
        ReadHandler::new("table", TABLE, |it, ask| it.listing(ask, None)),
        ReadHandler::new("mappings", OLD_NAME, |it, ask| it.listing(ask, None)),
    ];
}

const OLD_NAME: &str = "The same as the table, by the older name of the handler in Click.";
const LOOKUP: &str = "The rewritten flow of `SADDR SPORT DADDR DPORT`, in the same form; empty if the \
                      flow has no mapping.";
