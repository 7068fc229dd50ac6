//! `DelayUnqueue`: from pull to push, later.

use castanet_engine::prelude::*;

/// Pulls packets and pushes each on when its time stamp is old enough.
///
/// Packets without a time stamp get that of the moment they are pulled; those
/// that go on carry the time when they do.
///
/// ```click
/// in -> q :: Queue -> d :: DelayUnqueue(1s) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60 ; time 1000000002
/// = q.length 1
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 udp len 60 ; time 1000000001.000000000
/// = d.delay 1s
/// ! d.delay 500ms
/// + 1.5s
/// < out 1.0.0.2 > 2.0.0.2 udp len 60 ; time 1000000002.500000000
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", ports = "1/1", processing = "l/h")]
pub struct DelayUnqueue {
    /// How old packets must be.
    #[arg(live)]
    delay: Duration,
}

/// The packet that waits.
#[derive(Default, Local)]
pub struct Waiting {
    packet: Option<Packet>,
}

impl Source for DelayUnqueue {
    type Local = Waiting;
    type Fate = ();

    fn ask(&self, waiting: &mut Waiting, n: usize, cx: &mut Cx) -> Asked {
        let now = cx.now();
        for _ in 0..n {
            let next = waiting.packet.take().or_else(|| cx.pull(0, 1).pop());
            let Some(mut packet) = next else { return Asked::Empty };
            if packet.timestamp() == 0 {
                packet.set_timestamp(now.0);
            }
            let due = Time(packet.timestamp()) + self.delay;
            if due > now {
                waiting.packet = Some(packet);
                return Asked::At(due);
            }
            packet.set_timestamp(now.0);
            cx.emit((), packet);
        }
        Asked::Again
    }

    fn held(&self, waiting: &Waiting) -> usize {
        usize::from(waiting.packet.is_some())
    }
}
