//! Export of connections by IPFIX: one worker sends the records of all.

use crate::connections::Connections;
use castanet_element::prelude::*;
use castanet_io::ipfix::{CollectorAddress, ExportSession};
use castanet_kit::ipfix::ExporterSettings;
use castanet_wire::ipfix::{CONNECTION_TEMPLATES, EndReason};

/// How often records are sent.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// One part of all connections is looked at each time, of so many.
const PARTS: usize = 100;
/// The least number of connections that are looked at each time.
const LEAST: usize = 256;

/// The arguments of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExportArgs {
    pub(crate) collector: CollectorAddress,
    pub(crate) domain: u32,
    /// Time after which connections that go on are exported.
    pub(crate) active_timeout: Duration,
}

/// The progress of the worker that exports; its session is beside it.
#[derive(Default)]
pub(crate) struct Export {
    args: Option<ExportArgs>,
    /// The slots of both tables that are looked at next.
    position: usize,
}

impl Export {
    /// Opens the session that the arguments ask for, if it is another than the present one.
    pub(crate) fn open(
        &mut self,
        session: &mut ExportSession,
        args: Option<ExportArgs>,
    ) -> Result<(), ArgError> {
        let key = |it: ExportArgs| (it.collector, it.domain);
        if args.map(key) != self.args.map(key) {
            *session = match args {
                Some(ExportArgs { collector, domain, .. }) => {
                    let settings = ExporterSettings { domain, ..ExporterSettings::default() };
                    ExportSession::open(Some(collector), settings, CONNECTION_TEMPLATES)
                        .map_err(|error| error.at("COLLECTOR"))?
                }
                None => ExportSession::default(),
            };
        }
        self.args = args;
        Ok(())
    }

    /// Whether connections are exported.
    pub(crate) fn is_on(&self) -> bool {
        self.args.is_some()
    }

    /// Sends the records of connections that have ended, and of some whose active timeout is over.
    pub(crate) fn step(
        &mut self,
        session: &mut ExportSession,
        connections: &RwShared<Connections>,
        cx: &mut Cx,
    ) {
        let Some(args) = self.args else { return };
        let now = cx.now().nanos();
        let timeout = u64::try_from(args.active_timeout.as_nanos()).unwrap_or(u64::MAX);
        let (ended, lost) = match connections.read(Connections::has_records) {
            true => connections.change(Connections::take_records),
            false => Default::default(),
        };
        let position = &mut self.position;
        session.export(cx, None, |exporter, transport| {
            exporter.count_lost(lost);
            ended.iter().for_each(|record| exporter.add(record, now, transport));
            connections.read(|all| {
                let count = (all.extent() / PARTS).max(LEAST);
                let due = (now.saturating_sub(timeout), EndReason::ActiveTimeout);
                let slots = (*position, position.saturating_add(count));
                all.export_due(slots, due, &mut |record| exporter.add(record, now, transport));
                *position = if slots.1 < all.extent() { slots.1 } else { 0 };
            });
            exporter.keep_alive(now, transport);
        });
    }

    /// Sends the records of all connections, which end by force.
    pub(crate) fn end(
        &mut self,
        session: &mut ExportSession,
        connections: &RwShared<Connections>,
        cx: &mut Cx,
    ) {
        self.step(session, connections, cx);
        let now = cx.now().nanos();
        session.export(cx, None, |exporter, transport| {
            connections.read(|all| {
                let (slots, due) = ((0, all.extent()), (now, EndReason::ForcedEnd));
                all.export_due(slots, due, &mut |record| exporter.add(record, now, transport));
            });
            exporter.flush(now, transport);
        });
    }
}
