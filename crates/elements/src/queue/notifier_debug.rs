//! `NotifierDebug`: whether there is anything to pull.

use castanet_engine::prelude::*;

/// Passes pulled packets on, and says whether there were any when somebody pulled last.
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

/// What was pulled.
#[derive(Default, Local)]
#[local(methods)]
pub struct Pulls {
    active: bool,
    /// Packets that were pulled.
    #[read]
    count: u64,
    /// How often there was nothing.
    #[read]
    empty: u64,
}

#[handlers]
impl Pulls {
    /// Whether there was anything when somebody pulled last.
    #[read]
    fn signal(&self) -> &'static str {
        if self.active { "active" } else { "inactive" }
    }
}

impl Source for NotifierDebug {
    type Local = Pulls;
    type Fate = ();

    fn ask(&self, pulls: &mut Pulls, n: usize, cx: &mut Cx) -> Asked {
        let batch = cx.pull(0, n);
        pulls.active = !batch.is_empty();
        pulls.count += batch.len() as u64;
        pulls.empty += u64::from(batch.is_empty());
        cx.emit_batch((), batch);
        Asked::Empty
    }
}
