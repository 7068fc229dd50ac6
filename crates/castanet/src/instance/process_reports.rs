//! Reports of tenants' processes about their elements, in the answers to clients that ask about all elements.

use super::handlers::{METRICS, lease};
use super::service::{InstanceService, MOST_OF_A_STEP};
use super::tenants::InstanceTenants;
use crate::control_queue::ControlSender;
use crate::log::{Level, message};
use crate::observe::drops::{self, DropCount};
use crate::observe::snapshot::{ElementTotals, Snapshot};
use crate::tenants::{OmittedReport, ProcessReports, TenantConfigurations};
use castanet_element::class::Library;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{InstanceRequest, RequestKind};
use castanet_runtime::router::Router;
use castanet_tenants::Tenant;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time after which a thread goes on without reports, if the control thread does not tell it to.
const PATIENCE: Duration = Duration::from_secs(2);

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
    /// The kind that the value of a handler of the instance needs, and the parameter with which processes read theirs.
    fn of(handler: &str, param: &[u8]) -> Option<(ReportKind, &'static [u8])> {
        let is_sampled = || lease(&String::from_utf8_lossy(param)).is_some();
        match handler {
            "snapshot" if is_sampled() => Some((ReportKind::Totals, b"sample")),
            "snapshot" | METRICS => Some((ReportKind::Totals, b"")),
            "drop_report" => Some((ReportKind::Drops, b"")),
            _ => None,
        }
    }
}

/// The reports of the processes of all tenants.
#[derive(Default)]
pub(super) struct ElementReports {
    totals: ProcessReports<ElementTotals, ReportClient>,
    drops: ProcessReports<DropCount, ReportClient>,
    /// Clients that wait no longer, and have no answer yet.
    released: VecDeque<ReportClient>,
    /// Processes of tenants of the system that were printed.
    omitted: BTreeSet<OmittedReport>,
}

impl ElementReports {
    /// Has a client wait for reports; returns it if there is nothing to wait for.
    fn wait(
        &mut self,
        router: &mut Router,
        tenants: (&TenantConfigurations, &Library),
        (kind, param): (ReportKind, &[u8]),
        client: ReportClient,
    ) -> Option<ReportClient> {
        match kind {
            ReportKind::Totals => self.totals.wait(router, tenants, param, client),
            ReportKind::Drops => self.drops.wait(router, tenants, param, client),
        }
    }

    /// Takes reports that have come. Returns some of the clients that wait no longer, and the time at which there may
    /// be others.
    fn step(&mut self, now: Time) -> (Vec<ReportClient>, Option<Time>) {
        let (clients, due) = self.totals.step(now);
        let (others, other_due) = self.drops.step(now);
        self.released.extend(clients.into_iter().chain(others));
        let some = self.released.len().min(MOST_OF_A_STEP);
        let clients = self.released.drain(..some).collect();
        let left = (!self.released.is_empty()).then_some(now);
        (clients, [left, due, other_due].into_iter().flatten().min())
    }

    /// Prints which processes of these tenants have no report, each once for each reason.
    fn print_omitted(&mut self, tenants: &[Tenant]) {
        let mut all = self.totals.take_omitted();
        all.extend(self.drops.take_omitted());
        if all.is_empty() {
            return;
        }
        self.omitted.retain(|it| tenants.iter().any(|tenant| tenant.name == it.tenant));
        for it in all {
            let OmittedReport { tenant, why } = &it;
            let text = format!(
                "castanet: tenant {tenant}: reports about all elements are without its own: its process {why}"
            );
            if self.omitted.insert(it) {
                message(Level::Warning, &text);
            }
        }
    }
}

impl InstanceTenants {
    /// The totals that processes have reported.
    pub(super) fn process_totals(&self, router: &Router) -> Vec<ElementTotals> {
        self.reports.totals.records(router)
    }
}

impl InstanceService {
    /// Has a request wait until processes have reported, if its answer needs that; else returns it.
    pub(super) fn wait_for_reports(
        &mut self,
        router: &mut Router,
        request: InstanceRequest,
    ) -> Option<InstanceRequest> {
        let reader = self.reader();
        let Some(tenants) = &mut self.tenants else { return Some(request) };
        let RequestKind::Read(handler, param) = request.kind() else { return Some(request) };
        let Some(wanted) = ReportKind::of(handler, param) else { return Some(request) };
        let client = ReportClient::Socket(request);
        let source = (&tenants.configurations, &reader.library);
        match tenants.reports.wait(router, source, wanted, client) {
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
        let reader = self.reader();
        let tenants = self.tenants.as_mut()?;
        let (sender, receiver) = oneshot::channel();
        let client = ReportClient::Thread(sender);
        let source = (&tenants.configurations, &reader.library);
        let left = tenants.reports.wait(router, source, (kind, b""), client);
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
        tenants.reports.print_omitted(&tenants.configurations.system().tenants);
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
            all.extend(it.reports.drops.records(router));
        }
        Ok(all)
    }
}

/// Waits until processes of tenants have reported, or for as long as they have to. Returns whether the control thread
/// answers.
pub(super) async fn processes_reported(
    control: &ControlSender<InstanceService>,
    kind: ReportKind,
) -> bool {
    let reported = control.ask(move |service, router| service.collect_reports(router, kind)).await;
    let Some(reported) = reported else { return false };
    if let Some(reported) = reported {
        // Reports that have not come by then are left out.
        _ = timeout(PATIENCE, reported).await;
    }
    true
}
