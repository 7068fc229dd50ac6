//! `PrioSched`: pulls from its inputs by strict priority.

use castanet_element::prelude::*;

/// Schedules its inputs by strict priority: pulls from the first one that has packets.
///
/// ```click
/// a -> Queue -> [0] s :: PrioSched -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] s
/// > b 1.0.1.1 > 2.0.0.2 udp len 60
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.1.2 > 2.0.0.2 udp len 60
/// > a 1.0.0.2 > 2.0.0.2 udp len 60
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.1.1 > 2.0.0.2 udp len 60
/// < out 1.0.1.2 > 2.0.0.2 udp len 60
/// ```
#[derive(Element)]
#[element(room = "schedule", ports = "1-/1", processing = "l/l", alias = "SimplePrioSched")]
pub struct PrioSched;

impl Source for PrioSched {
    type Local = ();
    type Fate = ();

    fn produce(&self, _: &mut (), n: usize, cx: &mut Cx) -> NextRun {
        let mut left = n;
        for input in 0..cx.inputs() {
            if left == 0 {
                break;
            }
            let batch = cx.pull(input, left);
            left -= batch.len();
            cx.emit_batch((), batch);
        }
        NextRun::Empty
    }
}
