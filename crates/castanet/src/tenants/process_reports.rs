//! Reports of tenants' processes about their elements, for clients that ask about all elements.

use super::configurations::TenantConfigurations;
use super::process_calls::{CallFailure, GONE, ProcessReply, call_process};
use super::process_records::{ElementRecord, OwnElements};
use castanet_element::class::Library;
use castanet_element::time::Time;
use castanet_io::control::remote::{RemoteReply, read_request};
use castanet_runtime::router::Router;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time that processes have to report. Clients that ask about all elements wait no longer for one that does not answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// The process has not reported within [`PATIENCE`].
const LATE: &str = "does not report within 500 ms";
/// The process has answered that it has no report, for a reason of its own.
const REFUSED: &str = "refuses to report; a report may have 1 MB";
/// The process has sent something else than a report.
const NO_REPORT: &str = "answers with something else than a report";
/// Time for which reports serve further clients.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The report of a process: the number of the round, the tenant, and the records, or the reason why there are none, as
/// the end of a sentence about the process.
type Report<T> = (u64, String, Result<Vec<T>, String>);

/// A process that runs and has no report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct OmittedReport {
    /// The tenant.
    pub(crate) tenant: String,
    /// The reason, as the end of a sentence about the process.
    pub(crate) why: String,
}

/// The records of one kind that the processes of all tenants have reported, and the clients that wait for them.
pub(crate) struct ProcessReports<T, C> {
    sender: Sender<Report<T>>,
    replies: Receiver<Report<T>>,
    /// The number of the last round of calls, and the parameter with which it reads the handler.
    round: (u64, Vec<u8>),
    /// The tenants whose processes have not reported in this round.
    missing: BTreeSet<String>,
    /// The end of the round, while it lasts.
    deadline: Option<Time>,
    /// The time at which the last round was over.
    made: Option<Time>,
    /// By tenant, of this round, while it lasts.
    arriving: BTreeMap<String, Vec<T>>,
    /// By tenant, of the last round that is over.
    records: BTreeMap<String, Vec<T>>,
    waiting: Vec<C>,
    /// Processes without a report since [`ProcessReports::take_omitted`].
    omitted: Vec<OmittedReport>,
}

impl<T, C> Default for ProcessReports<T, C> {
    fn default() -> ProcessReports<T, C> {
        let (sender, replies) = channel();
        ProcessReports {
            sender,
            replies,
            round: (0, Vec::new()),
            missing: BTreeSet::new(),
            deadline: None,
            made: None,
            arriving: BTreeMap::new(),
            records: BTreeMap::new(),
            waiting: Vec::new(),
            omitted: Vec::new(),
        }
    }
}

impl<T: ElementRecord, C> ProcessReports<T, C> {
    /// Has a client wait until the processes have reported; returns it if there is nothing to wait for. The handler is
    /// read with this parameter.
    pub(crate) fn wait(
        &mut self,
        router: &mut Router,
        (configurations, library): (&TenantConfigurations, &Library),
        param: &[u8],
        client: C,
    ) -> Option<C> {
        let now = router.clock().now();
        let is_young = self.made.is_some_and(|made| now - made < MAX_AGE);
        let is_fresh = is_young && (param.is_empty() || self.round.1 == param);
        if self.deadline.is_none() && !is_fresh {
            self.begin(router, (configurations, library), param);
        }
        match self.deadline {
            Some(_) => {
                self.waiting.push(client);
                None
            }
            None => Some(client),
        }
    }

    /// Begins a round of calls, of all processes that run.
    fn begin(
        &mut self,
        router: &mut Router,
        (configurations, library): (&TenantConfigurations, &Library),
        param: &[u8],
    ) {
        self.round = (self.round.0 + 1, param.to_vec());
        let round = self.round.0;
        let request = read_request(T::HANDLER, param);
        self.arriving.clear();
        self.missing.clear();
        for (number, tenant) in configurations.system().tenants.iter().enumerate() {
            let graph = configurations.graph_of(number);
            if tenant.process.is_none() || graph.elements.is_empty() {
                continue;
            }
            let (sender, name) = (self.sender.clone(), tenant.name.clone());
            let own = OwnElements::of(tenant, graph, library);
            // Called by the thread of the process's supervisor, on which long reports cost clients of others nothing.
            let recipient = move |reply: ProcessReply| {
                let records = reply.and_then(|reply| match reply {
                    RemoteReply::Value(text) => {
                        Ok(T::accept(T::parse(&text).ok_or(NO_REPORT)?, &own))
                    }
                    // The reason is not passed on: the process may invent any number of them.
                    RemoteReply::Failure { .. } => Err(REFUSED.to_owned()),
                    RemoteReply::Success => Err(NO_REPORT.to_owned()),
                });
                // The instance may have ended.
                _ = sender.send((round, name, records));
            };
            match call_process(router, &tenant.name, (&request, PATIENCE), recipient) {
                Ok(()) => _ = self.missing.insert(tenant.name.clone()),
                Err(CallFailure::Refused(why)) => self.omit(tenant.name.clone(), &why),
                // There is nothing to report.
                Err(CallFailure::NotRunning(_)) => {}
            }
        }
        match self.missing.is_empty() {
            true => self.finish(router.clock().now()),
            false => self.deadline = Some(router.clock().now() + PATIENCE),
        }
    }

    /// Ends the round.
    fn finish(&mut self, now: Time) {
        (self.deadline, self.made) = (None, Some(now));
        for tenant in std::mem::take(&mut self.missing) {
            self.omit(tenant, LATE);
        }
        self.records = std::mem::take(&mut self.arriving);
    }

    /// Takes reports that have come. Returns the clients that wait no longer, and the time at which the others have
    /// waited for long enough.
    pub(crate) fn step(&mut self, now: Time) -> (Vec<C>, Option<Time>) {
        while let Ok((round, tenant, records)) = self.replies.try_recv() {
            // Late reports are of earlier rounds.
            if round == self.round.0 && self.missing.remove(&tenant) {
                let mut records = records.unwrap_or_else(|why| {
                    self.omit(tenant.clone(), &why);
                    Vec::new()
                });
                records.iter_mut().for_each(|it| it.set_time(now.0));
                self.arriving.insert(tenant, records);
            }
        }
        match self.deadline {
            Some(deadline) if self.missing.is_empty() || deadline <= now => {
                self.finish(now);
                (std::mem::take(&mut self.waiting), None)
            }
            deadline => (Vec::new(), deadline),
        }
    }

    /// Notes that a process has no report, unless it has ended.
    fn omit(&mut self, tenant: String, why: &str) {
        if why != GONE {
            self.omitted.push(OmittedReport { tenant, why: why.to_owned() });
        }
    }

    /// Processes that had no report in the rounds since the last call.
    pub(crate) fn take_omitted(&mut self) -> Vec<OmittedReport> {
        std::mem::take(&mut self.omitted)
    }

    /// The records of the last round, under the names that the elements would have without processes.
    pub(crate) fn records(&self, router: &Router) -> Vec<T> {
        let all = self.records.values().flatten();
        // The coordinator's own elements of a name, such as `TENANT/process`, come first.
        all.filter(|it| router.graph().find(it.element()).is_none()).cloned().collect()
    }
}
