//! `TimestampDiff`: measures the delay of packets since a `RecordTimestamp`.

use super::number_packet::byte_order;
use super::timestamp_diff_state::TimestampDiffState;
use super::timestamp_table::TimestampTable;
use castanet_element::prelude::*;
use castanet_element::wire::number::read;

/// Measures the delay of packets since a `RecordTimestamp` recorded their numbers.
///
/// Delays are in microseconds, or nanoseconds with NANO. Handlers take the number
/// of the first delay to look at: `d.average 100`, `d.perc 99.9 100`. The second output gets
/// packets that were not recorded, or whose number has already come.
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
/// = d.avg 20000
/// = d.average(1) 30000
/// = d.min 10000
/// = d.max 30000
/// = d.stddev 10000
/// = d.median 30000
/// = d.perc00 10000
/// = d.perc01 10000
/// = d.perc05 10000
/// = d.perc10 10000
/// = d.perc75 30000
/// = d.perc90 30000
/// = d.perc95 30000
/// = d.perc100 30000
/// = d.perc99 30000
/// = d.perc25 10000
/// = d.perc25(1) 30000
/// = d.perc(49.9) 10000
/// = d.perc(0 1) 30000
/// = d.average(2) 0
/// = d.last 30000
/// = d.index 1
/// = d.dump 0: 10000\n1: 30000
/// = d.dump_list 10000\n30000
/// + 30ms
/// > b hex 02 00 00 00 00 00 00 00
/// < seen hex 02 00 00 00 00 00 00 00
/// ~ Packet 2 experienced delay 60 ms > 50 ms
/// = d.count 2
/// ! d.reset
/// = d.average 0
/// = d.index -1
/// ```
#[derive(Element)]
#[element(room = "measure", args = TimestampDiffArgs, processing = "h/h")]
pub struct TimestampDiff {
    table: Shared<TimestampTable>,
    args: TimestampDiffArgs,
}

#[derive(Args)]
pub struct TimestampDiffArgs {
    /// The `RecordTimestamp` that recorded the packets.
    #[arg]
    recorder: String,
    /// Offset of the number in the packet, in bytes.
    #[arg(keyword, default = 40)]
    offset: u32,
    /// The most delays to store, the last ones; 16777216 if 0.
    #[arg(keyword, default = 0)]
    n: usize,
    /// Milliseconds beyond which a delay is not counted, but reported if VERBOSE; no limit if 0.
    #[arg(keyword, default = 1000)]
    maxdelay: u64,
    /// Whether delays are in nanoseconds.
    #[arg(keyword, default = false)]
    nano: bool,
    /// Measures one of so many packets.
    #[arg(keyword, default = 1, range = 1..)]
    sample: u32,
    /// Whether to report delays beyond MAXDELAY.
    #[arg(keyword, default = false)]
    verbose: bool,
}

#[derive(Fate)]
pub enum TimestampDiffExit {
    /// Packets that were recorded.
    Known,
    /// Packets that were not recorded, or whose number has already come.
    #[optional]
    Unknown,
}

impl Build for TimestampDiff {
    type Args = TimestampDiffArgs;

    fn build(args: TimestampDiffArgs, setup: &Setup) -> Result<Self, ArgError> {
        let wrong = "RECORDER must be a valid RecordTimestamp element";
        let table = setup.shared_of(&args.recorder, "RecordTimestamp");
        Ok(TimestampDiff { table: table.map_err(|e| e.reworded(wrong))?, args })
    }
}

impl PerBatch for TimestampDiff {
    type On = on::Any;
    type Local = TimestampDiffState;
    type Fate = TimestampDiffExit;
    const SHARED: bool = true;

    fn batch(&self, state: &mut TimestampDiffState, _: usize, batch: Batch, cx: &mut Cx) {
        let (now, args) = (cx.now(), &self.args);
        let (unit, limit) = if args.nano { (1, args.n) } else { (1000, args.n) };
        state.limit(limit);
        self.table.with(|table| {
            for packet in batch {
                let order = byte_order(table.net_order);
                let number = read(packet.bytes(), args.offset as usize, order);
                let Some(sent) = number.and_then(|number| table.take(number)) else {
                    cx.emit(TimestampDiffExit::Unknown, packet);
                    continue;
                };
                let (delay, max) = (now.since(sent), args.maxdelay);
                let (number, ms) = (number.unwrap_or_default(), delay / 1_000_000);
                if ms <= max || max == 0 {
                    state.record(delay / unit, args.sample);
                } else if args.verbose {
                    let report = format!("Packet {number} experienced delay {ms} ms > {max} ms");
                    cx.chatter(&report);
                }
                cx.emit(TimestampDiffExit::Known, packet);
            }
        });
    }
}
