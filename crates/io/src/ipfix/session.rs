//! An exporter with the socket to its collector.

use super::collector::{CollectorAddress, CollectorSocket};
use super::metrics;
use castanet_element::prelude::*;
use castanet_kit::ipfix::{Exporter, ExporterSettings, Transport};
use castanet_wire::ipfix::{ExporterStatistics, Template};

/// A transport session: an exporter, and the socket to its collector if it has one.
#[derive(Default)]
pub struct ExportSession {
    socket: Option<CollectorSocket>,
    exporter: Option<Exporter>,
}

#[handlers]
impl ExportSession {
    /// Flow records in messages that were sent.
    #[read]
    #[metric(metrics::RECORDS)]
    fn exported_records(&self) -> u64 {
        self.statistics().records
    }

    /// Messages that were sent.
    #[read]
    #[metric(metrics::MESSAGES)]
    fn exported_messages(&self) -> u64 {
        self.statistics().messages
    }

    /// Flow records that could not be sent, or whose message the collector's host refused.
    #[read]
    #[metric(metrics::LOST)]
    fn lost_records(&self) -> u64 {
        self.statistics().lost_records
    }
}

impl ExportSession {
    /// Opens the socket to a collector, and begins to export records of these templates.
    ///
    /// # Errors
    /// The system has no socket.
    pub fn open(
        collector: Option<CollectorAddress>,
        settings: ExporterSettings,
        templates: &'static [Template],
    ) -> Result<ExportSession, ArgError> {
        let socket = collector.map(CollectorSocket::open).transpose()?;
        Ok(ExportSession { socket, exporter: Some(Exporter::new(settings, templates)) })
    }

    /// The collector, if the session has one.
    pub fn collector(&self) -> Option<CollectorAddress> {
        self.socket.as_ref().map(CollectorSocket::collector)
    }

    /// Returns the counts of what was sent and lost so far.
    fn statistics(&self) -> ExporterStatistics {
        self.exporter.as_ref().map(Exporter::statistics).unwrap_or_default()
    }

    /// Changes the parameters of the exporter; its observation domain stays.
    pub fn configure(&mut self, settings: ExporterSettings) {
        if let Some(exporter) = &mut self.exporter {
            exporter.configure(settings);
        }
    }

    /// Has `act` give records to the exporter. Messages go to the collector, and to `emit`, which
    /// says whether it could take a message. Reports the first error of the socket.
    pub fn export(
        &mut self,
        cx: &mut Cx,
        emit: Option<Emit>,
        act: impl FnOnce(&mut Exporter, &mut dyn Transport),
    ) {
        let ExportSession { socket, exporter: Some(exporter) } = self else { return };
        act(exporter, &mut Outlets { socket, emit, cx });
        if let Some(error) = socket.as_mut().and_then(CollectorSocket::take_error) {
            cx.report(&error);
        }
    }
}

/// Emits a message as a packet; returns whether there was a frame for it.
pub type Emit = fn(&mut Cx, &[u8]) -> bool;

/// All places that a message goes to.
struct Outlets<'s, 'c, 'x> {
    socket: &'s mut Option<CollectorSocket>,
    emit: Option<Emit>,
    cx: &'c mut Cx<'x>,
}

impl Transport for Outlets<'_, '_, '_> {
    fn send(&mut self, message: &[u8]) -> bool {
        let is_emitted = self.emit.is_none_or(|emit| emit(self.cx, message));
        self.socket.as_mut().is_none_or(|socket| socket.send(message)) && is_emitted
    }

    fn was_refused(&mut self) -> bool {
        self.socket.as_mut().is_some_and(Transport::was_refused)
    }
}
