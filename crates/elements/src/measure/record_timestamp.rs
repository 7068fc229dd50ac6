//! `RecordTimestamp`: records the time of each numbered packet.

use super::number_packet::byte_order;
use super::timestamp_table::TimestampTable;
use castanet_element::prelude::*;
use castanet_element::wire::number::read;

/// Records the time of each packet by its number, for `TimestampDiff`.
///
/// With OFFSET the number is the one that `NumberPacket` has written there; without,
/// packets are numbered from 0 on. With SAMPLE only numbers that it divides are recorded. N
/// numbers, from 0 on, have room; more only with DYNAMIC, or without OFFSET.
/// All packets of a burst have the same time.
///
/// ```click
/// in -> NumberPacket(0) -> r :: RecordTimestamp(N 2, OFFSET 0) -> out
/// back -> d :: TimestampDiff(r, OFFSET 0) -> seen;  d[1] -> unknown
/// > in hex 00
/// < out hex 00 00 00 00 00 00 00 00
/// = r.missed 0
/// + 3ms
/// > back hex 00 00 00 00 00 00 00 00
/// < seen hex 00 00 00 00 00 00 00 00
/// = d.average 3000
/// > in hex 00
/// > in hex 00
/// < out hex 01 00 00 00 00 00 00 00
/// < out hex 02 00 00 00 00 00 00 00
/// = r.missed 1
/// > back hex 02 00 00 00 00 00 00 00
/// < unknown hex 02 00 00 00 00 00 00 00
/// ```
///
/// ```click
/// in -> NumberPacket(0) -> r :: RecordTimestamp(N 2, OFFSET 0, SAMPLE 2) -> d :: TimestampDiff(r, OFFSET 0) -> even
/// d[1] -> odd
/// > in hex 00
/// > in hex 00
/// > in hex 00
/// < even hex 00 00 00 00 00 00 00 00
/// < odd hex 01 00 00 00 00 00 00 00
/// < even hex 02 00 00 00 00 00 00 00
/// = r.missed 0
/// > in hex 00
/// > in hex 00
/// < odd hex 03 00 00 00 00 00 00 00
/// < odd hex 04 00 00 00 00 00 00 00
/// = r.missed 1
/// ```
///
/// ```click
/// in -> NumberPacket(0) -> r :: RecordTimestamp(N 1) -> d :: TimestampDiff(r, OFFSET 0) -> known
/// d[1] -> unknown
/// > in hex 00
/// > in hex 00
/// < known hex 00 00 00 00 00 00 00 00
/// < known hex 01 00 00 00 00 00 00 00
/// = r.missed 0
/// ```
#[derive(Element)]
#[element(room = "measure", args = RecordTimestampArgs, processing = "h/h")]
pub struct RecordTimestamp {
    table: Shared<TimestampTable>,
    counter: Option<Shared<NumberFormat>>,
    args: RecordTimestampArgs,
}

#[derive(Args)]
pub struct RecordTimestampArgs {
    /// The `NumberPacket` that numbers the packets, to use its byte order.
    #[arg(keyword)]
    counter: Option<String>,
    /// Number of times to store; 65536 if 0.
    #[arg(keyword, default = 65536, range = ..=MOST, syntax = "a number up to 4294967296")]
    n: usize,
    /// Offset of the number in the packet; if negative, packets are counted instead.
    #[arg(keyword, default = -1)]
    offset: i64,
    /// Whether to store up to 16 777 216 times.
    #[arg(keyword, default = false)]
    dynamic: bool,
    /// Whether numbers are in network byte order.
    #[arg(keyword, default = false)]
    net_order: bool,
    /// The times of one packet in so many are stored, of those whose number is a multiple of it;
    /// of all packets if 0.
    #[arg(keyword, default = 1)]
    sample: u64,
}

/// Number of times to store if N is 0.
const DEFAULT_N: usize = 65536;
/// The largest N.
const MOST: usize = 1 << 32;

/// The byte order in which a `NumberPacket` writes.
#[derive(Default)]
pub struct NumberFormat {
    pub(super) net_order: bool,
}

/// The numbering of packets without OFFSET, and counters.
#[derive(Default, Local)]
pub struct RecordTimestampState {
    /// The number of the next packet, if packets are counted.
    next: u64,
    /// Number of packets whose time was not stored.
    #[read]
    #[portable]
    missed: u64,
    net_order: bool,
}

impl Build for RecordTimestamp {
    type Args = RecordTimestampArgs;

    fn build(mut args: RecordTimestampArgs, setup: &Setup) -> Result<Self, ArgError> {
        // FastClick's vector grows as long as packets fill it in order.
        args.dynamic |= args.offset < 0;
        args.n = if args.n == 0 { DEFAULT_N } else { args.n };
        let linked =
            |name: &String| setup.shared_of(name, "NumberPacket").map_err(|e| e.at("COUNTER"));
        castanet_element::args::affordable(args.n as u64, size_of::<i64>(), "times")
            .map_err(|error| error.at("N"))?;
        let counter = args.counter.as_ref().map(linked).transpose()?;
        Ok(RecordTimestamp { table: setup.own_shared(), counter, args })
    }
}

impl PerBatch for RecordTimestamp {
    type On = on::Any;
    type Local = RecordTimestampState;
    type Fate = ();
    const SHARED: bool = true;

    fn can_take_state(&self, _: &RecordTimestamp) -> bool {
        false // `TimestampDiff` elements share the table
    }

    fn start(&self, state: &mut RecordTimestampState, _: &mut Cx) -> Result<(), ArgError> {
        let net_order = self.counter.as_ref().map(|it| it.with(|format| format.net_order));
        state.net_order = net_order.unwrap_or(self.args.net_order);
        self.table.with(|table| {
            table.net_order = state.net_order;
            table.sample = self.args.sample;
        });
        Ok(())
    }

    fn batch(&self, state: &mut RecordTimestampState, _: usize, batch: Batch, cx: &mut Cx) {
        let (now, &RecordTimestampArgs { n, dynamic, .. }) = (cx.now(), &self.args);
        self.table.with(|table| {
            for packet in &batch {
                let number = match usize::try_from(self.args.offset) {
                    Ok(offset) => read(packet.bytes(), offset, byte_order(state.net_order)),
                    Err(_) => {
                        state.next += 1;
                        Some(state.next - 1)
                    }
                };
                if number.is_some_and(|number| table.index(number).is_none()) {
                    continue;
                }
                let stored = number.is_some_and(|number| table.put(number, now, n, dynamic));
                state.missed += u64::from(!stored);
            }
        });
        cx.emit_batch((), batch);
    }
}
