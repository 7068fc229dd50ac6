//! `SetTimestampDelta`: replaces time stamps by differences.

use super::signed_time::seconds;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Replaces each packet's time stamp by its difference to another time.
///
/// With RANGE it is the time since the first time stamp of all packets, with NOW the
/// time until now, with FIRST the time since the packet's first time stamp annotation.
/// Time stamps of zero do not change.
///
/// ```click
/// in -> d :: SetTimestampDelta -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000004.5
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1.500000000
/// = d.first 1000000003.000000
/// ! d.reset
/// = d.first 0.000000
/// ```
///
/// ```click
/// in -> SetTimestampDelta(TYPE NOW) -> out;  in2 -> SetTimestampDelta(TYPE FIRST) -> out2
/// + 5s
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// < out  1.0.0.1 > 2.0.0.2 udp ; time 2.000000000
/// > in2  1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// < out2 1.0.0.1 > 2.0.0.2 udp ; time 1000000003.000000000
/// ```
#[derive(Element)]
#[element(room = "trace")]
pub struct SetTimestampDelta {
    /// The time from which to count: `RANGE`, `NOW` or `FIRST`.
    #[arg(name = "TYPE", keyword, default = DeltaBase::Range, shown = "RANGE")]
    kind: DeltaBase,
}

/// The argument TYPE.
#[derive(Clone, Copy)]
pub enum DeltaBase {
    Range,
    Now,
    First,
}

impl FromArg for DeltaBase {
    const SYNTAX: &'static str = "RANGE, NOW or FIRST";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_uppercase().as_str() {
            "RANGE" => Ok(DeltaBase::Range),
            "NOW" => Ok(DeltaBase::Now),
            "FIRST" => Ok(DeltaBase::First),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad TYPE, expected RANGE, NOW, or FIRST")),
        }
    }
}

/// The first time stamp, and the time of the burst.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct SetTimestampDeltaState {
    first: i64,
    now: i64,
}

#[handlers]
impl SetTimestampDeltaState {
    /// The first time stamp of all packets.
    #[read]
    fn first(&self) -> String {
        seconds(self.first)
    }
}

impl PerPacket for SetTimestampDelta {
    type On = on::Any;
    type Local = SetTimestampDeltaState;
    type Fate = ();
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut SetTimestampDeltaState, now: Time) {
        state.now = now.0;
    }

    fn packet(&self, state: &mut SetTimestampDeltaState, packet: &mut Packet) {
        let time = packet.timestamp();
        if time == 0 {
            return;
        }
        if state.first == 0 {
            state.first = time;
        }
        packet.set_timestamp(match self.kind {
            DeltaBase::Range => time - state.first,
            DeltaBase::Now => state.now - time,
            DeltaBase::First => time - packet.anno_u64(anno::FIRST_TIMESTAMP) as i64,
        });
    }
}
