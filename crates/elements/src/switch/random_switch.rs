//! `RandomSwitch`: sends each packet to a random output.

use castanet_element::prelude::*;

/// Sends each packet to a random output.
///
/// ```click
/// in -> s :: RandomSwitch -> a :: Counter -> Discard;  s[1] -> b :: Counter -> Discard
/// one -> RandomSwitch -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > one 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = (), ports = "1/1-")]
pub struct RandomSwitch {
    outputs: u32,
}

impl Build for RandomSwitch {
    type Args = ();

    fn build(_: (), setup: &Setup) -> Result<Self, ArgError> {
        Ok(RandomSwitch { outputs: setup.outputs.max(1) as u32 })
    }
}

impl PerBatch for RandomSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            let chosen = cx.random_numbers().in_range(0, self.outputs - 1);
            cx.emit(Port::nth(chosen as u8), packet);
        }
    }
}
