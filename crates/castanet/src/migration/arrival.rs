//! A tenant that comes from another instance: the thread that receives it.

use super::TenantControl;
use super::channel::SecureChannel;
use super::message::{ArrivalMessage, ArrivalReport, DepartureMessage, Offer};
use crate::control_queue::ControlSender;
use crate::instance::InstanceService;
use crate::terminal::complain;
use castanet_element::portable_state::StateEpoch;
use castanet_runtime::router::{StateChange, StatePlace};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes that the control thread puts in place at once.
const PART: usize = 1024;
/// Elements of which a report says what was lost.
const MOST_LOST: usize = 100;

/// The arrival of a tenant.
pub(super) struct Arrival {
    channel: SecureChannel,
    tenant: TenantControl,
    places: Arc<[StatePlace]>,
    epoch: StateEpoch,
    /// By place and key, in order: the records of all fields but tables, which come in place at the end.
    staged: BTreeMap<(u32, Vec<u8>), StateChange>,
    lost: BTreeMap<String, String>,
    /// Whether the tenant runs here.
    has_come: bool,
}

/// Receives a tenant over a connection; returns a line about it.
///
/// # Errors
/// The tenant does not run here.
pub(super) fn receive(
    mut channel: SecureChannel,
    control: ControlSender<InstanceService>,
) -> Result<String, String> {
    let DepartureMessage::Offer(offer) = channel.receive()? else {
        return Err("it does not say which tenant is to come".to_owned());
    };
    let Offer { version, tenant, text, places } = offer;
    let tenant = TenantControl { tenant, control };
    let begun = tenant.ask(move |service, router, tenant| {
        let epoch = StateEpoch(router.clock().now());
        service.begin_arrival(router, tenant, &text, &version).map(|()| epoch)
    });
    let epoch = match begun {
        Ok(epoch) => epoch,
        Err(reason) => {
            channel.send(&ArrivalMessage::Refused(reason.clone()))?;
            return Err(format!("tenant {}: {reason}", tenant.tenant));
        }
    };
    let (staged, lost) = (BTreeMap::new(), BTreeMap::new());
    let (places, has_come) = (places.into(), false);
    let mut arrival = Arrival { channel, tenant, places, epoch, staged, lost, has_come };
    arrival.run().map_err(|reason| {
        // The other instance may be gone, which is a reason of its own.
        _ = arrival.channel.send(&ArrivalMessage::Refused(reason.clone()));
        format!("tenant {}: {reason}", arrival.tenant.tenant)
    })
}

/// Removes a tenant that has not come, after a panic too.
impl Drop for Arrival {
    fn drop(&mut self) {
        if self.has_come {
            return;
        }
        let cancelled =
            self.tenant.ask(|service, router, tenant| service.cancel_arrival(router, tenant));
        if let Err(error) = cancelled {
            complain(format_args!("castanet: tenant {}: {error}", self.tenant.tenant));
        }
    }
}

impl Arrival {
    fn run(&mut self) -> Result<String, String> {
        // The configuration is in place when the control thread answers again.
        self.tenant.ask(|service, router, tenant| service.check_arrival(router, tenant))?;
        self.channel.send(&ArrivalMessage::Ready)?;
        let mut count = 0;
        loop {
            match self.channel.receive()? {
                DepartureMessage::Changes(changes) => {
                    count += changes.len();
                    self.take(changes)?;
                }
                DepartureMessage::EndOfRound => self.channel.send(&ArrivalMessage::Ready)?,
                DepartureMessage::Commit => break,
                DepartureMessage::Offer(_) => return Err("it offers two tenants".to_owned()),
            }
        }
        let staged: Vec<StateChange> = std::mem::take(&mut self.staged).into_values().collect();
        self.import(staged)?;
        let places = self.places.clone();
        self.tenant
            .ask(move |service, router, tenant| service.end_arrival(router, tenant, &places))?;
        self.has_come = true;
        let lost: Vec<(String, String)> = std::mem::take(&mut self.lost).into_iter().collect();
        let tenant = &self.tenant.tenant;
        let line = format!("tenant {tenant} has come from another instance, with {count} records");
        // The tenant runs here, whether the other instance hears of it or not.
        let told = self.channel.send(&ArrivalMessage::Running(ArrivalReport { lost }));
        let doubt = told.err().map(|error| format!("; the other instance may not know: {error}"));
        Ok(line + &doubt.unwrap_or_default())
    }

    /// Puts changes of tables in place, and keeps all others for the end.
    fn take(&mut self, changes: Vec<StateChange>) -> Result<(), String> {
        let mut now = Vec::new();
        for change in changes {
            match self.places.get(change.place as usize) {
                Some(place) if place.is_table => now.push(change),
                Some(_) => {
                    let key = (change.place, change.record.key.clone());
                    self.staged.insert(key, change);
                }
                None => return Err("a change belongs to no place".to_owned()),
            }
        }
        self.import(now)
    }

    fn import(&mut self, changes: Vec<StateChange>) -> Result<(), String> {
        let epoch = self.epoch;
        for part in changes.chunks(PART) {
            let (part, places) = (part.to_vec(), self.places.clone());
            let failed = self.tenant.ask(move |_, router, tenant| {
                let failed = router.import_state(tenant, &places, part, epoch);
                failed.map_err(|error| error.to_string())
            });
            for (element, error) in failed? {
                if self.lost.len() < MOST_LOST {
                    self.lost.insert(element, error.to_string());
                }
            }
        }
        Ok(())
    }
}
