//! `Counter`: packets, bytes, and how many a second.

use super::limit::CallAt;
use castanet_engine::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Counts packets and bytes, and passes every packet on unchanged.
///
/// Each worker counts for itself and a read adds the workers up: no cache
/// line is shared and no count is lost. Only where a count is to call a
/// handler do workers count together. The handler is called before the packet goes on that
/// has reached the count; packets come one at a time there. A call that is set while it
/// runs also finds the elements before it a burst further on.
/// Rates are Click's: a moving average by milliseconds.
///
/// ```click
/// in -> c :: Counter -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = c.count 2
/// = c.byte_count 100
/// + 1ms
/// = c.rate 125
/// = c.byte_rate 6250
/// = c.bit_rate 50000
/// ! c.reset
/// = c.count 0
/// = c.rate 0
/// ```
///
/// ```click
/// in -> c :: Counter(COUNT_CALL 2 d.color 7, BYTE_COUNT_CALL 90 d.color 8) -> d :: Paint(1) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = d.color 7
/// = c.count_call 2
/// ! c.count_call 3 d.color 9
/// ! c.byte_count_call 1000
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = d.color 9
/// ```
///
/// ```click
/// in -> first :: Switch -> Counter(COUNT_CALL 3 sw.switch 1, BYTE_COUNT_CALL 160 first.switch 1)
///    -> sw :: Switch -> out
/// sw[1] -> late;  first[1] -> past
/// > in   1.0.0.1 > 2.0.0.2 udp len 40
/// > in   1.0.0.2 > 2.0.0.2 udp len 40
/// > in   1.0.0.3 > 2.0.0.2 udp len 40
/// > in   1.0.0.4 > 2.0.0.2 udp len 40
/// > in   1.0.0.5 > 2.0.0.2 udp len 40
/// < out  1.0.0.1 > 2.0.0.2 udp len 40
/// < out  1.0.0.2 > 2.0.0.2 udp len 40
/// < late 1.0.0.3 > 2.0.0.2 udp len 40
/// < late 1.0.0.4 > 2.0.0.2 udp len 40
/// < past 1.0.0.5 > 2.0.0.2 udp len 40
/// ```
#[derive(Clone, Element)]
#[element(room = "measure", alias = "CounterMP", alias = "CounterAtomic", alias = "CounterLock")]
#[element(alias = "CounterRCU", alias = "CounterRW", alias = "CounterPRW", alias = "CounterRCUMP")]
#[element(methods, alias = "CounterRWMP", alias = "CounterPRWMP", alias = "CounterLockMP")]
pub struct Counter {
    /// Packet count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    count_call: Option<CallAt>,
    /// Byte count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    byte_count_call: Option<CallAt>,
}

#[handlers]
impl Counter {
    /// The packet count that calls a handler.
    #[read]
    fn count_call(&self) -> String {
        self.count_call.as_ref().map_or_else(String::new, |c| c.count().to_string())
    }
    /// Another count and handler; one count goes for each worker by itself
    /// unless the configuration had a call.
    #[write(count_call)]
    fn set_count_call(&self, text: &str, names: &Names) -> Result<Counter, ArgError> {
        Ok(Counter { count_call: Some(CallAt::from_arg(text, names)?), ..self.clone() })
    }
    /// Another count of bytes and handler, as for `count_call`.
    #[write(byte_count_call)]
    fn set_byte_count_call(&self, text: &str, names: &Names) -> Result<Counter, ArgError> {
        Ok(Counter { byte_count_call: Some(CallAt::from_arg(text, names)?), ..self.clone() })
    }
}

/// What one worker has seen since the last reset.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset, reset_counts)]
pub struct Tally {
    /// Packets.
    #[read]
    count: u64,
    /// Bytes.
    #[read]
    byte_count: u64,
    packets: RateEwma,
    bytes: RateEwma<4, 4>,
}

#[handlers]
impl Tally {
    /// Packets a second, lately.
    #[read]
    fn rate(&self, ask: &Ask) -> f64 {
        per_second(self.packets, ask.now)
    }
    /// Bytes a second, lately.
    #[read]
    fn byte_rate(&self, ask: &Ask) -> f64 {
        per_second(self.bytes, ask.now)
    }
    /// Bits a second, lately.
    #[read]
    fn bit_rate(&self, ask: &Ask) -> f64 {
        8.0 * per_second(self.bytes, ask.now)
    }
}

/// A rate as it is now, after what time may have passed without packets.
fn per_second<const SCALE: u32>(mut rate: RateEwma<4, SCALE>, now: Time) -> f64 {
    rate.update(0, now.0.unsigned_abs());
    rate.text().parse().unwrap_or(0.0)
}

impl PerBatch for Counter {
    type On = on::Any;
    type Local = Tally;
    type Fate = ();

    fn batch(&self, tally: &mut Tally, _: usize, batch: Batch, cx: &mut Cx) {
        let (packets, now) = (batch.len() as u64, cx.now().0.unsigned_abs());
        let bytes = batch.iter().map(|packet| packet.len() as u64).sum();
        let batch = match self.shares() {
            true => self.reach(tally, batch, cx),
            false => batch,
        };
        tally.count += packets;
        tally.byte_count += bytes;
        tally.packets.update(packets, now);
        tally.bytes.update(bytes, now);
        cx.emit_batch((), batch);
    }

    fn shares(&self) -> bool {
        self.count_call.is_some() || self.byte_count_call.is_some()
    }
}

impl Counter {
    /// Makes the calls whose counts a batch reaches, each before the packet that does; the packets
    /// from the last of them on.
    fn reach(&self, tally: &Tally, mut batch: Batch, cx: &mut Cx) -> Batch {
        let (mut count, mut bytes, mut place) = (tally.count, tally.byte_count, 0);
        while place < batch.len() {
            let length = batch.as_slice()[place].len() as u64;
            let counts = [(&self.count_call, count, 1), (&self.byte_count_call, bytes, length)];
            for (call, before, more) in counts {
                let Some(call) = call.as_ref().and_then(|it| it.due(before, more)) else {
                    continue;
                };
                if place > 0 {
                    let others = batch.split_off(place);
                    cx.emit_batch((), std::mem::replace(&mut batch, others));
                    place = 0;
                }
                cx.call(&call.handler, &call.value);
            }
            (count, bytes, place) = (count + 1, bytes + length, place + 1);
        }
        batch
    }

    /// The handlers that it calls.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        let it = <Counter as Args>::parse(config, names).ok()?;
        let calls = [it.count_call, it.byte_count_call].into_iter().flatten();
        let handlers: Vec<_> = calls.filter_map(|it| Some((None, it.handler()?))).collect();
        (!handlers.is_empty()).then_some(handlers)
    }
}
