//! An exporter with the socket to its collector.

use super::collector::{CollectorAddress, CollectorSocket};
use super::metrics;
use castanet_element::prelude::*;
use castanet_kit::ipfix::{Delivery, Exporter, ExporterSettings, Send};
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

    /// What was sent and lost so far.
    fn statistics(&self) -> ExporterStatistics {
        self.exporter.as_ref().map(Exporter::statistics).unwrap_or_default()
    }

    /// Has `act` give records to the exporter. Messages go to the collector, and to `emit`, which
    /// says whether it could take a message. Reports the first error of the socket.
    pub fn export(
        &mut self,
        cx: &mut Cx,
        mut emit: Option<impl FnMut(&mut Cx, &[u8]) -> bool>,
        act: impl FnOnce(&mut Exporter, Send),
    ) {
        let ExportSession { socket, exporter: Some(exporter) } = self else { return };
        act(exporter, &mut |message| {
            let is_emitted = emit.as_mut().is_none_or(|emit| emit(cx, message));
            match socket {
                Some(socket) => {
                    let delivery = socket.send(message);
                    Delivery { is_sent: delivery.is_sent && is_emitted, ..delivery }
                }
                None => Delivery { is_sent: is_emitted, was_refused: false },
            }
        });
        if let Some(error) = socket.as_mut().and_then(CollectorSocket::take_error) {
            cx.report(&error);
        }
    }
}
