//! The tenants of an instance: their configurations are installed and removed, and their clients answered.

use super::client_budget::{ClientBudget, thread_time};
use super::handlers::{self, INSTANCE, InstanceDescription};
use super::moves::TenantMoves;
use super::process_reports::ElementReports;
use super::service::{InstanceService, MOST_OF_A_STEP};
use crate::commands::CommandError;
use crate::load::LoadedConfiguration;
use crate::replace::ReplacementReader;
use crate::tenants::{
    InstallCounts, LoadedSystem, PreparedSockets, StoredText, TenantConfigurations, TenantFaults,
    TenantReport, TenantSockets, TenantView, is_of_process, tenant_drops, tenant_reports,
    tenant_snapshot,
};
use crate::terminal::{complain, inform};
use castanet_element::class::Library;
use castanet_element::control::ControlWaker;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{DeferredAnswer, InstanceRequest, RequestKind};
use castanet_lang::Diagnostics;
use castanet_runtime::router::{ErrorStyle, Router};
use castanet_tenants::check_write;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which commands beyond a tenant's quota wait at least.
const QUOTA_PAUSE: Duration = Duration::from_millis(10);

/// The handlers of the instance that a tenant's clients have.
const TENANT_HANDLERS: &[(&str, char)] = &[
    (INSTANCE, 'r'),
    ("snapshot", 'r'),
    ("drop_report", 'r'),
    // The configuration of the tenant's file again.
    ("reload", 'w'),
    // Removes the tenant's configuration.
    ("terminate", 'w'),
];

/// The handlers of the instance that a tenant's clients have, each with `r` or `w`.
pub(crate) fn tenant_handlers() -> impl Iterator<Item = (&'static str, char)> {
    TENANT_HANDLERS.iter().copied()
}

/// The tenants of an instance.
pub(super) struct InstanceTenants {
    pub(super) configurations: TenantConfigurations,
    pub(super) moves: TenantMoves,
    pub(super) faults: TenantFaults,
    /// Those of processes about their elements.
    pub(super) reports: ElementReports,
    sockets: TenantSockets,
    counts: BTreeMap<String, InstallCounts>,
    /// The commands of all tenants' clients together.
    budget: ClientBudget,
}

/// A change of a tenant's configuration.
#[derive(Clone, Copy)]
pub(super) enum TenantChange<'a> {
    /// This text takes its place.
    Install(&'a str),
    /// None takes its place.
    Remove,
    /// That of the tenant's file takes its place.
    Restore,
}

impl InstanceTenants {
    /// Tenants with these configurations, whose sockets are open. Sockets that cannot be opened are errors in `found`.
    ///
    /// # Errors
    /// The address for tenants that come cannot be opened.
    pub(super) fn new(
        router: &Router,
        configurations: TenantConfigurations,
        found: &mut Diagnostics,
    ) -> Result<InstanceTenants, String> {
        let (waker, now) = (router.service_waker(), router.clock().now());
        let mut sockets = TenantSockets::default();
        let prepared = sockets.prepare(&configurations, &waker, now, found);
        sockets.exchange(prepared, now)?;
        Ok(InstanceTenants {
            moves: TenantMoves::new(router, &configurations)?,
            configurations,
            faults: TenantFaults::default(),
            reports: ElementReports::default(),
            sockets,
            counts: BTreeMap::new(),
            budget: ClientBudget::new(now),
        })
    }

    /// Opens the sockets of a system file that was read again, beside those that are open. Sockets that cannot be
    /// opened are errors in `found`.
    pub(super) fn prepare_sockets(
        &self,
        configurations: &TenantConfigurations,
        waker: &ControlWaker,
        now: Time,
        found: &mut Diagnostics,
    ) -> PreparedSockets {
        self.sockets.prepare(configurations, waker, now, found)
    }

    /// Goes on with the configurations of a system file that was read again, and with its sockets.
    pub(super) fn reloaded(
        &mut self,
        router: &Router,
        configurations: TenantConfigurations,
        sockets: PreparedSockets,
    ) {
        self.configurations = configurations;
        let now = router.clock().now();
        self.faults.all_started(now);
        if let Err(errors) = self.sockets.exchange(sockets, now) {
            complain(format_args!("castanet: {errors}"));
        }
    }

    /// The tenants, as clients list them.
    pub(super) fn tenant_reports(&self, router: &mut Router) -> Vec<TenantReport> {
        let sources = (&self.configurations, &self.sockets);
        tenant_reports(router, sources, &self.counts, &self.faults)
    }

    /// Prepares the change of a configuration by the operator.
    ///
    /// # Errors
    /// There is no such tenant, or the configuration is wrong.
    pub(super) fn change(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        name: &str,
        change: TenantChange<'_>,
    ) -> Result<(), ArgError> {
        let tenant = self.number_of(name)?;
        self.prepare(router, reader, tenant, change, None)
    }

    /// The number of the tenant of a name.
    ///
    /// # Errors
    /// There is no such tenant.
    pub(super) fn number_of(&self, name: &str) -> Result<usize, ArgError> {
        if let Some((number, _)) = self.configurations.find(name) {
            return Ok(number);
        }
        let names = self.configurations.system().tenants.iter().map(|it| it.name.as_str());
        let near = castanet_lang::nearest(name, names);
        let help = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        Err(ArgError::new(format!("there is no tenant '{name}'{help}")))
    }

    /// As [`InstanceTenants::prepare_change`], for a tenant that does not move.
    fn prepare(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        tenant: usize,
        change: TenantChange<'_>,
        own_quota: Option<u32>,
    ) -> Result<(), ArgError> {
        self.check_stays(&self.configurations.system().tenants[tenant].name)?;
        self.prepare_change(router, reader, tenant, change, own_quota)
    }

    /// Prepares the change of a configuration. `own_quota` is as many elements as
    /// configurations of the tenant's own clients may have, who get errors about its own text only; `None` for the
    /// operator.
    pub(super) fn prepare_change(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        tenant: usize,
        change: TenantChange<'_>,
        own_quota: Option<u32>,
    ) -> Result<(), ArgError> {
        let (before, library) = (&self.configurations, &reader.library);
        let loaded = match change {
            TenantChange::Install(text) => before.with_text(tenant, text, own_quota, library),
            TenantChange::Remove => before.with_text(tenant, "", None, library),
            TenantChange::Restore => before.with_file(tenant, library),
        };
        let LoadedSystem { configuration, configurations: next, .. } = loaded;
        let own_text = own_quota.and_then(|_| next.slot_of(tenant));
        let name = next.system().tenants[tenant].name.clone();
        let stored = next.store().map(|store| store.stage(&name, next.installed_text(tenant)));
        let stored = stored.transpose().map_err(ArgError::new)?;
        let prepared = router.replace_with(|build| reader.build(configuration, own_text, build));
        let counts = self.counts.entry(name.clone()).or_default();
        if let Err(error) = prepared {
            counts.refused += u64::from(own_quota.is_some());
            return Err(crate::confine::explained(error));
        }
        if let Some(Err(error)) = stored.map(StoredText::commit) {
            complain(format_args!("castanet: tenant {name}: {error}"));
        }
        self.faults.started(&name, router.clock().now());
        counts.installs += 1;
        counts.own_installs += u64::from(own_quota.is_some());
        self.configurations = next;
        let (origin, elements) =
            (self.configurations.origin_of(tenant), self.configurations.graph_of(tenant));
        let elements = elements.elements.len();
        inform(format_args!("castanet: tenant {name}: {origin}, {elements} elements"));
        Ok(())
    }

    /// Answers some commands of tenants' clients; returns the time until others are looked at, if any may wait.
    fn answer_clients(
        &mut self,
        router: &mut Router,
        service: &InstanceService,
    ) -> Option<Duration> {
        self.budget.fill(router);
        let before = thread_time();
        let mut pause = Some(Duration::ZERO);
        for _ in 0..MOST_OF_A_STEP {
            if router.is_replaced() {
                // The new configuration is put in place before the next step.
                break;
            }
            if !self.budget.allows() {
                pause = Some(self.budget.pause());
                break;
            }
            let now = router.clock().now();
            let mut is_limited = false;
            let Some((at, request)) = self.sockets.next_command(now, &mut is_limited) else {
                pause = is_limited.then_some(QUOTA_PAUSE);
                break;
            };
            self.budget.charge();
            self.answer(router, service, at, request);
        }
        self.budget.charge_time(before);
        pause
    }

    /// The tenant with a process of its own whose handler a request of the operator is about, and the handler's name
    /// there; `None` if the coordinator answers it.
    pub(super) fn process_handler(
        &self,
        router: &Router,
        request: &InstanceRequest,
    ) -> Option<(String, String)> {
        let kind = request.kind();
        let path = kind.handler()?;
        let (name, handler) = path.split_once('/')?;
        self.configurations.find(name).filter(|it| self.has_process(it.0))?;
        // The coordinator's own elements of the name, such as `TENANT/process`, come first.
        let element = path.split_once('.').map_or(path, |(element, _)| element);
        let is_own = router.graph().find(element).is_some();
        (!is_own && is_of_process(&kind, handler)).then(|| (name.to_owned(), handler.to_owned()))
    }

    /// Whether a tenant has a process of its own now.
    fn has_process(&self, tenant: usize) -> bool {
        let it = &self.configurations.system().tenants[tenant];
        it.process.is_some() && !self.configurations.graph_of(tenant).elements.is_empty()
    }

    /// Passes a command of a client of the socket at an index to the tenant's own process; returns it if the
    /// process does not answer such a command.
    fn pass_to_process(
        &mut self,
        router: &mut Router,
        library: &Library,
        (at, tenant): (usize, usize),
        request: InstanceRequest,
    ) -> Option<InstanceRequest> {
        let kind = request.kind();
        let handler = kind.handler().filter(|handler| is_of_process(&kind, handler));
        let Some(handler) = handler.filter(|_| self.has_process(tenant)).map(str::to_owned) else {
            return Some(request);
        };
        let it = self.sockets.at(at);
        if let RequestKind::Write(_, value) = request.kind()
            && let Some(path) = handler.rsplit_once('.')
        {
            let system = &self.configurations.system().tenants[tenant];
            let graph = self.configurations.graph_of(tenant);
            let may = check_write(system, graph, library, path, &String::from_utf8_lossy(value));
            if let Err(why) = may {
                it.socket.answer_failure(request, ArgError::new(why));
                return None;
            }
        }
        it.calls.start(router, &it.socket, (&it.tenant, &handler), request);
        None
    }

    /// Answers the commands of tenants' clients whose answers have come from processes; returns the time at which
    /// others have waited for too long.
    fn answer_calls(&mut self, now: Time) -> Option<Time> {
        let before = thread_time();
        let next = self.sockets.iter_mut().filter_map(|it| it.calls.answer(now, &it.socket)).min();
        self.budget.charge_time(before);
        next
    }

    /// Answers a command of a client of the socket at an index.
    fn answer(
        &mut self,
        router: &mut Router,
        service: &InstanceService,
        at: usize,
        request: InstanceRequest,
    ) {
        let name = self.sockets.at(at).tenant.clone();
        let Some((tenant, _)) = self.configurations.find(&name) else { return };
        let reader = service.reader();
        let passed = self.pass_to_process(router, &reader.library, (at, tenant), request);
        let Some(request) = passed else { return };
        match request.kind() {
            RequestKind::Read(handler, param) => {
                let param = String::from_utf8_lossy(param).into_owned();
                if let Some(text) = self.read(router, service, tenant, handler, &param) {
                    return self.sockets.at(at).socket.answer_read(request, text);
                }
            }
            RequestKind::Write(handler, value) => {
                let value = String::from_utf8_lossy(value).into_owned();
                if let Some(done) = self.write(router, &reader, (at, tenant), handler, &value) {
                    let it = self.sockets.at(at);
                    match router.is_replaced() && done.is_ok() {
                        true => it.deferred.push(request.deferred(done)),
                        false => it.socket.answer_write(request, done),
                    }
                    return;
                }
            }
            RequestKind::Check(handler, write) => {
                let kind = if write { 'w' } else { 'r' };
                if TENANT_HANDLERS.contains(&(handler, kind)) {
                    return self.sockets.at(at).socket.answer_check(request);
                }
            }
            RequestKind::Other => {}
        }
        let mut view = TenantView::new(router, &reader.library, &self.configurations, tenant);
        let it = self.sockets.at(at);
        let deferred = it.socket.pass(request, &mut view);
        it.deferred.extend(deferred);
    }

    /// The value of a handler of the instance, for a tenant's client; `None` if it has no such handler to read.
    fn read(
        &self,
        router: &mut Router,
        service: &InstanceService,
        tenant: usize,
        handler: &str,
        param: &str,
    ) -> Option<Result<String, ArgError>> {
        let name = &self.configurations.system().tenants[tenant].name;
        Some(match handler {
            INSTANCE => handlers::json(Ok(InstanceDescription {
                name: name.clone(),
                configuration: self.configurations.origin_of(tenant).to_owned(),
                elements: self.configurations.graph_of(tenant).elements.len(),
                tenant: Some(name.clone()),
                ..service.description(router)
            })),
            "snapshot" => handlers::json(tenant_snapshot(router, name, handlers::lease(param))),
            "drop_report" => handlers::json(tenant_drops(router, name)),
            other if handlers::has(other, false) && other != "handlers" => {
                Err(ArgError::new(format!("the control socket of a tenant has no `{other}`")))
            }
            _ => return None,
        })
    }

    /// Writes a handler of the instance for a tenant's client; `None` if it has no such handler to write.
    fn write(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        (at, tenant): (usize, usize),
        handler: &str,
        value: &str,
    ) -> Option<Result<(), ArgError>> {
        let change = match handler {
            "hotconfig" => TenantChange::Install(value),
            "terminate" | "stop" => TenantChange::Remove,
            "reload" if value.trim().is_empty() => TenantChange::Restore,
            "reload" => {
                let message = "a tenant's client sends a configuration as a text, by `hotconfig`";
                return Some(Err(ArgError::new(message)));
            }
            other if handlers::has(other, true) => {
                let message = format!("the control socket of a tenant has no `{other}`");
                return Some(Err(ArgError::new(message)));
            }
            _ => return None,
        };
        let it = self.sockets.at(at);
        let most = it.most_elements();
        let may = it.take_install(value.len(), router.clock().now());
        Some(may.and_then(|()| self.prepare(router, reader, tenant, change, Some(most))))
    }

    /// Sends the answers that waited until a new configuration runs; `errors` are those of elements that could
    /// not start.
    pub(super) fn finish_replacement(&mut self, errors: &str) {
        for it in self.sockets.iter_mut().filter(|it| !it.deferred.is_empty()) {
            let prefix = format!("{}/", it.tenant);
            let own = errors.lines().filter(|line| line.contains(&prefix));
            let own: String = own.collect::<Vec<_>>().join("\n");
            let deferred: Vec<DeferredAnswer> = it.deferred.drain(..).collect();
            deferred.into_iter().for_each(|answer| it.socket.answer_deferred(answer, &own));
        }
    }

    /// Whether a client waits for a new configuration to run.
    pub(super) fn awaits_replacement(&mut self) -> bool {
        self.sockets.iter_mut().any(|it| !it.deferred.is_empty())
    }
}

impl InstanceService {
    /// Serves the tenants of a system from now on.
    ///
    /// # Errors
    /// The control socket of a tenant cannot be opened.
    pub(crate) fn serve_tenants(
        &mut self,
        router: &Router,
        loaded: &mut LoadedConfiguration,
    ) -> Result<(), CommandError> {
        let Some(configurations) = loaded.tenants.take() else { return Ok(()) };
        let mut found = Diagnostics::new();
        self.tenants = Some(InstanceTenants::new(router, *configurations, &mut found)?);
        if found.has_errors() {
            loaded.found = found;
            loaded.report(ErrorStyle::Castanet);
            return Err(CommandError::REPORTED);
        }
        Ok(())
    }

    /// The tenants, as clients list them.
    ///
    /// # Errors
    /// The instance runs no system file.
    pub(super) fn tenant_reports(
        &self,
        router: &mut Router,
    ) -> Result<Vec<TenantReport>, ArgError> {
        Ok(self.tenants.as_ref().ok_or_else(no_tenants)?.tenant_reports(router))
    }

    /// Prepares the change of a tenant's configuration.
    ///
    /// # Errors
    /// There is no such tenant, or the configuration is wrong.
    pub(super) fn change_tenant(
        &mut self,
        router: &mut Router,
        tenant: &str,
        change: TenantChange<'_>,
    ) -> Result<(), ArgError> {
        let reader = self.reader();
        let tenants = self.tenants.as_mut().ok_or_else(no_tenants)?;
        tenants.change(router, &reader, tenant, change)
    }

    /// Answers some commands of tenants' clients, and looks after faults; returns the time of the next step, `due`
    /// if none is sooner.
    pub(super) fn answer_tenants(
        &mut self,
        router: &mut Router,
        due: Option<Time>,
    ) -> Option<Time> {
        let Some(mut tenants) = self.tenants.take() else { return due };
        let fault = tenants.step_faults(router, &self.reader());
        let pause = tenants.answer_clients(router, self);
        let now = router.clock().now();
        let late = tenants.answer_calls(now);
        self.tenants = Some(tenants);
        let next = pause.map(|pause| now + pause);
        [next, fault, late, due].into_iter().flatten().min()
    }
}

pub(super) fn no_tenants() -> ArgError {
    ArgError::new("the instance has no tenants; `castanet tenants run` starts one that has")
}
