//! `CheckNumberPacket`: counts packets by number, to find loss and duplicates.

use super::number_packet::byte_order;
use castanet_element::handler::Sums;
use castanet_element::prelude::*;
use castanet_element::wire::number::read;

/// Counts packets by the number that `NumberPacket` wrote, to find loss and duplicates.
///
/// ```click
/// in -> NumberPacket(2) -> c :: CheckNumberPacket(2, 3) -> out;  c[1] -> beyond
/// short -> c
/// > in    hex 01 02 03 04 05 06 07 08 09 0a
/// > in    hex 01 02
/// > short hex 01 02
/// < out    hex 01 02 00 00 00 00 00 00 00 00
/// < out    hex 01 02 01 00 00 00 00 00 00 00
/// < beyond hex 01 02
/// = c.count 3
/// = c.dump 0: 1\n1: 1\n2: 0
/// = c.max [0] : 1
/// = c.min [2] : 0
/// ! c.count 1
/// > in    hex 01 02
/// < beyond hex 01 02 02 00 00 00 00 00 00 00
/// ~ c: 2 out of scope (count is 1) !
/// = c.dump 0: 1
/// ```
#[derive(Clone, Element)]
#[element(room = "measure", args = CheckNumberPacketArgs, methods, processing = "h/h")]
pub struct CheckNumberPacket {
    name: String,
    offset: u32,
    net_order: bool,
    count: u64,
}

#[derive(Args)]
pub struct CheckNumberPacketArgs {
    /// Offset of the number in the packet, in bytes.
    #[arg(default = 40)]
    offset: u32,
    /// Number of expected numbers, from 0 on.
    #[arg(default = 0, range = ..=MOST, syntax = "a number up to 4294967296")]
    count: u64,
    /// Whether numbers are in network byte order, rather than that of this machine.
    #[arg(keyword, default = false)]
    net_order: bool,
}

/// The largest COUNT.
const MOST: u64 = 1 << 32;

/// Checks that there is memory for the counts of so many numbers.
fn affordable(count: u64) -> Result<u64, ArgError> {
    castanet_element::args::affordable(count, size_of::<u64>(), "numbers").map(|()| count)
}

#[derive(Fate)]
pub enum CheckNumberPacketExit {
    /// Packets with an expected number.
    Known,
    /// Packets with another number, or without one.
    #[optional]
    Beyond,
}

impl Build for CheckNumberPacket {
    type Args = CheckNumberPacketArgs;

    fn build(args: CheckNumberPacketArgs, setup: &Setup) -> Result<Self, ArgError> {
        let CheckNumberPacketArgs { offset, count, net_order } = args;
        let count = affordable(count).map_err(|error| error.at("COUNT"))?;
        Ok(CheckNumberPacket { name: setup.name.to_owned(), offset, net_order, count })
    }
}

#[handlers]
impl CheckNumberPacket {
    /// Number of expected numbers, from 0 on.
    #[read]
    fn count(&self) -> u64 {
        self.count
    }
    /// Sets the number of expected numbers.
    #[write(count)]
    fn set_count(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let count = castanet_element::args::within(text, names, &(0..=MOST), "a number")?;
        Ok(CheckNumberPacket { count: affordable(count)?, ..self.clone() })
    }
}

/// Number of packets by number.
#[derive(Default, Local)]
#[local(methods)]
pub struct CheckNumberPacketState {
    #[portable]
    counts: Vec<u64>,
}

#[handlers]
impl CheckNumberPacketState {
    /// The most frequent number, and its count.
    #[read]
    fn max(&self) -> Value {
        self.summarize(|counts| {
            let most = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count);
            most.map_or("[-1] : -1".into(), |(n, count)| format!("[{n}] : {count}"))
        })
    }
    /// The least frequent number, and its count.
    #[read]
    fn min(&self) -> Value {
        self.summarize(|counts| {
            let least = counts.iter().enumerate().min_by_key(|(_, count)| **count);
            least.map_or(format!("[-1] : {}", i32::MAX), |(n, count)| format!("[{n}] : {count}"))
        })
    }
    /// The count of each number, one per line.
    #[read]
    fn dump(&self) -> Value {
        self.summarize(|counts| {
            counts.iter().enumerate().map(|(n, count)| format!("{n}: {count}\n")).collect()
        })
    }
    /// Applies a function to the counts.
    fn summarize(&self, format: fn(&[u64]) -> String) -> Value {
        Sums::new(self.counts.clone(), format).into()
    }
}

impl PerBatch for CheckNumberPacket {
    type On = on::Any;
    type Local = CheckNumberPacketState;
    type Fate = CheckNumberPacketExit;
    // The table may be large, so that workers share one.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &CheckNumberPacket) -> bool {
        self.count == before.count
    }

    fn init(&self, state: &mut CheckNumberPacketState, _: &mut Cx) -> Result<(), ArgError> {
        state.counts.resize(self.count as usize, 0);
        Ok(())
    }

    fn batch(&self, state: &mut CheckNumberPacketState, _: usize, batch: Batch, cx: &mut Cx) {
        if state.counts.len() != self.count as usize {
            state.counts.resize(self.count as usize, 0);
        }
        for packet in batch {
            let number = read(packet.bytes(), self.offset as usize, byte_order(self.net_order));
            let index = usize::try_from(number.unwrap_or(u64::MAX));
            let exit = match index.ok().and_then(|number| state.counts.get_mut(number)) {
                Some(count) => {
                    *count += 1;
                    CheckNumberPacketExit::Known
                }
                None => CheckNumberPacketExit::Beyond,
            };
            if let (CheckNumberPacketExit::Beyond, Some(number)) = (exit, number) {
                let (name, count) = (&self.name, self.count);
                cx.chatter(&format!("{name}: {number} out of scope (count is {count}) !"));
            }
            cx.emit(exit, packet);
        }
    }
}
