//! `DelayUnqueue`: pulls packets and pushes them on after a delay.

use castanet_element::prelude::*;

/// Pulls packets and delays each by a time since its timestamp.
///
/// A packet whose timestamp lies in the first second of 1970 has none, and gets the time at which it
/// is pulled. DELAY is added to the timestamp of a packet that goes on.
///
/// ```click
/// in -> q :: Queue -> d :: DelayUnqueue(1s) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60 ; time 0.5
/// > in 1.0.0.2 > 2.0.0.2 udp len 60 ; time 1000000002
/// = q.length 1
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 udp len 60 ; time 1000000001.000000000
/// = d.delay 1s
/// ! d.delay 500ms
/// + 1.5s
/// < out 1.0.0.2 > 2.0.0.2 udp len 60 ; time 1000000002.500000000
/// > in 1.0.0.3 > 2.0.0.2 udp len 60 ; time 900000000
/// > in 1.0.0.4 > 2.0.0.2 udp len 60 ; time 900000001
/// < out 1.0.0.3 > 2.0.0.2 udp len 60 ; time 900000000.500000000
/// < out 1.0.0.4 > 2.0.0.2 udp len 60 ; time 900000001.500000000
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", ports = "1/1", processing = "l/h")]
pub struct DelayUnqueue {
    /// Time from the timestamp of a packet to the time when it goes on.
    #[arg(live)]
    delay: Duration,
}

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// The packet whose time has not come yet.
#[derive(Default, Local)]
pub struct DelayUnqueueState {
    #[portable]
    packet: Option<Packet>,
}

impl Source for DelayUnqueue {
    type Local = DelayUnqueueState;
    type Fate = ();

    /// All packets that are due go in one turn.
    fn packets_a_turn(&self) -> usize {
        usize::MAX
    }

    fn produce(&self, state: &mut DelayUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now();
        for _ in 0..n {
            let next = state.packet.take().or_else(|| cx.pull(0, 1).pop());
            let Some(mut packet) = next else { return NextRun::Empty };
            if (0..SECOND).contains(&packet.timestamp()) {
                packet.set_timestamp(now.0);
            }
            let due = Time(packet.timestamp()) + self.delay;
            if due > now {
                state.packet = Some(packet);
                return NextRun::At(due);
            }
            packet.set_timestamp(due.0);
            cx.emit((), packet);
        }
        NextRun::Again
    }

    fn held(&self, state: &DelayUnqueueState) -> usize {
        usize::from(state.packet.is_some())
    }
}
