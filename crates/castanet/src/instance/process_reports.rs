//! What clients that ask about all elements are told of those in processes of tenants.

use super::handlers::METRICS;
use super::service::InstanceService;
use super::tenants::InstanceTenants;
use crate::control_queue::ControlSender;
use crate::observe::drops::{self, DropCount};
use crate::observe::snapshot::{ElementTotals, Snapshot};
use crate::tenants::{ProcessReports, TenantConfigurations};
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{InstanceRequest, RequestKind};
use castanet_runtime::router::Router;
use std::time::Duration;
use tokio::sync::oneshot;

/// A client that waits for the reports of processes.
pub(super) enum ReportClient {
    /// One at the control socket.
    Socket(InstanceRequest),
    /// Another thread.
    Thread(oneshot::Sender<()>),
}

/// A kind of reports.
#[derive(Clone, Copy)]
pub(super) enum ReportKind {
    /// Totals of elements.
    Totals,
    /// Dropped packets.
    Drops,
}

impl ReportKind {
    /// The kind that the value of a handler of the instance needs.
    fn of(handler: &str) -> Option<ReportKind> {
        match handler {
            "snapshot" | METRICS => Some(ReportKind::Totals),
            "drop_report" => Some(ReportKind::Drops),
            _ => None,
        }
    }
}

/// The reports of the processes of all tenants.
#[derive(Default)]
pub(super) struct ElementReports {
    totals: ProcessReports<ElementTotals, ReportClient>,
    drops: ProcessReports<DropCount, ReportClient>,
}

impl ElementReports {
    /// Has a client wait for reports; returns it if there is nothing to wait for.
    fn wait(
        &mut self,
        router: &mut Router,
        configurations: &TenantConfigurations,
        (kind, param): (ReportKind, &[u8]),
        client: ReportClient,
    ) -> Option<ReportClient> {
        match kind {
            ReportKind::Totals => self.totals.wait(router, configurations, param, client),
            ReportKind::Drops => self.drops.wait(router, configurations, param, client),
        }
    }

    /// Takes reports that have come. Returns the clients that wait no longer, and the time at which others have
    /// waited for long enough.
    fn step(&mut self, now: Time) -> (Vec<ReportClient>, Option<Time>) {
        let (mut clients, due) = self.totals.step(now);
        let (others, other_due) = self.drops.step(now);
        clients.extend(others);
        (clients, due.into_iter().chain(other_due).min())
    }
}

impl InstanceTenants {
    /// The totals that processes have reported.
    pub(super) fn process_totals(&self, router: &Router) -> Vec<ElementTotals> {
        self.reports.totals.records(router, &self.configurations)
    }
}

impl InstanceService {
    /// Has a request wait until processes have reported, if its answer needs that; else returns it.
    pub(super) fn wait_for_reports(
        &mut self,
        router: &mut Router,
        request: InstanceRequest,
    ) -> Option<InstanceRequest> {
        let Some(tenants) = &mut self.tenants else { return Some(request) };
        let RequestKind::Read(handler, param) = request.kind() else { return Some(request) };
        let Some(kind) = ReportKind::of(handler) else { return Some(request) };
        // The parameter of the metrics is their format.
        let param = if handler == METRICS { Vec::new() } else { param.to_vec() };
        let client = ReportClient::Socket(request);
        match tenants.reports.wait(router, &tenants.configurations, (kind, &param), client) {
            Some(ReportClient::Socket(request)) => Some(request),
            _ => None,
        }
    }

    /// Begins to collect reports for another thread; the end of that is told by the result, if there is anything
    /// to wait for.
    fn collect_reports(
        &mut self,
        router: &mut Router,
        kind: ReportKind,
    ) -> Option<oneshot::Receiver<()>> {
        let tenants = self.tenants.as_mut()?;
        let (sender, receiver) = oneshot::channel();
        let client = ReportClient::Thread(sender);
        let left = tenants.reports.wait(router, &tenants.configurations, (kind, b""), client);
        left.is_none().then_some(receiver)
    }

    /// Answers clients that have waited for reports; returns the time at which others have waited for long enough.
    pub(super) fn answer_reported(&mut self, router: &mut Router) -> Option<Time> {
        let tenants = self.tenants.as_mut()?;
        if router.is_replaced() {
            // The new configuration is put in place before the next step.
            return Some(router.clock().now());
        }
        let (clients, due) = tenants.reports.step(router.clock().now());
        for client in clients {
            match client {
                ReportClient::Socket(request) => self.answer_reported_request(router, request),
                // The thread may wait no longer.
                ReportClient::Thread(sender) => _ = sender.send(()),
            }
        }
        due
    }

    /// All totals: those of the router, and those that processes have reported.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(super) fn snapshot(
        &self,
        router: &mut Router,
        lease: Option<Duration>,
    ) -> Result<Snapshot, ArgError> {
        let mut snapshot = Snapshot::take(router, lease)?;
        let tenants = self.tenants.iter();
        snapshot.elements.extend(tenants.flat_map(|it| it.process_totals(router)));
        Ok(snapshot)
    }

    /// All drops: those of the router, and those that processes have reported.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(super) fn drops(&self, router: &mut Router) -> Result<Vec<DropCount>, ArgError> {
        let mut all = drops::report(router)?;
        if let Some(it) = &self.tenants {
            all.extend(it.reports.drops.records(router, &it.configurations));
        }
        Ok(all)
    }
}

/// Waits until processes of tenants have reported, or for as long as they have to.
pub(super) async fn processes_reported(control: &ControlSender<InstanceService>, kind: ReportKind) {
    let reported = control.ask(move |service, router| service.collect_reports(router, kind)).await;
    if let Some(Some(reported)) = reported {
        // Without an answer the instance ends.
        _ = reported.await;
    }
}
