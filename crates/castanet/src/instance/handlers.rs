//! Handlers that the instance has beside those of its router.

use super::service::InstanceService;
use super::tenants::TenantChange;
use crate::metrics::Format;
use crate::observe::snapshot::Snapshot;
use crate::observe::{capture, drops, log, trace};
use castanet_element::error::ArgError;
use castanet_runtime::router::Router;
use castanet_runtime::worker::driver::DriverEvent;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Version of the handlers of an instance. It changes when a client of the version before would
/// misunderstand one of them.
pub(crate) const CONTROL_VERSION: u32 = 1;

/// The handler that describes the instance.
pub(crate) const INSTANCE: &str = "instance";

/// The handler of the metrics.
pub(crate) const METRICS: &str = "metrics";

/// Time for which workers take samples after a snapshot.
const LEASE: Duration = Duration::from_secs(10);

/// Lines of the log that one answer may have.
const MOST_LINES: usize = 10_000;

/// A handler of the instance: its name, and whether it is read (`r`) or written (`w`).
type ProgramHandler = (&'static str, char);

/// The handlers of an instance. All values but `metrics` are JSON.
const PROGRAM_HANDLERS: &[ProgramHandler] = &[
    // The instance: name, process, version, configuration.
    (INSTANCE, 'r'),
    // Counts of all elements and workers; with `sample`, their cost for 10 s.
    ("snapshot", 'r'),
    // Metrics, as Prometheus reads them; with `openmetrics`, as OpenMetrics.
    (METRICS, 'r'),
    // Dropped packets by element and reason, with an example of each.
    ("drop_report", 'r'),
    // Starts, reads and stops a trace of packets.
    ("trace", 'r'),
    // Starts, reads and stops a capture of packets.
    ("capture", 'r'),
    // The lines of the log behind the line of this number.
    ("log", 'r'),
    // Replaces the configuration by its file, or by another file.
    ("reload", 'w'),
    // Ends the router in good order, as Ctrl-C does.
    ("terminate", 'w'),
    // The tenants, and what their configurations are.
    ("tenants", 'r'),
    // The last move of each tenant to another instance.
    ("tenant_moves", 'r'),
    // Moves a tenant: its name, and the address of the other instance.
    ("tenant_move", 'w'),
    // Installs a configuration: the tenant's name, a line feed, and the text.
    ("tenant_install", 'w'),
    // Removes the configuration of the tenant of this name.
    ("tenant_remove", 'w'),
    // Has the tenant of this name run the configuration of its file again.
    ("tenant_restore", 'w'),
];

/// An instance, as it describes itself.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct InstanceDescription {
    pub(crate) control_version: u32,
    pub(crate) name: String,
    pub(crate) pid: u32,
    /// Version of Castanet.
    pub(crate) version: String,
    /// The configuration's file, or `config` for a text.
    pub(crate) configuration: String,
    pub(crate) workers: usize,
    pub(crate) elements: usize,
    /// When it began to run: nanoseconds since the epoch.
    pub(crate) started: i64,
    /// Seconds for which it runs.
    pub(crate) uptime: f64,
    /// How often its configuration was replaced.
    pub(crate) replaced: u64,
    /// The tenant whose own elements the control socket shows, if it is one of a tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
}

/// The time for which workers take samples, if the parameter of `snapshot` asks for any.
pub(super) fn lease(param: &str) -> Option<Duration> {
    param.split_whitespace().any(|word| word == "sample").then_some(LEASE)
}

/// The value of a handler of the instance; `None` if the instance has no such handler to read.
pub(super) fn read(
    service: &mut InstanceService,
    router: &mut Router,
    handler: &str,
    param: &str,
) -> Option<Result<String, ArgError>> {
    Some(match handler {
        INSTANCE => json(Ok(service.description(router))),
        METRICS => service.metrics(router).map(|report| {
            let format = Format::named(param.trim());
            String::from_utf8_lossy(&report.text(format)).into_owned()
        }),
        "tenants" => json(service.tenant_reports(router)),
        "tenant_moves" => json(service.moves()),
        "trace" => trace::command(router, param),
        "capture" => capture::command(router, param),
        "log" => match param.trim() {
            "" => json(Ok(log::lines(0, MOST_LINES))),
            after => match after.parse() {
                Ok(after) => json(Ok(log::lines(after, MOST_LINES))),
                Err(_) => Err(ArgError::new("`log` takes the number of a line")),
            },
        },
        "snapshot" => json(service.snapshot(router, lease(param))),
        "drop_report" => json(service.drops(router)),
        "handlers" => router.read(handler).map(|own| with_program_handlers(&own)),
        _ => return None,
    })
}

/// The value of a handler about the packets of a router; `None` if there is no such handler.
pub(crate) fn observation(
    router: &mut Router,
    handler: &str,
    param: &str,
) -> Option<Result<String, ArgError>> {
    Some(match handler {
        "snapshot" => json(Snapshot::take(router, lease(param))),
        "drop_report" => json(drops::report(router)),
        _ => return None,
    })
}

/// Writes a handler of the instance; `None` if the instance has no such handler to write.
pub(super) fn write(
    service: &mut InstanceService,
    router: &mut Router,
    handler: &str,
    value: &str,
) -> Option<Result<(), ArgError>> {
    Some(match handler {
        "reload" => {
            let file = value.trim();
            service.reload(router, (!file.is_empty()).then_some(Path::new(file)))
        }
        "terminate" => {
            let gone = |_| ArgError::new("the router ends already");
            router.line().send(DriverEvent::Interrupted).map_err(gone)
        }
        "tenant_install" => {
            let (tenant, text) = value.split_once('\n').unwrap_or((value, ""));
            service.change_tenant(router, tenant.trim(), TenantChange::Install(text))
        }
        "tenant_move" => service.start_move(value),
        "tenant_remove" => service.change_tenant(router, value.trim(), TenantChange::Remove),
        "tenant_restore" => service.change_tenant(router, value.trim(), TenantChange::Restore),
        _ => return None,
    })
}

/// Whether the instance has such a handler to read, or to write.
pub(super) fn has(handler: &str, write: bool) -> bool {
    let kind = if write { 'w' } else { 'r' };
    PROGRAM_HANDLERS.iter().any(|(name, its)| *name == handler && *its == kind)
}

/// A value as JSON.
pub(super) fn json<T: Serialize>(value: Result<T, ArgError>) -> Result<String, ArgError> {
    serde_json::to_string(&value?).map_err(|error| ArgError::new(error.to_string()))
}

/// The list of global handlers with those of the instance.
fn with_program_handlers(own: &str) -> String {
    let ours = PROGRAM_HANDLERS.iter().map(|(name, kind)| format!("{name}\t{kind}"));
    let mut lines: Vec<String> = own.lines().map(str::to_owned).chain(ours).collect();
    lines.sort();
    lines.join("\n") + "\n"
}
