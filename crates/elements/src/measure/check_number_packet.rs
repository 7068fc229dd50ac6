//! `CheckNumberPacket`: how often each number came.

use super::number_packet::order;
use castanet_engine::class::Sums;
use castanet_engine::prelude::*;
use castanet_engine::wire::number::read;

/// Counts how often each number came that `NumberPacket` has written.
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
#[element(room = "measure", args = Which, methods, processing = "h/h")]
pub struct CheckNumberPacket {
    name: String,
    offset: u32,
    net_order: bool,
    /// How many numbers there are.
    count: u64,
}

#[derive(Args)]
pub struct Which {
    /// Where in the packet.
    #[arg(default = 40)]
    offset: u32,
    /// How many numbers there are, from 0 on.
    #[arg(default = 0, range = ..=MOST)]
    count: u64,
    /// Whether the most significant byte comes first, rather than as this machine has it.
    #[arg(keyword, default = false)]
    net_order: bool,
}

/// More numbers than packets have.
const MOST: u64 = 1 << 32;

/// Checks that there is memory for so many numbers.
fn affordable(count: u64) -> Result<u64, ArgError> {
    castanet_engine::args::affordable(count, size_of::<u64>(), "numbers").map(|()| count)
}

#[derive(Fate)]
pub enum Way {
    /// Packets with a number that was expected.
    Known,
    /// Packets with another number, or none.
    #[optional]
    Beyond,
}

impl Build for CheckNumberPacket {
    type Args = Which;

    fn build(args: Which, setup: &Setup) -> Result<Self, ArgError> {
        let Which { offset, count, net_order } = args;
        let count = affordable(count).map_err(|error| error.at("COUNT"))?;
        Ok(CheckNumberPacket { name: setup.name.to_owned(), offset, net_order, count })
    }
}

#[handlers]
impl CheckNumberPacket {
    /// How many numbers there are.
    #[read]
    fn count(&self) -> u64 {
        self.count
    }
    /// Expects more numbers, or fewer.
    #[write(count)]
    fn set_count(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let count = castanet_engine::args::within(text, names, &(0..=MOST), "a number")?;
        Ok(CheckNumberPacket { count: affordable(count)?, ..self.clone() })
    }
}

/// How often each number came.
#[derive(Default, Local)]
#[local(methods)]
pub struct Numbers {
    counts: Vec<u64>,
}

#[handlers]
impl Numbers {
    /// The number that came most often, and how often.
    #[read]
    fn max(&self) -> Value {
        self.say(|counts| {
            let most = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count);
            most.map_or("[-1] : -1".into(), |(n, count)| format!("[{n}] : {count}"))
        })
    }
    /// The number that came least often, and how often.
    #[read]
    fn min(&self) -> Value {
        self.say(|counts| {
            let least = counts.iter().enumerate().min_by_key(|(_, count)| **count);
            least.map_or(format!("[-1] : {}", i32::MAX), |(n, count)| format!("[{n}] : {count}"))
        })
    }
    /// How often each number came, one a line.
    #[read]
    fn dump(&self) -> Value {
        self.say(|counts| {
            let line = |(n, count)| format!("{n}: {count}\n");
            counts.iter().enumerate().map(line).collect()
        })
    }
    fn say(&self, say: fn(&[u64]) -> String) -> Value {
        Sums::new(self.counts.clone(), say).into()
    }
}

impl PerBatch for CheckNumberPacket {
    type On = on::Any;
    type Local = Numbers;
    type Fate = Way;
    // One table: it may be large.
    const SHARED: bool = true;

    fn continues(&self, before: &CheckNumberPacket) -> bool {
        self.count == before.count
    }

    fn begin(&self, numbers: &mut Numbers, _: &mut Cx) -> Result<(), ArgError> {
        numbers.counts.resize(self.count as usize, 0);
        Ok(())
    }

    fn batch(&self, numbers: &mut Numbers, _: usize, batch: Batch, cx: &mut Cx) {
        if numbers.counts.len() != self.count as usize {
            numbers.counts.resize(self.count as usize, 0);
        }
        for packet in batch {
            let number = read(packet.bytes(), self.offset as usize, order(self.net_order));
            let known = usize::try_from(number.unwrap_or(u64::MAX));
            let way = match known.ok().and_then(|number| numbers.counts.get_mut(number)) {
                Some(count) => {
                    *count += 1;
                    Way::Known
                }
                None => Way::Beyond,
            };
            if let (Way::Beyond, Some(number)) = (way, number) {
                let (name, count) = (&self.name, self.count);
                cx.chatter(&format!("{name}: {number} out of scope (count is {count}) !"));
            }
            cx.emit(way, packet);
        }
    }
}
