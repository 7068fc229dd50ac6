//! Moves of tenants between instances, on the control thread.

use super::service::{InstanceService, MOST_OF_A_STEP};
use super::tenants::{InstanceTenants, TenantChange, no_tenants};
use crate::control_queue::{ControlQueue, ControlSender};
use crate::migration::{Departure, MigrationKey, MigrationListener, MovePhase, MoveProgress};
use crate::replace::ReplacementReader;
use crate::tenants::{LoadedSystem, TenantConfigurations};
use crate::terminal::{complain, inform};
use castanet_element::error::ArgError;
use castanet_element::portable_state::StateEpoch;
use castanet_lang::print;
use castanet_runtime::router::{Router, StateChange, StatePlace, StatePosition};
use castanet_tenants::account_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Parts of a tenant's state that one request reads.
const PARTS: usize = 16;

/// The moves of tenants from and to this instance.
pub(super) struct TenantMoves {
    queue: ControlQueue<InstanceService>,
    control: ControlSender<InstanceService>,
    key: Option<MigrationKey>,
    /// The address for tenants that come, if they may.
    _listener: Option<MigrationListener>,
    /// By tenant: its last move to another instance.
    departures: BTreeMap<String, Departure>,
    /// The tenants that come.
    arrivals: BTreeSet<String>,
}

/// A tenant as the other instance needs it.
pub(crate) struct TenantExport {
    /// Its configuration.
    pub(crate) text: String,
    /// The fields of its state.
    pub(crate) places: Arc<[StatePlace]>,
    /// The elements whose state does not move, with their classes.
    pub(crate) anew: Vec<(String, String)>,
}

impl TenantMoves {
    /// Moves of the tenants of a system, as its file says; the listener's address is open.
    ///
    /// # Errors
    /// The key cannot be read, or nobody can listen at the address.
    pub(super) fn new(
        router: &Router,
        configurations: &TenantConfigurations,
    ) -> Result<TenantMoves, String> {
        let (queue, control) = ControlQueue::new(router);
        let migration = configurations.system().migration.as_ref();
        let key = migration.map(|it| MigrationKey::read(&configurations.path(&it.key.value)));
        let key = key.transpose()?;
        let mut listener = None;
        if let (Some(key), Some(address)) = (&key, migration.and_then(|it| it.listen.as_ref())) {
            let started = MigrationListener::start(address.value, key.clone(), control.clone())?;
            inform(format_args!("castanet: tenants come in at {}", started.address));
            listener = Some(started);
        }
        let (departures, arrivals) = (BTreeMap::new(), BTreeSet::new());
        Ok(TenantMoves { queue, control, key, _listener: listener, departures, arrivals })
    }

    /// Whether a tenant is on its way to or from this instance.
    fn is_moving(&self, tenant: &str) -> bool {
        let leaves = |it: &Departure| !it.progress().is_over();
        self.arrivals.contains(tenant) || self.departures.get(tenant).is_some_and(leaves)
    }

    /// Whether any tenant is.
    pub(super) fn has_moves(&self) -> bool {
        !self.arrivals.is_empty() || self.departures.keys().any(|tenant| self.is_moving(tenant))
    }

    /// The last move of each tenant to another instance.
    pub(super) fn progress(&self) -> Vec<MoveProgress> {
        self.departures.values().map(Departure::progress).collect()
    }
}

impl InstanceTenants {
    /// Begins to move a tenant to the instance that listens at an address.
    fn start_move(&mut self, tenant: &str, to: &str) -> Result<(), ArgError> {
        let number = self.number_of(tenant)?;
        if self.configurations.system().tenants[number].process.is_some() {
            return Err(ArgError::new(format!(
                "tenant {tenant} has a process of its own, whose state cannot be moved"
            )));
        }
        if self.configurations.graph_of(number).elements.is_empty() {
            return Err(ArgError::new(format!("tenant {tenant} runs nothing")));
        }
        if self.configurations.is_suspended(number) {
            return Err(ArgError::new(format!(
                "tenant {tenant} is suspended; it has no state now"
            )));
        }
        self.check_stays(tenant)?;
        let Some(key) = self.moves.key.clone() else {
            let error = ArgError::new("the system file has no `migration`");
            return Err(error.help("write `migration = { key = \"FILE\" }` before all tables"));
        };
        let control = self.moves.control.clone();
        let departure = Departure::start(tenant.to_owned(), to.to_owned(), key, control);
        let departure = departure.map_err(ArgError::new)?;
        self.moves.departures.insert(tenant.to_owned(), departure);
        Ok(())
    }

    /// Prepares the configuration of a tenant whose state is yet to come, which is held; or none, where it does
    /// not come after all. The store learns nothing of it.
    fn put_arrival(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        number: usize,
        text: &str,
    ) -> Result<(), String> {
        let next = self.configurations.with_hold(number, !text.is_empty());
        let LoadedSystem { configuration, configurations: next, .. } =
            next.with_text(number, text, None, &reader.library);
        let prepared = router.replace_with(|build| reader.build(configuration, None, build));
        prepared.map_err(|error| error.to_string())?;
        self.configurations = next;
        Ok(())
    }

    /// Refuses to change a tenant that moves.
    pub(super) fn check_stays(&self, tenant: &str) -> Result<(), ArgError> {
        match self.moves.is_moving(tenant) {
            true => Err(ArgError::new(format!("tenant {tenant} is being moved"))),
            false => Ok(()),
        }
    }

    /// The configuration of a tenant for another instance: as it was written, or without compounds where that
    /// needs values or libraries that are here.
    fn text_to_send(&self, number: usize) -> String {
        let text = self.configurations.text_of(number);
        let stands_alone = self.configurations.system().tenants[number].variables.is_empty()
            && !text.contains("require");
        match stands_alone {
            true => text.to_owned(),
            false => print::flat(self.configurations.graph_of(number)),
        }
    }
}

impl InstanceService {
    fn its_tenants(&mut self) -> Result<&mut InstanceTenants, String> {
        self.tenants.as_mut().ok_or_else(|| no_tenants().to_string())
    }

    /// Begins a move: `TENANT ADDRESS`.
    ///
    /// # Errors
    /// The tenant cannot move.
    pub(super) fn start_move(&mut self, text: &str) -> Result<(), ArgError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [tenant, to] = words[..] else {
            return Err(ArgError::new("`tenant_move` takes a tenant and an address"));
        };
        self.tenants.as_mut().ok_or_else(no_tenants)?.start_move(tenant, to)
    }

    /// The last move of each tenant.
    ///
    /// # Errors
    /// The instance runs no system file.
    pub(super) fn moves(&self) -> Result<Vec<MoveProgress>, ArgError> {
        Ok(self.tenants.as_ref().ok_or_else(no_tenants)?.moves.progress())
    }

    /// Answers threads that move tenants; returns whether any asked.
    pub(super) fn answer_moves(&mut self, router: &mut Router) -> bool {
        let mut answered = false;
        for _ in 0..MOST_OF_A_STEP {
            if router.is_replaced() {
                // The new configuration is put in place before the next step.
                return true;
            }
            let request = self.tenants.as_ref().and_then(|it| it.moves.queue.next());
            let Some(request) = request else { break };
            request(self, router);
            answered = true;
        }
        answered
    }

    /// A tenant as the other instance needs it.
    ///
    /// # Errors
    /// There is no such tenant, or a worker is stuck.
    pub(crate) fn tenant_export(
        &mut self,
        router: &mut Router,
        tenant: &str,
    ) -> Result<TenantExport, String> {
        let tenants = self.its_tenants()?;
        let number = tenants.number_of(tenant).map_err(|error| error.to_string())?;
        let text = tenants.text_to_send(number);
        let found = router.state_places(tenant).map_err(|error| error.to_string())?;
        let anew = found.others.into_iter().map(|(name, class)| (name, class.to_owned()));
        Ok(TenantExport { text, places: found.places.into(), anew: anew.collect() })
    }

    /// Reads some of a tenant's state from a position on; returns the position behind it, if there is more.
    ///
    /// # Errors
    /// A worker is stuck.
    pub(crate) fn export_tenant(
        &mut self,
        router: &mut Router,
        tenant: &str,
        places: &[StatePlace],
        all: bool,
        epoch: StateEpoch,
        from: StatePosition,
    ) -> Result<(Vec<StateChange>, Option<StatePosition>), String> {
        let (mut changes, mut next) = (Vec::new(), Some(from));
        for _ in 0..PARTS {
            let Some(position) = next else { break };
            let part = router.export_state(tenant, places, all, epoch, position);
            let (more, position) = part.map_err(|error| error.to_string())?;
            changes.extend(more);
            next = position;
        }
        Ok((changes, next))
    }

    /// Has the tasks and timers of a tenant wait, or go on.
    ///
    /// # Errors
    /// A worker is stuck.
    pub(crate) fn hold_tenant(
        &mut self,
        router: &mut Router,
        tenant: &str,
        held: bool,
    ) -> Result<(), String> {
        let handler = format!("{}.held", account_of(tenant));
        router.write(&handler, &held.to_string()).map_err(|error| error.to_string())
    }

    /// Ends the move of a tenant to another instance.
    ///
    /// # Errors
    /// The tenant cannot be removed here, or cannot go on.
    pub(crate) fn end_departure(
        &mut self,
        router: &mut Router,
        tenant: &str,
        phase: MovePhase,
    ) -> Result<(), String> {
        match phase {
            MovePhase::Done => {
                let reader = self.reader();
                let tenants = self.its_tenants()?;
                let number = tenants.number_of(tenant).map_err(|error| error.to_string())?;
                let removed =
                    tenants.prepare_change(router, &reader, number, TenantChange::Remove, None);
                removed.map_err(|error| error.to_string())
            }
            MovePhase::Failed => self.hold_tenant(router, tenant, false),
            _ => Ok(()),
        }
    }

    /// Prepares the configuration of a tenant that comes from another instance; it is held until its state has come.
    ///
    /// # Errors
    /// The tenant cannot come: the reason.
    pub(crate) fn begin_arrival(
        &mut self,
        router: &mut Router,
        tenant: &str,
        text: &str,
        version: &str,
    ) -> Result<(), String> {
        let reader = self.reader();
        let tenants = self.its_tenants()?;
        let number = tenants.number_of(tenant).map_err(|error| error.to_string())?;
        let own = crate::program::version();
        if version != own {
            return Err(format!("it comes from version {version}, and this is {own}"));
        }
        if tenants.configurations.system().tenants[number].process.is_some() {
            return Err("it has a process of its own here, whose state cannot be set".to_owned());
        }
        if !tenants.configurations.graph_of(number).elements.is_empty() {
            return Err(
                "it runs here already; `castanet tenants remove` makes room here".to_owned()
            );
        }
        tenants.check_stays(tenant).map_err(|error| error.to_string())?;
        tenants.put_arrival(router, &reader, number, text)?;
        tenants.moves.arrivals.insert(tenant.to_owned());
        Ok(())
    }

    /// Looks whether the configuration of a tenant that comes has started.
    ///
    /// # Errors
    /// Elements that could not start.
    pub(crate) fn check_arrival(
        &mut self,
        router: &mut Router,
        tenant: &str,
    ) -> Result<(), String> {
        let errors = router.take_start_errors();
        let own: Vec<&str> =
            errors.lines().filter(|line| line.contains(&format!("{tenant}/"))).collect();
        if own.is_empty() { Ok(()) } else { Err(own.join("\n")) }
    }

    /// Has a tenant go on whose state has come.
    ///
    /// # Errors
    /// A worker is stuck.
    pub(crate) fn end_arrival(
        &mut self,
        router: &mut Router,
        tenant: &str,
        places: &[StatePlace],
    ) -> Result<(), String> {
        let tenants = self.its_tenants()?;
        let number = tenants.number_of(tenant).map_err(|error| error.to_string())?;
        router.resume_with_state(tenant, places).map_err(|error| error.to_string())?;
        let handler = format!("{}.held", account_of(tenant));
        router.write(&handler, "false").map_err(|error| error.to_string())?;
        tenants.moves.arrivals.remove(tenant);
        tenants.configurations = tenants.configurations.with_hold(number, false);
        if let Some(store) = tenants.configurations.store() {
            let text = tenants.configurations.installed_text(number);
            let stored = store.stage(tenant, text).and_then(|stored| stored.commit());
            if let Err(error) = stored {
                complain(format_args!("castanet: tenant {tenant}: {error}"));
            }
        }
        Ok(())
    }

    /// Has a tenant run nothing whose state has not come.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(crate) fn cancel_arrival(
        &mut self,
        router: &mut Router,
        tenant: &str,
    ) -> Result<(), String> {
        let reader = self.reader();
        let tenants = self.its_tenants()?;
        if !tenants.moves.arrivals.remove(tenant) {
            return Ok(());
        }
        let number = tenants.number_of(tenant).map_err(|error| error.to_string())?;
        tenants.put_arrival(router, &reader, number, "")
    }
}
