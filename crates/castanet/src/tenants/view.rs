//! The router as one tenant sees it: its own elements, by its own names.

use super::configurations::TenantConfigurations;
use crate::instance::tenant_handlers;
use crate::observe::drops::{DropCount, report};
use crate::observe::snapshot::{Snapshot, WorkerTotals};
use castanet_element::class::Library;
use castanet_element::control::{ControlContext, Loads};
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::RequestKind;
use castanet_runtime::router::Router;
use castanet_tenants::check_write;
use std::fmt::Write;
use std::time::Duration;

/// Handlers of the router that a tenant may read; those of [`tenant_handlers`] come to them.
const READS: &[&str] = &[
    "accounts",
    "classes",
    "config",
    "count_cycles",
    "driver",
    "drops",
    "element_cycles.csv",
    "flatconfig",
    "handlers",
    "list",
    "packages",
    "requirements",
    "threads",
    "timewarp",
    "version",
];
/// Handlers of the router that a tenant may write. `hotconfig` and `stop` are about its own configuration
/// only.
const WRITES: &[&str] = &["hotconfig", "stop"];
/// Those of these handlers, and of the instance's, that the tenant's own process answers, if it has one; all others
/// are about the coordinator, or known to it.
const PROCESS_READS: &[&str] = &[
    "count_cycles",
    "driver",
    "drop_report",
    "drops",
    "element_cycles.csv",
    "list",
    "snapshot",
    "threads",
    "timewarp",
];
/// Handlers whose read or write has all workers count cycles, which makes all tenants slower.
const COUNTING: &[&str] = &["cycles", "element_cycles.csv"];

/// The router as one tenant sees it. Names of elements are those of the tenant's own configuration, without its
/// name before them; there are no others.
pub(crate) struct TenantView<'a> {
    router: Box<dyn ControlContext + 'a>,
    library: &'a Library,
    configurations: &'a TenantConfigurations,
    /// The number of the tenant.
    tenant: usize,
    /// That of the names of its elements in the router.
    prefix: String,
}

impl<'a> TenantView<'a> {
    /// The router as this tenant sees it.
    pub(crate) fn new(
        router: &'a mut Router,
        library: &'a Library,
        configurations: &'a TenantConfigurations,
        tenant: usize,
    ) -> TenantView<'a> {
        let prefix = prefix(&configurations.system().tenants[tenant].name);
        let router = Box::new(router.control_context());
        TenantView { router, library, configurations, tenant, prefix }
    }

    fn read_global(&mut self, handler: &str) -> Result<String, ArgError> {
        if !READS.contains(&handler) {
            let message = format!("a tenant has no read handler '{handler}' of the router");
            return Err(ArgError::new(message));
        }
        Ok(match handler {
            "config" => self.configurations.text_of(self.tenant).to_owned(),
            "flatconfig" => castanet_lang::print::flat(self.configurations.graph_of(self.tenant)),
            "requirements" => {
                let requirements = &self.configurations.graph_of(self.tenant).requirements;
                requirements.iter().fold(String::new(), |text, it| text + it + "\n")
            }
            "handlers" => handler_list(),
            "list" => {
                let all = self.router.read("list")?;
                let own: Vec<&str> = all.lines().filter_map(|it| self.own(it)).collect();
                own.iter().fold(format!("{}\n", own.len()), |text, name| text + name + "\n")
            }
            "drops" => {
                let all = self.router.read(handler)?;
                self.own_lines(&all)
            }
            "element_cycles.csv" => {
                let all = self.router.read(handler)?;
                let heading = all.lines().next().unwrap_or_default();
                format!("{heading}\n{}", self.own_lines(&all))
            }
            "accounts" => {
                let all = self.router.read(handler)?;
                let name = self.prefix.trim_end_matches('/');
                let is_own = |line: &&str| line.split('\t').next() == Some(name);
                let lines = all.lines().take(1).chain(all.lines().skip(1).filter(is_own));
                lines.fold(String::new(), |text, line| text + line + "\n")
            }
            _ => self.router.read(handler)?,
        })
    }

    /// The name without that of the tenant, if it is that of one of its elements.
    fn own<'t>(&self, name: &'t str) -> Option<&'t str> {
        name.strip_prefix(&self.prefix)
    }

    /// The lines that begin with the name of an element of the tenant.
    fn own_lines(&self, text: &str) -> String {
        let own = text.lines().filter_map(|line| self.own(line));
        own.fold(String::new(), |text, line| text + line + "\n")
    }

    /// The value of a handler of an element, where names of elements are those of the tenant.
    fn in_own_names(&self, handler: &str, value: String) -> String {
        match handler {
            "name" => self.own(&value).map_or(String::new(), str::to_owned),
            "ports" => own_ports(&value, &self.prefix),
            _ => value,
        }
    }

    /// Refuses a handler that would have workers count cycles, unless they do so already.
    fn check_counting(&mut self, handler: &str) -> Result<(), ArgError> {
        if !COUNTING.contains(&handler) || self.router.read("count_cycles")?.trim() == "true" {
            return Ok(());
        }
        let message = "cycles are not counted: the operator has them counted for all; `top` shows the cost of elements";
        Err(ArgError::new(message))
    }

    /// Refuses a value by which the tenant would reach beyond its bounds.
    fn check_write(&self, element: &str, handler: &str, value: &str) -> Result<(), ArgError> {
        let tenant = &self.configurations.system().tenants[self.tenant];
        let graph = self.configurations.graph_of(self.tenant);
        let path = (element, handler);
        check_write(tenant, graph, self.library, path, value).map_err(ArgError::new)
    }
}

/// Whether a name is that of a handler of the router, and not of an element.
fn is_global(handler: &str) -> bool {
    !handler.contains('.') || READS.contains(&handler)
}

/// Whether the process of a tenant, if it has one of its own, answers a request about the handler of this name in the
/// tenant's configuration.
pub(crate) fn is_of_process(request: &RequestKind<'_>, handler: &str) -> bool {
    match request {
        _ if !is_global(handler) => true,
        RequestKind::Read(..) => PROCESS_READS.contains(&handler),
        _ => false,
    }
}

/// A tenant's name and a slash, with which the names of its elements begin in the router.
fn prefix(tenant: &str) -> String {
    format!("{tenant}/")
}

/// Makes the name of an element in the router that in its tenant's configuration; returns whether it is one of the
/// tenant's elements.
fn make_own(name: &mut String, prefix: &str) -> bool {
    let own = name.strip_prefix(prefix).map(str::to_owned);
    let is_own = own.is_some();
    *name = own.unwrap_or_default();
    is_own
}

/// Click's description of ports, with the names of a tenant; elements of others have none.
fn own_ports(text: &str, prefix: &str) -> String {
    let end = |end: &str| {
        let words = end.split(' ').map(|word| match word.strip_prefix(prefix) {
            Some(own) => own,
            None if word.starts_with('[') => word,
            None => "(outside)",
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let line = |line: &str| match line.rsplit_once('\t') {
        None => line.to_owned(),
        Some((flow, "")) => format!("{flow}\t"),
        Some((flow, ends)) => {
            format!("{flow}\t{}", ends.split(", ").map(end).collect::<Vec<_>>().join(", "))
        }
    };
    text.lines().fold(String::new(), |text, it| text + &line(it) + "\n")
}

/// The handlers of the router for tenants: name, tabulator, `r`, `w` or `rw`.
fn handler_list() -> String {
    let reads = READS.iter().copied().map(|name| (name, 'r'));
    let writes = WRITES.iter().copied().map(|name| (name, 'w'));
    let mut all: Vec<(&str, char)> = reads.chain(writes).chain(tenant_handlers()).collect();
    all.sort_unstable();
    let mut text = String::new();
    for both in all.chunk_by(|a, b| a.0 == b.0) {
        let kind: String = both.iter().map(|it| it.1).collect();
        _ = writeln!(text, "{}\t{kind}", both[0].0);
    }
    text
}

impl ControlContext for TenantView<'_> {
    fn now(&self) -> Time {
        self.router.now()
    }
    fn random(&mut self) -> u32 {
        self.router.random()
    }
    fn peek(&self) -> Time {
        self.router.peek()
    }
    fn read(&mut self, handler: &str) -> Result<String, ArgError> {
        let path = handler.split_whitespace().next().unwrap_or_default();
        if is_global(path) {
            self.check_counting(path)?;
            return self.read_global(path);
        }
        let name = path.rsplit_once('.').map_or("", |(_, name)| name);
        self.check_counting(name)?;
        let value = self.router.read(&format!("{}{handler}", self.prefix))?;
        Ok(self.in_own_names(name, value))
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), ArgError> {
        match handler.rsplit_once('.') {
            Some((element, name)) => {
                self.check_write(element, name, value)?;
                self.check_counting(name)?;
                self.router.write(&format!("{}{handler}", self.prefix), value)
            }
            None => {
                let message = format!("a tenant has no write handler '{handler}' of the router");
                Err(ArgError::new(message))
            }
        }
    }
    fn exists(&mut self, handler: &str, write: bool) -> bool {
        match is_global(handler) {
            true => if write { WRITES } else { READS }.contains(&handler),
            false => self.router.exists(&format!("{}{handler}", self.prefix), write),
        }
    }
    fn is_private(&mut self, handler: &str) -> bool {
        !is_global(handler) && self.router.is_private(&format!("{}{handler}", self.prefix))
    }
    fn print(&mut self, text: &str) {
        self.router.print(text);
    }
    fn chatter(&mut self, text: &str) {
        self.router.chatter(text);
    }
    // The handlers that a tenant can write reach nothing of the rest, which is for programs of the router.
    fn stop(&mut self, _: i32) {}
    fn request_stop(&mut self) {}
    fn is_stopping(&self) -> bool {
        self.router.is_stopping()
    }
    fn take_stop(&mut self) -> bool {
        false
    }
    fn is_replaced(&self) -> bool {
        self.router.is_replaced()
    }
    fn take_start_errors(&mut self) -> String {
        String::new()
    }
    fn name(&self) -> &str {
        ""
    }
    fn label(&self) -> String {
        String::new()
    }
    fn full_name(&self, handler: &str) -> String {
        handler.to_owned()
    }
    fn words(&self, error: &ArgError) -> String {
        self.router.words(error)
    }
    fn on_signal(&mut self, _: i32) {}
    fn kill(&mut self, _: i32, _: i32) -> Result<(), String> {
        Err("a tenant sends no signals".to_owned())
    }
    fn loads(&mut self) -> Loads {
        Loads::default()
    }
    fn move_tasks(&mut self, _: usize, _: usize) -> Result<(), ArgError> {
        Err(ArgError::new("a tenant moves no tasks"))
    }
}

/// The totals of a tenant's elements; those of its account stand for a worker's.
///
/// # Errors
/// A worker is gone or stuck.
pub(crate) fn tenant_snapshot(
    router: &mut Router,
    tenant: &str,
    lease: Option<Duration>,
) -> Result<Snapshot, ArgError> {
    let mut snapshot = Snapshot::take(router, lease)?;
    let prefix = prefix(tenant);
    snapshot.elements.retain_mut(|it| make_own(&mut it.name, &prefix));
    let accounts = router.accounts()?;
    let own = accounts.iter().find(|(account, _)| account.name == tenant);
    let cpu = own.map_or(0, |(_, used)| used.cpu_time.as_nanos() as u64);
    snapshot.workers = vec![WorkerTotals { cpu }];
    Ok(snapshot)
}

/// The packets that a tenant's elements have dropped.
///
/// # Errors
/// A worker is gone or stuck.
pub(crate) fn tenant_drops(router: &mut Router, tenant: &str) -> Result<Vec<DropCount>, ArgError> {
    let prefix = prefix(tenant);
    let mut all = report(router)?;
    all.retain_mut(|it| make_own(&mut it.element, &prefix));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_tenants_has_every_handler_of_their_sockets() {
        let page = include_str!("../../../../docs/tenants.md");
        let (_, section) = page.split_once("### A tenant's control socket").unwrap_or_default();
        let (section, _) = section.split_once("\n## ").unwrap_or_default();
        let rows: String = section.lines().filter(|line| line.starts_with('|')).collect();
        for line in handler_list().lines() {
            let name = line.split('\t').next().unwrap_or_default();
            assert!(rows.contains(&format!("`{name}`")), "{name} is not in {rows}");
        }
    }

    #[test]
    fn ports_name_a_tenant_s_elements_only() {
        let text = "1 input\npush\t-\twan/red/eth1/decap [0], red/a [2]\n1 output\npush~\t-\t[0] red/x/y\n";
        let own = "1 input\npush\t-\t(outside) [0], a [2]\n1 output\npush~\t-\t[0] x/y\n";
        assert_eq!(own_ports(text, "red/"), own);
        assert_eq!(own_ports("0 inputs\npush\t-\t\n", "red/"), "0 inputs\npush\t-\t\n");
    }
}
