//! Rules that come and go while packets flow.

use crate::bench::router::{build, count, run_counted};
use castanet_engine::router::Router;
use std::path::Path;
use std::time::Duration;

/// What changes cost while packets flow.
pub(super) struct Live {
    /// Changes a second, each in force when it is answered.
    pub(super) changes: f64,
    /// How many packets go on meanwhile, of as many as without changes.
    pub(super) rate: f64,
}

/// Frames in use.
const FRAMES: usize = 4096;
/// Runs of each side.
const ROUNDS: usize = 3;

/// A worker that replays packets through the rules of a file, and a script that adds `rule`
/// behind all `rules` and deletes it again, thousands of times a second.
pub(super) fn live(file: &Path, rules: usize, rule: &str, time: Duration) -> Result<Live, String> {
    let packets = format!(
        "ring :: BenchRing({FRAMES}) -> m :: Middlebox(FILE {}) -> ring;\n",
        file.display()
    );
    let script = format!(
        "Script(label again, write m.command {rule}, write m.delete {}, wait 20us, goto again);",
        rules + 1
    );
    let mut calm = build(&packets, FRAMES, 1, true)?;
    let mut changing = build(&(packets + &script), FRAMES, 1, true)?;
    let (mut best, mut most) = ([f64::MAX; 2], 0.0_f64);
    for _ in 0..ROUNDS {
        let before = last(&mut changing, rules)?;
        let ns = [&mut calm, &mut changing].map(|router| per_packet(router, time));
        best = [best[0].min(ns[0]), best[1].min(ns[1])];
        // Each rule comes and goes.
        let changes = 2 * (last(&mut changing, rules)? - before);
        most = most.max(changes as f64 / time.as_secs_f64());
    }
    Ok(Live { changes: most, rate: best[0] / best[1] })
}

/// Nanoseconds of a run for each packet.
fn per_packet(router: &mut Router, time: Duration) -> f64 {
    let packets = run_counted(router, time, |router| count(router, "ring.count"));
    time.as_nanos() as f64 / packets as f64
}

/// The last rule's identifier: those of `rules` came first, and the last command says it.
fn last(router: &mut Router, rules: usize) -> Result<u64, String> {
    let said = router.read("m.said").map_err(|error| error.to_string())?;
    let behind = said.split_once(" id").map_or("", |(_, behind)| behind);
    let number = behind.split(|c: char| !c.is_ascii_digit()).next();
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or(rules as u64))
}
