//! `NotifierDebug`: tells whether the last pull returned packets.

use castanet_element::prelude::*;

/// Passes pulled packets on and tells whether the last pull returned any.
///
/// ```click
/// in -> q :: Queue -> d :: NotifierDebug -> u :: Unqueue(ACTIVE false) -> out
/// = d.signal inactive
/// > in  1.0.0.1 > 2.0.0.2 udp
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = d.signal inactive
/// = d.count 1
/// ```
#[derive(Element)]
#[element(room = "queue", ports = "1/1", processing = "l/l")]
pub struct NotifierDebug;

/// Result of the last pull, and counters of all pulls.
#[derive(Default, Local)]
#[local(methods)]
pub struct NotifierDebugState {
    active: bool,
    /// Packets that were pulled.
    #[read]
    #[portable]
    count: u64,
    /// Number of pulls that returned no packet.
    #[read]
    #[portable]
    empty: u64,
}

#[handlers]
impl NotifierDebugState {
    /// `active` if the last pull returned packets, else `inactive`.
    #[read]
    fn signal(&self) -> &'static str {
        if self.active { "active" } else { "inactive" }
    }
}

impl Source for NotifierDebug {
    type Local = NotifierDebugState;
    type Fate = ();

    fn produce(&self, state: &mut NotifierDebugState, n: usize, cx: &mut Cx) -> NextRun {
        let batch = cx.pull(0, n);
        state.active = !batch.is_empty();
        state.count += batch.len() as u64;
        state.empty += u64::from(batch.is_empty());
        cx.emit_batch((), batch);
        NextRun::Empty
    }
}
