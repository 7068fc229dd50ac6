//! The messages by which a tenant moves.

use castanet_runtime::router::{StateChange, StatePlace};
use serde::{Deserialize, Serialize};

/// A message of the instance that a tenant leaves.
#[derive(Serialize, Deserialize)]
pub(super) enum DepartureMessage {
    /// The tenant is to come. Times in records count from the moment at which this is sent.
    Offer(Offer),
    /// Changes of its state.
    Changes(Vec<StateChange>),
    /// All changes of a round were sent; the answer is [`ArrivalMessage::Ready`].
    EndOfRound,
    /// The tenant stands still, and all its state was sent: it goes on at the other instance, whose answer is
    /// [`ArrivalMessage::Running`].
    Commit,
}

/// A tenant that is to come.
#[derive(Serialize, Deserialize)]
pub(super) struct Offer {
    /// The version of Castanet that it comes from.
    pub(super) version: String,
    pub(super) tenant: String,
    /// Its configuration.
    pub(super) text: String,
    /// The fields of its state.
    pub(super) places: Vec<StatePlace>,
}

/// A message of the instance that a tenant comes to.
#[derive(Serialize, Deserialize)]
pub(super) enum ArrivalMessage {
    /// The tenant cannot come, for this reason.
    Refused(String),
    /// All changes so far are in place.
    Ready,
    /// The tenant runs here.
    Running(ArrivalReport),
}

/// A tenant that has come.
#[derive(Serialize, Deserialize)]
pub(super) struct ArrivalReport {
    /// State that could not be put in place: elements, each with a reason.
    pub(super) lost: Vec<(String, String)>,
}
