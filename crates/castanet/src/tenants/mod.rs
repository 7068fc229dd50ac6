//! Tenants of a system: their configurations, and their control sockets.

mod configurations;
mod faults;
mod load;
mod places;
mod process_calls;
mod process_records;
mod process_reports;
mod report;
mod sent_text;
mod sockets;
mod store;
mod view;

pub(crate) use configurations::{InstalledTexts, TenantConfigurations};
pub(crate) use faults::{FaultChange, RecentPanics, TenantFaults};
pub(crate) use load::{LoadedSystem, load, load_with};
pub(crate) use process_calls::ProcessCalls;
pub(crate) use process_reports::{OmittedReport, ProcessReports};
pub(crate) use report::{InstallCounts, TenantReport, tenant_reports};
pub(crate) use sent_text::sent_text;
pub(crate) use sockets::{PreparedSockets, TenantSockets};
pub(crate) use store::{StoredText, TenantStore};
pub(crate) use view::{TenantView, is_of_process, tenant_drops, tenant_snapshot};
