//! `SetTimestampDelta`: times since the first.

use super::time_span::seconds;
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Puts in place of each packet's time stamp how long after something else it is.
///
/// RANGE is after the first time stamp that was seen, NOW is before now, FIRST
/// after that of the first of the packets that this one stands for. Time stamps of
/// zero stay.
///
/// ```click
/// in -> d :: SetTimestampDelta -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000003
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000004.5
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1.500000000
/// = d.first 1000000003.000000000
/// ! d.reset
/// = d.first 0.000000000
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
    /// What times are counted from.
    #[arg(name = "TYPE", keyword, default = Kind::Range)]
    kind: Kind,
}

/// `RANGE`, `NOW` or `FIRST`.
#[derive(Clone, Copy)]
pub enum Kind {
    Range,
    Now,
    First,
}

impl FromArg for Kind {
    const SYNTAX: &'static str = "RANGE, NOW or FIRST";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_uppercase().as_str() {
            "RANGE" => Ok(Kind::Range),
            "NOW" => Ok(Kind::Now),
            "FIRST" => Ok(Kind::First),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad TYPE, expected RANGE, NOW, or FIRST")),
        }
    }
}

/// The first time that was seen.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset)]
pub struct Seen {
    first: i64,
    now: i64,
}

#[handlers]
impl Seen {
    /// The first time stamp that was seen.
    #[read]
    fn first(&self) -> String {
        seconds(self.first)
    }
}

impl PerPacket for SetTimestampDelta {
    type On = on::Any;
    type Local = Seen;
    type Fate = ();
    const SHARED: bool = true;

    fn burst(&self, seen: &mut Seen, now: Time) {
        seen.now = now.0;
    }

    fn packet(&self, seen: &mut Seen, packet: &mut Packet) {
        let time = packet.timestamp();
        if time == 0 {
            return;
        }
        if seen.first == 0 {
            seen.first = time;
        }
        packet.set_timestamp(match self.kind {
            Kind::Range => time - seen.first,
            Kind::Now => seen.now - time,
            Kind::First => time - packet.anno_u64(anno::FIRST_TIMESTAMP) as i64,
        });
    }
}
