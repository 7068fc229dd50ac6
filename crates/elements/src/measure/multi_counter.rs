//! `MultiCounter`: counts packets and bytes by input.

use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter, add_counts};
use castanet_element::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Counts packets and bytes by input, with rates.
///
/// Packets leave by the output of their input's number. Handlers return a list with an entry
/// for each input: `[3,5]`.
///
/// ```click
/// a -> m :: MultiCounter -> x;  b -> [1] m; m[1] -> y
/// = m.count [0,0]
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.0.2 > 2.0.0.2 udp len 40
/// > b 1.0.0.3 > 2.0.0.2 udp len 40
/// < x 1.0.0.1 > 2.0.0.2 udp len 60
/// < y 1.0.0.2 > 2.0.0.2 udp len 40
/// < y 1.0.0.3 > 2.0.0.2 udp len 40
/// = m.count [1,2]
/// = m.byte_count [60,80]
/// + 1ms
/// = m.rate [62.5,125]
/// = m.byte_rate [3750,5000]
/// = m.drops.unmatched 0
/// ! m.reset_counts
/// = m.count [0,0]
/// ```
#[derive(Element)]
#[element(room = "measure", ports = "1-/=", processing = "h/h", args = (), flow = "#/#")]
pub struct MultiCounter {
    inputs: usize,
}

impl Build for MultiCounter {
    type Args = ();

    fn build((): (), setup: &Setup) -> Result<Self, ArgError> {
        Ok(MultiCounter { inputs: setup.inputs })
    }
}

/// The counts of one input.
#[derive(Clone, Default)]
struct InputCounts {
    count: u64,
    byte_count: u64,
    packets: RateEwma,
    bytes: RateEwma<4, 4>,
}

/// The counts by input.
#[derive(Default, Local)]
#[local(methods)]
#[portable(inputs)]
pub struct MultiCounterState {
    inputs: Vec<InputCounts>,
}

#[handlers]
impl MultiCounterState {
    /// Number of packets.
    #[read]
    fn count(&self) -> String {
        self.list(|input| input.count.to_string())
    }
    /// Number of bytes.
    #[read]
    fn byte_count(&self) -> String {
        self.list(|input| input.byte_count.to_string())
    }
    /// Recent packets per second.
    #[read]
    fn rate(&self, ask: &ReadRequest) -> String {
        self.list(|input| rate_text(input.packets, ask.now))
    }
    /// Recent bytes per second.
    #[read]
    fn byte_rate(&self, ask: &ReadRequest) -> String {
        self.list(|input| rate_text(input.bytes, ask.now))
    }
    /// Resets all counts to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.inputs.fill(InputCounts::default());
        Ok(())
    }
    /// The list of a value of each input.
    fn list(&self, show: impl Fn(&InputCounts) -> String) -> String {
        format!("[{}]", self.inputs.iter().map(show).collect::<Vec<_>>().join(","))
    }
}

/// Counts that are added, by input; rates begin anew.
impl PortableState for MultiCounterState {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        for (it, port) in self.inputs.iter().zip(0u8..) {
            to.write(&port, &[it.count, it.byte_count]);
        }
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (port, counts) = (usize::from(record.key::<u8>()?), record.value()?);
        let inputs = self.inputs.len().max(port + 1);
        self.inputs.resize(inputs, InputCounts::default());
        let it = &mut self.inputs[port];
        add_counts([&mut it.count, &mut it.byte_count], counts)
    }
}

/// A rate at the time of the read, as text.
fn rate_text<const SCALE: u32>(mut rate: RateEwma<4, SCALE>, now: Time) -> String {
    rate.update(0, now.nanos());
    rate.text()
}

impl PerBatch for MultiCounter {
    type On = on::Any;
    type Local = MultiCounterState;
    type Fate = Port;
    // A read can not add up the lists of several workers.
    const SHARED: bool = true;

    fn apply_config(&self, state: &mut MultiCounterState) {
        state.inputs.resize(self.inputs, InputCounts::default());
    }

    fn batch(&self, state: &mut MultiCounterState, port: usize, batch: Batch, cx: &mut Cx) {
        let (it, now) = (&mut state.inputs[port], cx.now().nanos());
        let (packets, bytes) =
            (batch.len() as u64, batch.iter().map(|packet| packet.len() as u64).sum());
        it.count += packets;
        it.byte_count += bytes;
        it.packets.update(packets, now);
        it.bytes.update(bytes, now);
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
