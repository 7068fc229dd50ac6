//! `MultiCounter`: counts for each input.

use castanet_engine::prelude::*;
use castanet_kit::ewma::RateEwma;

/// Counts packets and bytes of each input, and passes them to the output of the same number.
///
/// Handlers answer with a list, an entry for each input.
///
/// ```click
/// a -> m :: MultiCounter -> x;  b -> [1] m; m[1] -> y
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.0.2 > 2.0.0.2 udp len 40
/// > b 1.0.0.3 > 2.0.0.2 udp len 40
/// < x 1.0.0.1 > 2.0.0.2 udp len 60
/// < y 1.0.0.2 > 2.0.0.2 udp len 40
/// < y 1.0.0.3 > 2.0.0.2 udp len 40
/// = m.count 1,2
/// = m.byte_count 60,80
/// + 1ms
/// = m.rate 62.5,125
/// = m.byte_rate 3750,5000
/// = m.drops.unmatched 0
/// ! m.reset_counts
/// = m.count 0,0
/// ```
#[derive(Element)]
#[element(room = "measure", ports = "1-/=", processing = "h/h", flow = "#/#")]
pub struct MultiCounter;

/// What has come in on one input.
#[derive(Clone, Default)]
struct Input {
    count: u64,
    byte_count: u64,
    packets: RateEwma,
    bytes: RateEwma<4, 4>,
}

/// What has come in, by input.
#[derive(Default, Local)]
#[local(methods)]
pub struct Inputs {
    inputs: Vec<Input>,
}

#[handlers]
impl Inputs {
    /// Packets.
    #[read]
    fn count(&self) -> String {
        self.list(|input| input.count.to_string())
    }
    /// Bytes.
    #[read]
    fn byte_count(&self) -> String {
        self.list(|input| input.byte_count.to_string())
    }
    /// Packets a second, lately.
    #[read]
    fn rate(&self, ask: &Ask) -> String {
        self.list(|input| shown(input.packets, ask.now))
    }
    /// Bytes a second, lately.
    #[read]
    fn byte_rate(&self, ask: &Ask) -> String {
        self.list(|input| shown(input.bytes, ask.now))
    }
    /// Counts from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.inputs.fill(Input::default());
        Ok(())
    }
    fn list(&self, show: impl Fn(&Input) -> String) -> String {
        self.inputs.iter().map(show).collect::<Vec<_>>().join(",")
    }
}

/// A rate as it is now.
fn shown<const SCALE: u32>(mut rate: RateEwma<4, SCALE>, now: Time) -> String {
    rate.update(0, now.nanos());
    rate.text()
}

impl PerBatch for MultiCounter {
    type On = on::Any;
    type Local = Inputs;
    type Fate = Port;
    // Lists of several workers do not add up.
    const SHARED: bool = true;

    fn batch(&self, inputs: &mut Inputs, port: usize, batch: Batch, cx: &mut Cx) {
        if inputs.inputs.len() <= port {
            inputs.inputs.resize(port + 1, Input::default());
        }
        let (it, now) = (&mut inputs.inputs[port], cx.now().nanos());
        let (packets, bytes) =
            (batch.len() as u64, batch.iter().map(|packet| packet.len() as u64).sum());
        it.count += packets;
        it.byte_count += bytes;
        it.packets.update(packets, now);
        it.bytes.update(bytes, now);
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
