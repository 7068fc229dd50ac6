//! The outputs to which frames of each port of an `EtherSwitch` may go.

use castanet_element::prelude::*;
use castanet_kit::text::ranges;

/// For each port the outputs to which its frames may go.
#[derive(Clone)]
pub(super) struct PortForwarding(Vec<Vec<bool>>);

impl PortForwarding {
    /// Allows each port all outputs but its own.
    pub(super) fn new(ports: u8) -> PortForwarding {
        let ports = 0..ports;
        let others = |port| ports.clone().map(|other| other != port).collect();
        PortForwarding(ports.clone().map(others).collect())
    }

    /// Whether frames of a port may leave by an output.
    #[inline]
    pub(super) fn allows(&self, port: usize, output: u8) -> bool {
        let allowed = self.0.get(port).and_then(|outputs| outputs.get(usize::from(output)));
        allowed.copied().unwrap_or(false)
    }

    /// The same without some outputs: `PORT OUTPUT...`, and others after commas.
    pub(super) fn without(&self, text: &str, names: &Names) -> Result<PortForwarding, ArgError> {
        let PortForwarding(mut all) = self.clone();
        for rule in text.split(',').map(str::trim).filter(|rule| !rule.is_empty()) {
            let error = || ArgError::new(format!("`{rule}` does not name ports"));
            let error = || error().click("invalid port forwarding");
            let numbers = rule.split_whitespace().map(|word| usize::from_arg(word, names).ok());
            let numbers: Vec<usize> = numbers.collect::<Option<_>>().ok_or_else(error)?;
            let (port, outputs) = numbers.split_first().ok_or_else(error)?;
            let allowed = all.get_mut(*port).ok_or_else(error)?;
            for output in outputs {
                *allowed.get_mut(*output).ok_or_else(error)? = false;
            }
        }
        Ok(PortForwarding(all))
    }

    /// For each port a line with the number of outputs, the port and the outputs.
    pub(super) fn listing(&self) -> String {
        let line = |(port, outputs): (usize, &Vec<bool>)| {
            let outputs: Vec<usize> = (0..outputs.len()).filter(|&n| outputs[n]).collect();
            format!("weight: {}\t{port}: {}\n", outputs.len(), ranges(&outputs))
        };
        self.0.iter().enumerate().map(line).collect()
    }
}
