//! Drops: why packets were dropped, with an example of each reason.

use castanet_element::error::ArgError;
use castanet_runtime::router::{DropRecord, Router};
use serde::{Deserialize, Serialize};

/// Packets that an element has dropped for one reason.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DropCount {
    pub(crate) element: String,
    pub(crate) class: String,
    pub(crate) reason: String,
    /// Packets since the start.
    pub(crate) packets: u64,
    /// The sentences that say what the reason means, and what to do.
    pub(crate) meaning: String,
    /// The last packet that was kept as an example.
    pub(crate) example: Option<ExamplePacket>,
}

/// A dropped packet.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ExamplePacket {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Its length in bytes.
    pub(crate) length: usize,
    /// The packet in one line.
    pub(crate) text: String,
}

/// The drops of a router by element and reason. Workers keep the next packet of each reason as
/// another example.
///
/// # Errors
/// A worker is gone or stuck.
pub(crate) fn report(router: &mut Router) -> Result<Vec<DropCount>, ArgError> {
    let records = router.drop_report(true)?;
    Ok(records.into_iter().map(count).collect())
}

fn count(record: DropRecord) -> DropCount {
    let example = record.example.map(|example| ExamplePacket {
        time: example.time.0,
        length: example.image.length,
        text: example.image.summary(),
    });
    DropCount {
        element: record.name,
        class: record.class,
        reason: record.reason,
        packets: record.count,
        meaning: record.doc,
        example,
    }
}
