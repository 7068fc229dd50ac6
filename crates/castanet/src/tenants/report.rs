//! The tenants of a running system, as clients list them.

use super::configurations::TenantConfigurations;
use super::faults::{FaultCounts, TenantFaults};
use super::sockets::TenantSockets;
use castanet_runtime::router::Router;
use castanet_tenants::{Tenant, process_element};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tenant of a running system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TenantReport {
    pub(crate) tenant: String,
    /// The source of its configuration: `file`, `installed`, or `removed`.
    pub(crate) configuration: String,
    /// `running`; `suspended` after panics in its elements; `held` while it moves; `removed` without a
    /// configuration; and the state of its process, if it has one.
    pub(crate) state: String,
    /// Number of its elements.
    pub(crate) elements: usize,
    /// `process` if it has one of its own, else `in-process`.
    pub(crate) isolation: String,
    /// Its control socket.
    pub(crate) socket: Option<String>,
    #[serde(flatten)]
    pub(crate) counts: InstallCounts,
    #[serde(flatten)]
    pub(crate) faults: FaultCounts,
}

/// Counts of a tenant's installations since the start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct InstallCounts {
    /// Configurations that were installed, restored or removed.
    pub(crate) installs: u64,
    /// Of these, those of its own clients.
    pub(crate) own_installs: u64,
    /// Configurations of its own clients that were refused.
    pub(crate) refused: u64,
}

/// The tenants of a system.
pub(crate) fn tenant_reports(
    router: &mut Router,
    (configurations, sockets): (&TenantConfigurations, &TenantSockets),
    counts: &BTreeMap<String, InstallCounts>,
    faults: &TenantFaults,
) -> Vec<TenantReport> {
    let tenants = configurations.system().tenants.iter().enumerate();
    let report = tenants.map(|(number, it)| TenantReport {
        tenant: it.name.clone(),
        configuration: configurations.origin_of(number).to_owned(),
        state: state(router, configurations, number),
        elements: configurations.graph_of(number).elements.len(),
        isolation: it.isolation().to_owned(),
        socket: sockets.path_of(&it.name),
        counts: counts.get(&it.name).copied().unwrap_or_default(),
        faults: fault_counts(router, it, faults),
    });
    report.collect()
}

/// The state of a tenant, in a word.
fn state(router: &mut Router, configurations: &TenantConfigurations, tenant: usize) -> String {
    let it = &configurations.system().tenants[tenant];
    let state = match it.process {
        _ if configurations.origin_of(tenant) == "removed" => "removed",
        Some(_) => return process_handler(router, it, "state").unwrap_or_default(),
        None if configurations.is_suspended(tenant) => "suspended",
        None if configurations.is_held(tenant) => "held",
        None => "running",
    };
    state.to_owned()
}

/// The faults of a tenant; of one with a process of its own, restarts alone are known.
fn fault_counts(router: &mut Router, tenant: &Tenant, faults: &TenantFaults) -> FaultCounts {
    let counts = faults.counts(&tenant.name);
    let restarts = process_handler(router, tenant, "restarts").and_then(|it| it.parse().ok());
    FaultCounts { restarts: restarts.unwrap_or(counts.restarts), ..counts }
}

/// A handler of the element that stands for the process of a tenant, if it has one.
fn process_handler(router: &mut Router, tenant: &Tenant, handler: &str) -> Option<String> {
    tenant.process.as_ref()?;
    router.read(&format!("{}.{handler}", process_element(&tenant.name))).ok()
}
