//! The service of the control thread that answers clients of the instance.

use super::client_budget::{ClientBudget, thread_time};
use super::handlers::{self, CONTROL_VERSION, InstanceDescription};
use super::http_arguments::WebAccess;
use super::site::{InstanceSite, METRICS};
use super::tenants::InstanceTenants;
use super::web_site::WebSite;
use super::{HttpAccess, InstanceArguments, RuntimeDirectory, is_name};
use crate::control_queue::ControlQueue;
use crate::http::HttpServer;
use crate::load::{Origin, io_error_text};
use crate::metrics::{InstanceCounts, MetricsCache, MetricsReport, Reloads};
use crate::replace::{Reloader, ReplacementReader};
use crate::signals::Hangup;
use crate::tenants::{PreparedSockets, ProcessCalls};
use crate::terminal::{complain, inform};
use crate::web::{GraphDescription, HistoryColumns, LiveRates, WebView};
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{DeferredAnswer, InstanceRequest, InstanceSocket, RequestKind};
use castanet_runtime::router::{Router, Service};
use serde::Serialize;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Instances of one file that may run at a time under names of their own.
const MOST_OF_A_NAME: u32 = 1000;

/// Requests that one step answers, so that no number of clients keeps the control thread from others.
pub(super) const MOST_OF_A_STEP: usize = 16;

/// Service that answers clients of an instance, and reloads its configuration.
pub(crate) struct InstanceService {
    name: String,
    configuration: String,
    started: Time,
    socket: Option<InstanceSocket>,
    reloader: Reloader,
    budget: ClientBudget,
    /// Set when the process was told to read its file again.
    hangup: Arc<AtomicBool>,
    /// Answers that wait until the new configuration runs.
    deferred: Vec<DeferredAnswer>,
    /// Commands that processes of tenants answer.
    calls: ProcessCalls,
    /// The file that was read, while the new configuration is yet to run.
    loaded: Option<Origin>,
    reloads: Reloads,
    metrics: MetricsCache,
    http: Option<HttpClients>,
    /// The tenants, if the configuration is a system file.
    pub(super) tenants: Option<InstanceTenants>,
}

/// The requests of HTTP clients, and the servers that they come by.
struct HttpClients {
    queue: ControlQueue<InstanceService>,
    servers: Vec<(HttpServer, Option<WebAccess>)>,
    /// The rates for the web view, if there is one.
    view: Option<WebView>,
}

/// An instance, as the page shows it.
#[derive(Serialize)]
pub(super) struct WebDescription {
    #[serde(flatten)]
    instance: InstanceDescription,
    /// Whether the page may write handlers.
    may_write: bool,
}

impl InstanceService {
    /// The service of a router that is about to run a configuration.
    ///
    /// # Errors
    /// The socket that the user names cannot be opened. Without a socket that the user has asked for,
    /// that is a warning, and the router runs without one.
    pub(crate) fn new(
        router: &Router,
        arguments: &InstanceArguments,
        reloader: Reloader,
    ) -> Result<InstanceService, String> {
        let mut service = InstanceService::closed(router, arguments, reloader);
        if arguments.no_control {
            return Ok(service);
        }
        let is_wanted = arguments.name.is_some() || arguments.control.is_some();
        match service.open(router, arguments) {
            Err(message) if is_wanted => return Err(message),
            Err(message) => {
                complain(format_args!("castanet: no control socket for `castanet ctl`: {message}"));
            }
            Ok(()) => {}
        }
        Ok(service)
    }

    /// The same under the name `click`, which has no options about it, and no message if there can
    /// be no socket.
    pub(crate) fn without_options(router: &Router, reloader: Reloader) -> InstanceService {
        let arguments = InstanceArguments::default();
        let mut service = InstanceService::closed(router, &arguments, reloader);
        _ = service.open(router, &arguments);
        service
    }

    /// A service without a socket.
    fn closed(
        router: &Router,
        arguments: &InstanceArguments,
        reloader: Reloader,
    ) -> InstanceService {
        InstanceService {
            name: arguments.name.clone().unwrap_or_else(|| default_name(&reloader.origin)),
            configuration: reloader.origin.name(),
            started: router.clock().now(),
            socket: None,
            reloader,
            budget: ClientBudget::new(router.clock().now()),
            hangup: Arc::default(),
            deferred: Vec::new(),
            calls: ProcessCalls::default(),
            loaded: None,
            reloads: Reloads::default(),
            metrics: MetricsCache::default(),
            http: None,
            tenants: None,
        }
    }

    /// Answers HTTP clients from now on, as long as the router runs.
    ///
    /// # Errors
    /// There can be no server.
    pub(crate) fn answer_http(
        &mut self,
        router: &Router,
        accesses: Vec<HttpAccess>,
    ) -> Result<(), String> {
        let (queue, control) = ControlQueue::new(router);
        let has_view = accesses.iter().any(|access| access.web.is_some());
        let mut servers = Vec::new();
        for HttpAccess { listener, token, web } in accesses {
            let has_token = token.is_some();
            let page = web.as_ref().map(|web| WebSite { may_write: web.may_write, has_token });
            let site = Arc::new(InstanceSite { control: control.clone(), web: page });
            servers.push((HttpServer::start(listener, token, site)?, web));
        }
        let view = has_view.then(|| WebView::new(self.started.0));
        self.http = Some(HttpClients { queue, servers, view });
        Ok(())
    }

    /// The addresses for HTTP clients, with a word about each, for the user: all of them, or those with a
    /// token that was chosen.
    pub(crate) fn addresses(&self, all: bool) -> Vec<String> {
        let has_random_token =
            |web: &Option<WebAccess>| web.as_ref().is_some_and(|it| it.random_token.is_some());
        let servers = self.http.iter().flat_map(|http| &http.servers);
        let servers = servers.filter(|(_, web)| all || has_random_token(web));
        let line = |(server, web): &(HttpServer, Option<WebAccess>)| match web {
            None => format!("metrics at http://{}{METRICS}", server.address),
            Some(web) => {
                let token = web.random_token.iter().map(|token| format!("#token={token}"));
                format!("web view at http://{}/{}", server.address, token.collect::<String>())
            }
        };
        servers.map(line).collect()
    }

    /// The instance, as the page shows it.
    pub(super) fn web_description(&self, router: &mut Router, may_write: bool) -> WebDescription {
        WebDescription { instance: self.description(router), may_write }
    }

    /// The graph that runs, for the page.
    pub(super) fn graph(&self, router: &Router) -> GraphDescription {
        GraphDescription::of(router, self.started.0)
    }

    /// The last rates for the page; none in the first second.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(super) fn live(&mut self, router: &mut Router) -> Result<Option<Arc<LiveRates>>, ArgError> {
        match self.view_mut() {
            Some(view) => view.live(router),
            None => Ok(None),
        }
    }

    /// The history of an element for the page.
    pub(super) fn history(&mut self, element: &str) -> Option<HistoryColumns> {
        self.view_mut().map(|view| view.history(element))
    }

    fn view_mut(&mut self) -> Option<&mut WebView> {
        self.http.as_mut()?.view.as_mut()
    }

    /// The metrics, which are at most 200 ms old.
    pub(super) fn metrics(&mut self, router: &mut Router) -> Result<Arc<MetricsReport>, ArgError> {
        let counts = InstanceCounts {
            name: &self.name,
            configuration: &self.configuration,
            started: self.started.0 as f64 / 1e9,
            uptime: (router.clock().now() - self.started).as_secs_f64(),
            reloads: self.reloads,
        };
        let tenants = self.tenants.as_ref();
        let processes =
            |router: &Router| tenants.map_or_else(Vec::new, |it| it.process_totals(router));
        self.metrics.report(router, &counts, processes)
    }

    fn open(&mut self, router: &Router, arguments: &InstanceArguments) -> Result<(), String> {
        let (waker, group) = (router.service_waker(), arguments.control_group);
        let open = |path: PathBuf| InstanceSocket::open(path, group, waker.clone());
        let failed = |path: &Path, error: &std::io::Error| match error.kind() {
            ErrorKind::AddrInUse if is_socket(path) => {
                format!("{}: another instance listens there", path.display())
            }
            ErrorKind::AddrInUse => {
                format!("{}: a file that is no socket has this name", path.display())
            }
            _ => format!("{}: {}", path.display(), io_error_text(error)),
        };
        if let Some(path) = &arguments.control {
            self.socket = Some(open(path.clone()).map_err(|error| failed(path, &error))?);
            return Ok(());
        }
        let directory = RuntimeDirectory::own();
        directory.make()?;
        let wanted = self.name.clone();
        for number in 1..=MOST_OF_A_NAME {
            let name = if number == 1 { wanted.clone() } else { format!("{wanted}-{number}") };
            let path = directory.socket(&name);
            match open(path.clone()) {
                Ok(socket) => {
                    (self.socket, self.name) = (Some(socket), name);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::AddrInUse && arguments.name.is_none() => {}
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        Err(format!("{MOST_OF_A_NAME} instances are named {wanted}"))
    }

    /// Has SIGHUP read the file again, if there is one.
    pub(crate) fn reloads_by_signal(&self, router: &Router) -> Option<Hangup> {
        self.reloader.has_file().then(|| Hangup::new(self.hangup.clone(), router))
    }

    /// The instance, as it describes itself.
    pub(super) fn description(&self, router: &mut Router) -> InstanceDescription {
        InstanceDescription {
            control_version: CONTROL_VERSION,
            name: self.name.clone(),
            pid: std::process::id(),
            version: crate::program::version().to_owned(),
            configuration: self.configuration.clone(),
            workers: router.read("threads").ok().and_then(|n| n.parse().ok()).unwrap_or(1),
            elements: router.graph().elements.len(),
            started: self.started.0,
            uptime: (router.clock().now() - self.started).as_secs_f64(),
            replaced: router.replaced(),
            tenant: None,
        }
    }

    /// Reads the file of the command line again, or another file, and prepares to run it.
    pub(super) fn reload(
        &mut self,
        router: &mut Router,
        file: Option<&Path>,
    ) -> Result<(), ArgError> {
        if self.tenants.as_ref().is_some_and(|it| it.moves.has_moves()) {
            return Err(ArgError::new("a tenant is being moved; reload once that is over"));
        }
        crate::systemd::reloading();
        let installed = self.tenants.as_ref().map(|it| it.configurations.installed());
        let (waker, now) = (router.service_waker(), router.clock().now());
        let (mut configurations, mut sockets) = (None, PreparedSockets::default());
        let prepared = router.replace_with(|build| {
            let mut loaded = self.reloader.load(file, &installed.unwrap_or_default())?;
            configurations = loaded.tenants.take();
            if let (Some(tenants), Some(next)) = (&self.tenants, &configurations)
                && !loaded.found.has_errors()
            {
                sockets = tenants.prepare_sockets(next, &waker, now, &mut loaded.found);
            }
            self.reloader.reader.build(loaded, None, build)
        });
        self.reloads.record(prepared.is_ok());
        if prepared.is_err() {
            let status = crate::systemd::sentence(router);
            crate::systemd::ready(&format!("the reload was refused; {status}"));
        }
        prepared.map_err(crate::confine::explained)?;
        if let (Some(tenants), Some(configurations)) = (&mut self.tenants, configurations) {
            tenants.reloaded(router, *configurations, sockets);
        }
        let own = || self.reloader.origin.clone();
        self.loaded = Some(file.map_or_else(own, |file| Origin::File(file.to_owned())));
        Ok(())
    }

    /// Reads configurations as the command line had them read.
    pub(super) fn reader(&self) -> Arc<ReplacementReader> {
        self.reloader.reader.clone()
    }

    /// Answers a request, unless the answer has to wait.
    fn answer(&mut self, socket: &InstanceSocket, router: &mut Router, request: InstanceRequest) {
        let process = self.tenants.as_ref().and_then(|it| it.process_handler(router, &request));
        if let Some((tenant, handler)) = process {
            return self.calls.start(router, socket, (&tenant, &handler), request);
        }
        if let Some(request) = self.wait_for_reports(router, request) {
            self.answer_at_once(socket, router, request);
        }
    }

    /// Answers a request for which processes have reported.
    pub(super) fn answer_reported_request(
        &mut self,
        router: &mut Router,
        request: InstanceRequest,
    ) {
        let Some(socket) = self.socket.take() else { return };
        self.answer_at_once(&socket, router, request);
        self.socket = Some(socket);
    }

    /// Answers a request that no process answers.
    fn answer_at_once(
        &mut self,
        socket: &InstanceSocket,
        router: &mut Router,
        request: InstanceRequest,
    ) {
        match request.kind() {
            RequestKind::Read(handler, param) => {
                let param = String::from_utf8_lossy(param);
                if let Some(text) = handlers::read(self, router, handler, &param) {
                    return socket.answer_read(request, text);
                }
            }
            RequestKind::Write(handler, value) => {
                let value = String::from_utf8_lossy(value);
                if let Some(done) = handlers::write(self, router, handler, &value) {
                    match router.is_replaced() && done.is_ok() {
                        true => self.deferred.push(request.deferred(done)),
                        false => socket.answer_write(request, done),
                    }
                    return;
                }
            }
            RequestKind::Check(handler, write) => {
                if handlers::has(handler, write) {
                    return socket.answer_check(request);
                }
            }
            RequestKind::Other => {}
        }
        let deferred = socket.pass(request, &mut router.control_context());
        self.deferred.extend(deferred);
    }

    /// Answers the next request of an HTTP client; returns whether there was one.
    fn answer_http_client(&mut self, router: &mut Router) -> bool {
        let request = self.http.as_ref().and_then(|http| http.queue.next());
        let answered = request.map(|request| request(self, router));
        answered.iter().for_each(|()| self.budget.charge());
        answered.is_some()
    }

    /// Answers the next request at the control socket, unless another configuration is about to run;
    /// returns whether there was one.
    fn answer_socket_client(&mut self, router: &mut Router) -> bool {
        if router.is_replaced() {
            return false;
        }
        let Some(socket) = self.socket.take() else { return false };
        let request = socket.next();
        let answered = request.map(|request| self.answer(&socket, router, request));
        self.socket = Some(socket);
        answered.iter().for_each(|()| self.budget.charge());
        answered.is_some()
    }

    /// Answers some requests; returns the time of the next step, `due` if no client waits.
    fn answer_clients(&mut self, router: &mut Router, due: Option<Time>) -> Option<Time> {
        for _ in 0..MOST_OF_A_STEP {
            if !self.budget.allows() {
                return Some(router.clock().now() + self.budget.pause());
            }
            if router.is_replaced() {
                // The new configuration is put in place before the next step.
                break;
            }
            // Neither kind of clients keeps the other one waiting.
            let answered = self.answer_http_client(router) | self.answer_socket_client(router);
            if !answered {
                return due;
            }
        }
        Some(router.clock().now())
    }

    /// Reports about a configuration that has just replaced another one.
    fn finish_replacement(&mut self, router: &mut Router) {
        let is_awaited = self.tenants.as_mut().is_some_and(InstanceTenants::awaits_replacement);
        if self.deferred.is_empty() && self.loaded.is_none() && !is_awaited {
            return;
        }
        let errors = router.take_start_errors();
        self.tenants.iter_mut().for_each(|tenants| tenants.finish_replacement(&errors));
        if let Some(origin) = self.loaded.take() {
            self.configuration = origin.name();
            crate::systemd::ready(&crate::systemd::sentence(router));
            inform(format_args!("castanet: {} runs anew", self.configuration));
        }
        for deferred in self.deferred.drain(..) {
            if let Some(socket) = &self.socket {
                socket.answer_deferred(deferred, &errors);
            }
        }
    }
}

impl Service for InstanceService {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        self.finish_replacement(router);
        // A configuration that is about to run is put in place first.
        if !router.is_replaced()
            && self.hangup.swap(false, Ordering::Relaxed)
            && let Err(error) = self.reload(router, None)
        {
            let why = router.words(&error);
            complain(format_args!("{why}\ncastanet: the running configuration stays"));
        }
        let due = self.view_mut().and_then(|view| view.step(router));
        self.budget.fill(router);
        let before = thread_time();
        let next = self.answer_clients(router, due);
        let now = router.clock().now();
        let late = self.socket.as_ref().and_then(|socket| self.calls.answer(now, socket));
        let waiting = self.answer_reported(router);
        self.budget.charge_time(before);
        let next = [next, late, waiting].into_iter().flatten().min();
        let next = self.answer_tenants(router, next);
        if self.answer_moves(router) { Some(router.clock().now()) } else { next }
    }
}

/// Whether a path is that of a socket.
pub(crate) fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// The name of an instance whose user gives it none: that of the file.
pub(crate) fn default_name(origin: &Origin) -> String {
    let stem = match origin {
        Origin::File(path) | Origin::System(path) => {
            path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned)
        }
        Origin::Built(built) => {
            let stem = Path::new(built.name()).file_stem().and_then(|stem| stem.to_str());
            stem.map(str::to_owned)
        }
        Origin::Expression(_) => None,
    };
    let stem = stem.filter(|stem| is_name(stem));
    stem.unwrap_or_else(|| format!("castanet-{}", std::process::id()))
}
