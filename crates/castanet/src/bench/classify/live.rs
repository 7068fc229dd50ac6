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
const ROUNDS: usize = 15;
const PART: u32 = 5;
const SHORTEST: Duration = Duration::from_millis(20);

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
    let (mut all, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (was_calm, before) = (are_calm(), last(&mut changing, rules)?);
        let packets = [&mut calm, &mut changing]
            .map(|router| run_counted(router, time, |router| count(router, "ring.count")));
        // Each rule comes and goes.
        let changes = 2 * (last(&mut changing, rules)? - before);
        let undisturbed = was_calm && are_calm();
        all.push((changes as f64 / time.as_secs_f64(), undisturbed));
        rates.push((packets[1] as f64 / packets[0] as f64, undisturbed));
    }
    Ok(Live { changes: middle(all.into_iter()).0, rate: middle(rates.into_iter()).0 })
}

/// The last rule's identifier: those of `rules` came first, and the last command says it.
fn last(router: &mut Router, rules: usize) -> Result<u64, String> {
    let said = router.read("m.said").map_err(|error| error.to_string())?;
    let behind = said.split_once(" id").map_or("", |(_, behind)| behind);
    let number = behind.split(|c: char| !c.is_ascii_digit()).next();
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or(rules as u64))
}
