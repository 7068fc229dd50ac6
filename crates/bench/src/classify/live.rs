//! Rules that come and go while packets flow.

use crate::measure::{are_calm, middle};
use crate::router::{build, count, run_counted};
use castanet_element::class::Library;
use castanet_runtime::router::Router;
use std::path::Path;
use std::time::Duration;

/// Cost of rule changes while packets flow.
pub(super) struct LiveCost {
    /// Changes a second, each in force when it is answered.
    pub(super) changes: f64,
    /// Packet rate during changes, as a share of the rate without changes.
    pub(super) rate: f64,
}

/// Frames in use.
const FRAMES: usize = 4096;
/// Runs of each side in turn, each as long as a part of what was asked for: a script needs time
/// to begin.
const ROUNDS: usize = 60;
const PART: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(20);
/// Maximum number of runs until one of them has packets.
const MOST_RUNS: u32 = 50;
/// Rounds where less time was asked for, as in a trial run.
const FEW: usize = 3;

/// A worker that replays packets through the rules of a file, and a script that adds `rule`
/// behind all `rules` and deletes it again, thousands of times a second. Rates are by the clock:
/// the script runs on another core.
pub(super) fn live(
    file: &Path,
    rules: usize,
    rule: &str,
    time: Duration,
    library: &Library,
) -> Result<LiveCost, String> {
    let packets = format!(
        "ring :: BenchRing({FRAMES}) -> m :: Middlebox(FILE {}) -> ring;\n",
        file.display()
    );
    let script = format!(
        "Script(label again, write m.command {rule}, write m.delete {}, wait 20us, goto again);",
        rules + 1
    );
    let time = (time / PART).max(SHORTEST);
    let mut calm = build(&packets, FRAMES, 1, true, library)?;
    let mut changing = build(&(packets + &script), FRAMES, 1, true, library)?;
    let rounds = if time > SHORTEST { ROUNDS } else { FEW };
    let (mut alone, mut meanwhile, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.push(packets_of(&mut calm, time));
        let before = last(&mut changing, rules)?;
        let (packets, undisturbed) = packets_of(&mut changing, time);
        meanwhile.push((packets, undisturbed));
        // Each rule comes and goes.
        changes.push((2.0 * (last(&mut changing, rules)? - before) as f64, undisturbed));
    }
    let [alone, meanwhile, changes] =
        [alone, meanwhile, changes].map(|it| middle(it.into_iter()).0);
    Ok(LiveCost { changes: changes / time.as_secs_f64(), rate: meanwhile / alone })
}

/// The packets of a run, and whether cores were at full speed before and after.
fn packets_of(router: &mut Router, time: Duration) -> (f64, bool) {
    let was_calm = are_calm();
    let (mut packets, mut runs) = (0, 0);
    // A loaded machine may leave the worker no time in a short run.
    while packets == 0 && runs < MOST_RUNS {
        packets = run_counted(router, time, |router| count(router, "ring.count"));
        runs += 1;
    }
    (packets as f64 / f64::from(runs), was_calm && are_calm())
}

/// The last rule's identifier: those of `rules` came first, and the last command says it.
fn last(router: &mut Router, rules: usize) -> Result<u64, String> {
    let answer = router.read("m.said").map_err(|error| error.to_string())?;
    let behind = answer.split_once(" id").map_or("", |(_, behind)| behind);
    let number = behind.split(|c: char| !c.is_ascii_digit()).next();
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or(rules as u64))
}
