//! `Counter`: packets, bytes, and how many a second.

use castanet_engine::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Counts packets and bytes, and passes every packet on unchanged.
///
/// Each worker counts for itself and a read adds the workers up: no cache
/// line is shared and no count is lost. Only where a count is to call a
/// handler do workers count together. The call comes after the burst in which
/// the count was reached. Rates are Click's: a moving average by milliseconds.
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
/// in -> c :: Counter(COUNT_CALL 2 d.color 7, BYTE_COUNT_CALL 90 d.reset_counts) -> d :: Paint(1) -> out
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
#[derive(Clone, Element)]
#[element(methods, alias = "CounterMP", alias = "CounterAtomic", alias = "CounterLock")]
#[element(alias = "CounterRCU", alias = "CounterRW", alias = "CounterPRW", alias = "CounterRCUMP")]
#[element(alias = "CounterRWMP", alias = "CounterPRWMP", alias = "CounterLockMP")]
pub struct Counter {
    /// Packet count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    count_call: Option<CallAt>,
    /// Byte count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    byte_count_call: Option<CallAt>,
}

/// A count, and what happens when it is reached.
#[derive(Clone, Debug)]
pub struct CallAt {
    count: u64,
    call: Option<Call>,
}

impl FromArg for CallAt {
    const SYNTAX: &'static str = "a count, a write handler and its value";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (count, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text, ""));
        let count = u64::from_arg(count, names).map_err(|e| e.reworded("type mismatch"))?;
        let call = match rest.trim() {
            "" => None,
            rest => Some(Call::from_arg(rest, names)?),
        };
        Ok(CallAt { count, call })
    }
}

#[handlers]
impl Counter {
    /// The packet count that calls a handler.
    #[read]
    fn count_call(&self) -> String {
        self.count_call.as_ref().map_or_else(String::new, |c| c.count.to_string())
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
        reach(&self.count_call, tally.count, packets, cx);
        reach(&self.byte_count_call, tally.byte_count, bytes, cx);
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

/// Makes the call if its count lies among the next `more`.
#[inline]
fn reach(call: &Option<CallAt>, before: u64, more: u64, cx: &mut Cx) {
    if let Some(CallAt { count, call: Some(call) }) = call
        && before < *count
        && before + more >= *count
    {
        cx.call(&call.handler, &call.value);
    }
}
