//! A tenant that moves to another instance: the thread that sends it.

use super::TenantControl;
use super::channel::SecureChannel;
use super::key::MigrationKey;
use super::message::{ArrivalMessage, ArrivalReport, DepartureMessage, Offer};
use super::progress::{MovePhase, MoveProgress, SharedProgress};
use crate::control_queue::ControlSender;
use crate::instance::{InstanceService, TenantExport};
use castanet_element::portable_state::StateEpoch;
use castanet_runtime::router::{StateChange, StatePosition};
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Rounds of copying before the tenant stands still.
const MOST_ROUNDS: u32 = 8;
/// Changes of a round with which the tenant stands still: few, beside its other state.
const FEW_CHANGES: u64 = 64;
/// Changes of one message.
const MESSAGE: usize = 4096;

/// The move of a tenant to another instance, on a thread of its own.
pub(crate) struct Departure {
    progress: SharedProgress,
    /// The thread, which ends by itself.
    thread: JoinHandle<()>,
}

impl Departure {
    /// Begins to move a tenant to the instance that listens at an address.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn start(
        tenant: String,
        to: String,
        key: MigrationKey,
        control: ControlSender<InstanceService>,
    ) -> Result<Departure, String> {
        let progress = SharedProgress::default();
        progress.change(|it| (it.tenant, it.to) = (tenant.clone(), to.clone()));
        let run = DepartureRun {
            tenant: TenantControl { tenant, control },
            to,
            key,
            progress: progress.clone(),
            begun: Instant::now(),
            sent: HashMap::new(),
            hasher: RandomState::new(),
            round: 0,
        };
        let thread = std::thread::Builder::new().name("castanet-move".to_owned());
        let thread = thread.spawn(move || run.run()).map_err(|error| error.to_string())?;
        Ok(Departure { progress, thread })
    }

    /// The progress.
    pub(crate) fn progress(&self) -> MoveProgress {
        let is_gone = self.thread.is_finished();
        let mut progress = self.progress.get();
        if is_gone && !progress.is_over() {
            progress.phase = MovePhase::Unknown;
            progress.error = Some("the thread of the move was lost to a panic".to_owned());
        }
        progress
    }
}

/// The reason for which a move ends.
enum Failure {
    /// The tenant goes on here.
    Here(String),
    /// It may run at the other instance.
    Unknown(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Here(reason)
    }
}

/// The work of the thread.
struct DepartureRun {
    tenant: TenantControl,
    to: String,
    key: MigrationKey,
    progress: SharedProgress,
    begun: Instant,
    /// By place and key of a table's record: the hash of its value as it was sent, and the round in which it was seen.
    sent: HashMap<(u32, Vec<u8>), (u64, u32)>,
    hasher: RandomState,
    round: u32,
}

impl DepartureRun {
    fn run(mut self) {
        let ended = self.move_tenant();
        let seconds = self.begun.elapsed().as_secs_f64();
        let (phase, error) = match ended {
            Ok(()) => (MovePhase::Done, None),
            Err(Failure::Here(error)) => (MovePhase::Failed, Some(error)),
            Err(Failure::Unknown(error)) => (MovePhase::Unknown, Some(error)),
        };
        let ended = self
            .tenant
            .ask(move |service, router, tenant| service.end_departure(router, tenant, phase));
        self.progress.change(|it| {
            (it.phase, it.seconds, it.error) = (phase, seconds, error.or(ended.err()));
        });
    }

    fn move_tenant(&mut self) -> Result<(), Failure> {
        let mut channel = SecureChannel::connect(&self.to, &self.key)?;
        let it =
            self.tenant.ask(|service, router, tenant| service.tenant_export(router, tenant))?;
        self.progress.change(|progress| progress.anew.clone_from(&it.anew));
        channel.send(&DepartureMessage::Offer(Offer {
            version: crate::program::version().to_owned(),
            tenant: self.tenant.tenant.clone(),
            text: it.text.clone(),
            places: it.places.to_vec(),
        }))?;
        let it = Arc::new(it);
        let epoch = self.tenant.ask(|_, router, _| Ok(StateEpoch(router.clock().now())))?;
        ready(&mut channel)?;
        self.copy(&mut channel, &it, epoch)?;
        self.hand_over(&mut channel, &it, epoch)
    }

    /// Copies tables while the tenant goes on, until little changes from one round to the next.
    fn copy(
        &mut self,
        channel: &mut SecureChannel,
        it: &Arc<TenantExport>,
        epoch: StateEpoch,
    ) -> Result<(), String> {
        let mut before = u64::MAX;
        while self.round < MOST_ROUNDS {
            let changes = self.send_changes(channel, it, false, epoch)?;
            channel.send(&DepartureMessage::EndOfRound)?;
            ready(channel)?;
            self.note(MovePhase::Copy, channel);
            if changes <= FEW_CHANGES || changes > before / 2 {
                return Ok(());
            }
            before = changes;
        }
        Ok(())
    }

    /// Has the tenant stand still, sends what is left, and has it go on at the other instance.
    fn hand_over(
        &mut self,
        channel: &mut SecureChannel,
        it: &Arc<TenantExport>,
        epoch: StateEpoch,
    ) -> Result<(), Failure> {
        let stopped = Instant::now();
        self.tenant.ask(|service, router, tenant| service.hold_tenant(router, tenant, true))?;
        self.progress.change(|progress| progress.phase = MovePhase::Stop);
        let last = self.send_changes(channel, it, true, epoch)?;
        channel.send(&DepartureMessage::Commit)?;
        let report = match channel.receive() {
            Ok(ArrivalMessage::Running(report)) => report,
            Ok(ArrivalMessage::Refused(reason)) => return Err(Failure::Here(refusal(&reason))),
            Ok(ArrivalMessage::Ready) => return Err(Failure::Here(OUT_OF_ORDER.to_owned())),
            Err(error) => return Err(Failure::Unknown(error)),
        };
        let stop = stopped.elapsed().as_secs_f64();
        self.note(MovePhase::Stop, channel);
        let ArrivalReport { lost } = report;
        self.progress.change(|progress| {
            (progress.stop_seconds, progress.last_records, progress.lost) =
                (Some(stop), last, lost);
        });
        Ok(())
    }

    /// Sends what has changed since the round before: tables only, unless `all`. Returns the number of changes.
    fn send_changes(
        &mut self,
        channel: &mut SecureChannel,
        it: &Arc<TenantExport>,
        all: bool,
        epoch: StateEpoch,
    ) -> Result<u64, String> {
        self.round += 1;
        let mut from = Some(StatePosition::default());
        let (mut changes, mut sent) = (Vec::new(), 0);
        while let Some(position) = from {
            let places = it.clone();
            let part = self.tenant.ask(move |service, router, tenant| {
                service.export_tenant(router, tenant, &places.places, all, epoch, position)
            });
            let (part, next) = part?;
            from = next;
            for change in part {
                if self.is_news(it, &change) {
                    changes.push(change);
                }
            }
            sent += self.flush(channel, &mut changes, MESSAGE)?;
        }
        changes.extend(self.removals());
        sent += self.flush(channel, &mut changes, 1)?;
        Ok(sent)
    }

    /// Sends changes if there are so many.
    fn flush(
        &self,
        channel: &mut SecureChannel,
        changes: &mut Vec<StateChange>,
        least: usize,
    ) -> Result<u64, String> {
        if changes.len() < least {
            return Ok(0);
        }
        let count = changes.len() as u64;
        for part in changes.chunks(MESSAGE) {
            channel.send(&DepartureMessage::Changes(part.to_vec()))?;
        }
        changes.clear();
        self.progress.change(|it| {
            it.records += count;
            it.seconds = self.begun.elapsed().as_secs_f64();
        });
        Ok(count)
    }

    /// Whether a record differs from what was sent.
    fn is_news(&mut self, it: &TenantExport, change: &StateChange) -> bool {
        if !it.places.get(change.place as usize).is_some_and(|place| place.is_table) {
            return true;
        }
        let hash = self.hasher.hash_one(&change.record.value);
        match self.sent.entry((change.place, change.record.key.clone())) {
            Entry::Occupied(mut known) => {
                let before = std::mem::replace(known.get_mut(), (hash, self.round));
                before.0 != hash
            }
            Entry::Vacant(place) => {
                place.insert((hash, self.round));
                true
            }
        }
    }

    /// The removals of records that this round has not seen.
    fn removals(&mut self) -> Vec<StateChange> {
        let round = self.round;
        let gone = self.sent.extract_if(|_, (_, seen)| *seen != round);
        gone.map(|((place, key), _)| StateChange::removal(place, key)).collect()
    }

    fn note(&self, phase: MovePhase, channel: &SecureChannel) {
        self.progress.change(|it| {
            (it.phase, it.bytes) = (phase, channel.bytes);
            it.seconds = self.begun.elapsed().as_secs_f64();
            if phase == MovePhase::Copy {
                it.rounds = self.round;
            }
        });
    }
}

/// A message that does not belong here.
const OUT_OF_ORDER: &str = "the other instance answers out of order";

/// A reason of the other instance, for which it takes no tenant.
fn refusal(reason: &str) -> String {
    format!("the other instance says: {reason}")
}

fn ready(channel: &mut SecureChannel) -> Result<(), String> {
    match channel.receive()? {
        ArrivalMessage::Ready => Ok(()),
        ArrivalMessage::Refused(reason) => Err(refusal(&reason)),
        ArrivalMessage::Running(_) => Err(OUT_OF_ORDER.to_owned()),
    }
}
