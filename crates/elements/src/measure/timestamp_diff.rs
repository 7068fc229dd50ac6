//! `TimestampDiff`: how long packets were on their way.

use super::measured::Measured;
use super::number_packet::order;
use super::record_timestamp::Stamps;
use castanet_engine::prelude::*;
use castanet_engine::wire::number::read;

/// Measures how long packets were on their way since a `RecordTimestamp` saw their numbers.
///
/// Delays are in microseconds, or nanoseconds. Handlers take a number of
/// delays to leave out at the beginning: `d.average 100`. The second output
/// is for packets that were not recorded, or have come already.
///
/// ```click
/// a -> NumberPacket(0) -> r :: RecordTimestamp(OFFSET 0) -> sent
/// b -> d :: TimestampDiff(r, OFFSET 0, MAXDELAY 50, N 100, VERBOSE true) -> seen;  d[1] -> unknown
/// > a hex 00
/// > a hex 00
/// > a hex 00
/// < sent hex 00 00 00 00 00 00 00 00
/// < sent hex 01 00 00 00 00 00 00 00
/// < sent hex 02 00 00 00 00 00 00 00
/// + 10ms
/// > b hex 00 00 00 00 00 00 00 00
/// + 20ms
/// > b hex 01 00 00 00 00 00 00 00
/// > b hex 01 00 00 00 00 00 00 00
/// < seen hex 00 00 00 00 00 00 00 00
/// < seen hex 01 00 00 00 00 00 00 00
/// < unknown hex 01 00 00 00 00 00 00 00
/// = d.average 20000
/// = d.average(1) 30000
/// = d.min 10000
/// = d.max 30000
/// = d.stddev 10000
/// = d.median 30000
/// = d.perc00 10000
/// = d.perc99 30000
/// = d.perc25 10000
/// = d.last 30000
/// = d.dump 0: 10000\n1: 30000
/// + 30ms
/// > b hex 02 00 00 00 00 00 00 00
/// < seen hex 02 00 00 00 00 00 00 00
/// ~ Packet 2 experienced delay 60 ms > 50 ms
/// = d.count 2
/// ! d.reset
/// = d.average -1
/// ```
#[derive(Element)]
#[element(room = "measure", args = Which, processing = "h/h")]
pub struct TimestampDiff {
    stamps: Link<Stamps>,
    settings: Which,
}

#[derive(Args)]
pub struct Which {
    /// The `RecordTimestamp` that saw packets leave.
    #[arg]
    recorder: String,
    /// Where in the packet its number is.
    #[arg(keyword, default = 40)]
    offset: u32,
    /// The most delays to keep, the last ones; 16777216 if 0.
    #[arg(keyword, default = 0)]
    n: usize,
    /// Milliseconds beyond which a delay is said, if VERBOSE, rather than counted.
    #[arg(keyword, default = 1000)]
    maxdelay: u64,
    /// Whether delays are in nanoseconds.
    #[arg(keyword, default = false)]
    nano: bool,
    /// Of how many packets to measure one.
    #[arg(keyword, default = 1, range = 1..)]
    sample: u32,
    /// Whether to say which delays are too long.
    #[arg(keyword, default = false)]
    verbose: bool,
}

#[derive(Fate)]
pub enum Way {
    /// Packets that were recorded.
    Known,
    /// Packets that were not, or came before.
    #[optional]
    Unknown,
}

impl Build for TimestampDiff {
    type Args = Which;

    fn build(args: Which, setup: &Setup) -> Result<Self, ArgError> {
        let wrong = "RECORDER must be a valid RecordTimestamp element";
        let stamps = setup.linked(&args.recorder, "RecordTimestamp");
        Ok(TimestampDiff { stamps: stamps.map_err(|e| e.reworded(wrong))?, settings: args })
    }
}

impl PerBatch for TimestampDiff {
    type On = on::Any;
    type Local = Measured;
    type Fate = Way;
    const SHARED: bool = true;

    fn batch(&self, measured: &mut Measured, _: usize, batch: Batch, cx: &mut Cx) {
        let (now, settings) = (cx.now(), &self.settings);
        let (unit, limit) = if settings.nano { (1, settings.n) } else { (1000, settings.n) };
        measured.limit(limit);
        self.stamps.with(|stamps| {
            for packet in batch {
                let order = order(stamps.net_order);
                let number = read(packet.bytes(), settings.offset as usize, order);
                let Some(sent) = number.and_then(|number| stamps.take(number)) else {
                    cx.emit(Way::Unknown, packet);
                    continue;
                };
                let (delay, most) = (now.since(sent), settings.maxdelay);
                let (number, ms) = (number.unwrap_or_default(), delay / 1_000_000);
                if ms <= most || most == 0 {
                    measured.take(delay / unit, settings.sample);
                } else if settings.verbose {
                    let said = format!("Packet {number} experienced delay {ms} ms > {most} ms");
                    cx.chatter(&said);
                }
                cx.emit(Way::Known, packet);
            }
        });
    }
}
