//! `RecordTimestamp`: when each packet passed.

use super::number_packet::order;
use castanet_engine::prelude::*;
use castanet_engine::wire::number::read;

/// Remembers when each packet passed, by its number, for `TimestampDiff` to look up.
///
/// With OFFSET it is the number that `NumberPacket` has written there; without,
/// packets count from 0 on. Numbers beyond N are not remembered, unless DYNAMIC.
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
#[derive(Element)]
#[element(room = "measure", args = Where, processing = "h/h")]
pub struct RecordTimestamp {
    stamps: Link<Stamps>,
    counter: Option<Link<Numbering>>,
    settings: Where,
}

#[derive(Args)]
pub struct Where {
    /// The `NumberPacket` that numbers packets, for its byte order.
    #[arg(keyword)]
    counter: Option<String>,
    /// How many times find room.
    #[arg(keyword, default = 65536, range = ..=MOST)]
    n: usize,
    /// Where in the packet its number is; packets are counted if negative.
    #[arg(keyword, default = -1)]
    offset: i64,
    /// Whether there is to be room for any number below 16 777 216.
    #[arg(keyword, default = false)]
    dynamic: bool,
    /// Whether the most significant byte of numbers comes first.
    #[arg(keyword, default = false)]
    net_order: bool,
}

/// More numbers than packets have.
const MOST: usize = 1 << 32;
/// How many times find room where any number may come, as packets say.
const MOST_DYNAMIC: usize = 1 << 24;

/// How a `NumberPacket` writes.
#[derive(Default)]
pub struct Numbering {
    pub(super) net_order: bool,
}

/// When packets passed, by number.
#[derive(Default)]
pub struct Stamps {
    /// Nanoseconds since 1970; 0 for none.
    times: Vec<i64>,
    pub(super) net_order: bool,
}

impl Stamps {
    /// Takes the time of a packet; it is forgotten then.
    pub(super) fn take(&mut self, number: u64) -> Option<Time> {
        let time = self.times.get_mut(usize::try_from(number).ok()?)?;
        Some(Time(std::mem::take(time))).filter(|time| time.0 != 0)
    }

    fn put(&mut self, number: u64, time: Time, room: usize, dynamic: bool) -> bool {
        let room = if dynamic { room.max(MOST_DYNAMIC) } else { room };
        let Some(at) = usize::try_from(number).ok().filter(|&at| at < room) else { return false };
        if at >= self.times.len() {
            self.times.resize((at + 1).next_power_of_two().min(room), 0);
        }
        self.times[at] = time.0;
        true
    }
}

/// What it has seen.
#[derive(Default, Local)]
pub struct Seen {
    /// Packets so far, where they are counted.
    next: u64,
    /// Packets whose number found no room.
    #[read]
    missed: u64,
    net_order: bool,
}

impl Build for RecordTimestamp {
    type Args = Where;

    fn build(args: Where, setup: &Setup) -> Result<Self, ArgError> {
        let linked =
            |name: &String| setup.linked(name, "NumberPacket").map_err(|e| e.at("COUNTER"));
        castanet_engine::args::affordable(args.n as u64, size_of::<i64>(), "times")
            .map_err(|error| error.at("N"))?;
        let counter = args.counter.as_ref().map(linked).transpose()?;
        Ok(RecordTimestamp { stamps: setup.own(), counter, settings: args })
    }
}

impl PerBatch for RecordTimestamp {
    type On = on::Any;
    type Local = Seen;
    type Fate = ();
    const SHARED: bool = true;

    fn continues(&self, _: &RecordTimestamp) -> bool {
        false // its times are those of others too
    }

    fn start(&self, seen: &mut Seen, _: &mut Cx) -> Result<(), ArgError> {
        let counters = self.counter.as_ref().map(|it| it.with(|numbering| numbering.net_order));
        seen.net_order = counters.unwrap_or(self.settings.net_order);
        self.stamps.with(|stamps| stamps.net_order = seen.net_order);
        Ok(())
    }

    fn batch(&self, seen: &mut Seen, _: usize, batch: Batch, cx: &mut Cx) {
        let (now, &Where { n, dynamic, .. }) = (cx.now(), &self.settings);
        self.stamps.with(|stamps| {
            for packet in &batch {
                let number = match usize::try_from(self.settings.offset) {
                    Ok(offset) => read(packet.bytes(), offset, order(seen.net_order)),
                    Err(_) => {
                        seen.next += 1;
                        Some(seen.next - 1)
                    }
                };
                let kept = number.is_some_and(|number| stamps.put(number, now, n, dynamic));
                seen.missed += u64::from(!kept);
            }
        });
        cx.emit_batch((), batch);
    }
}
