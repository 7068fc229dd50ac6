//! `Counter`: counts packets and bytes, with rates.

use super::counter_state::CounterState;
use super::limit::CallAt;
use castanet_element::prelude::*;

/// Counts packets and bytes, and measures their rates.
///
/// Each worker has its own counts, and a read adds them up: no cache line is
/// shared and no count is lost. With COUNT_CALL or BYTE_COUNT_CALL the workers
/// share one count. Then packets pass one at a time, and the handler is called
/// before the packet that reaches the count leaves. With a call that a handler
/// sets at run time, the elements upstream may already have processed the rest
/// of the burst. Rates are moving averages over milliseconds, as in Click.
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
///
/// ```click
/// in -> c :: CounterAtomic(NO_RATE true, ATOMIC 1, BATCH_PRECISE true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// + 1ms
/// = c.count 1
/// = c.rate 0
/// ```
#[derive(Clone, Element)]
#[element(room = "measure", alias = "CounterMP", alias = "CounterAtomic", alias = "CounterLock")]
#[element(alias = "CounterRCU", alias = "CounterRW", alias = "CounterPRW", alias = "CounterRCUMP")]
#[element(methods, alias = "CounterRWMP", alias = "CounterPRWMP", alias = "CounterLockMP")]
pub struct Counter {
    /// A packet count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    count_call: Option<CallAt>,
    /// A byte count, then the handler to write when it is reached, and its value.
    #[arg(keyword)]
    byte_count_call: Option<CallAt>,
    /// Whether to measure no rates: their handlers are 0.
    #[arg(keyword, default = false)]
    no_rate: bool,
    /// An argument of FastClick without effect: no count is ever lost.
    #[arg(keyword, default = 0, range = 0..=2)]
    #[allow(dead_code)]
    atomic: u8,
    /// An argument of FastClick without effect: handlers are always called at their counts.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    batch_precise: bool,
}

#[handlers]
impl Counter {
    /// The packet count at which a handler is called.
    #[read]
    fn count_call(&self) -> String {
        self.count_call.as_ref().map_or_else(String::new, |c| c.count().to_string())
    }
    /// Sets the packet count and the handler. Each worker then compares its own count,
    /// unless the configuration already had a call.
    #[write(count_call)]
    fn set_count_call(&self, text: &str, names: &Names) -> Result<Counter, ArgError> {
        Ok(Counter { count_call: Some(CallAt::from_arg(text, names)?), ..self.clone() })
    }
    /// Sets the byte count and the handler, as for `count_call`.
    #[write(byte_count_call)]
    fn set_byte_count_call(&self, text: &str, names: &Names) -> Result<Counter, ArgError> {
        Ok(Counter { byte_count_call: Some(CallAt::from_arg(text, names)?), ..self.clone() })
    }
}

impl PerBatch for Counter {
    type On = on::Any;
    type Local = CounterState;
    type Fate = ();
    const COUNTS_ONLY: bool = true;

    fn batch(&self, state: &mut CounterState, _: usize, batch: Batch, cx: &mut Cx) {
        let totals = batch.totals();
        let batch = match self.is_shared() {
            true => self.call_handlers(state, batch, cx),
            false => batch,
        };
        self.count(state, totals, cx);
        cx.emit_batch((), batch);
    }

    fn counts_only(&self) -> bool {
        !self.is_shared()
    }

    fn count(&self, state: &mut CounterState, totals: PacketTotals, cx: &mut Cx) {
        state.count += totals.packets;
        state.byte_count += totals.bytes;
        if !self.no_rate {
            let now = cx.now().0.unsigned_abs();
            state.packets.update(totals.packets, now);
            state.bytes.update(totals.bytes, now);
        }
    }

    fn is_shared(&self) -> bool {
        self.count_call.is_some() || self.byte_count_call.is_some()
    }
}

impl Counter {
    /// Calls the handlers whose counts a batch reaches, each before the packet that reaches it, and
    /// emits the packets before; returns the packets from the last of these on.
    #[cold]
    fn call_handlers(&self, state: &CounterState, mut batch: Batch, cx: &mut Cx) -> Batch {
        let (mut count, mut bytes, mut index) = (state.count, state.byte_count, 0);
        while index < batch.len() {
            let length = batch.as_slice()[index].len() as u64;
            let counts = [(&self.count_call, count, 1), (&self.byte_count_call, bytes, length)];
            for (call, before, more) in counts {
                let Some(call) = call.as_ref().and_then(|it| it.due(before, more)) else {
                    continue;
                };
                if index > 0 {
                    let others = batch.split_off(index);
                    cx.emit_batch((), std::mem::replace(&mut batch, others));
                    index = 0;
                }
                cx.call(&call.handler, &call.value);
            }
            (count, bytes, index) = (count + 1, bytes + length, index + 1);
        }
        batch
    }

    /// The handlers that a configuration string makes the element call.
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
