//! Rules that come and go while packets flow.

use crate::bench::measure::{are_calm, middle};
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
/// Runs of each side in turn, each as long as a part of what was asked for: a script needs time
/// to begin.
const ROUNDS: usize = 60;
const PART: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(20);
/// Less of what was asked for is for those who only want to see it run.
const FEW: usize = 3;

/// A worker that replays packets through the rules of a file, and a script that adds `rule`
/// behind all `rules` and deletes it again, thousands of times a second. By the clock: what
/// the script's core does is nobody's loss.
pub(super) fn live(file: &Path, rules: usize, rule: &str, time: Duration) -> Result<Live, String> {
    let packets = format!(
        "ring :: BenchRing({FRAMES}) -> m :: Middlebox(FILE {}) -> ring;\n",
        file.display()
    );
    let script = format!(
        "Script(label again, write m.command {rule}, write m.delete {}, wait 20us, goto again);",
        rules + 1
    );
    let time = (time / PART).max(SHORTEST);
    let mut calm = build(&packets, FRAMES, 1, true)?;
    let mut changing = build(&(packets + &script), FRAMES, 1, true)?;
    let rounds = if time > SHORTEST { ROUNDS } else { FEW };
    let mut packets = [Vec::new(), Vec::new()];
    let mut changes = Vec::new();
    for _ in 0..rounds {
        for (router, packets) in [&mut calm, &mut changing].into_iter().zip(&mut packets) {
            let (was_calm, before) = (are_calm(), last(router, rules)?);
            let count = run_counted(router, time, |router| count(router, "ring.count"));
            let undisturbed = was_calm && are_calm();
            packets.push((count as f64, undisturbed));
            // Each rule comes and goes.
            changes.push((2.0 * (last(router, rules)? - before) as f64, undisturbed));
        }
    }
    let [calm, changing] = packets.map(|packets| middle(packets.into_iter()).0);
    let changes = changes.into_iter().filter(|(changes, _)| *changes > 0.0);
    Ok(Live { changes: middle(changes).0 / time.as_secs_f64(), rate: changing / calm })
}

/// The last rule's identifier: those of `rules` came first, and the last command says it.
fn last(router: &mut Router, rules: usize) -> Result<u64, String> {
    let said = router.read("m.said").map_err(|error| error.to_string())?;
    let behind = said.split_once(" id").map_or("", |(_, behind)| behind);
    let number = behind.split(|c: char| !c.is_ascii_digit()).next();
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or(rules as u64))
}
