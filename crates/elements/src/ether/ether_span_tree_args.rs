//! Arguments of `EtherSpanTree`.

use castanet_element::prelude::*;

#[derive(Args)]
pub struct EtherSpanTreeArgs {
    /// Ethernet address of the switch, the lesser part of its identifier.
    #[arg]
    pub(super) addr: MacAddr,
    /// Name of the `Suppressor` before the switch.
    #[arg]
    pub(super) input_suppressor: String,
    /// Name of the `Suppressor` behind the switch.
    #[arg]
    pub(super) output_suppressor: String,
    /// Name of the `EtherSwitch`.
    #[arg]
    pub(super) switch: String,
    /// Greater part of the switch's identifier: the bridge with the least identifier becomes the root.
    #[arg(keyword, default = 0xdead)]
    pub(super) bridge_priority: u16,
}

/// Checks that an argument names an element of a class; returns the element's arguments.
pub(super) fn named(
    setup: &Setup,
    argument: &str,
    name: &str,
    class: &str,
) -> Result<String, ArgError> {
    let found = setup.element(name, None);
    let found = found.ok_or_else(|| {
        let error = ArgError::new(format!("no element named '{name}'")).at(argument);
        error.click(format!("'{name}' does not name an element"))
    })?;
    if found.class != class {
        let error = ArgError::new(format!("'{name}' is a {}, not a {class}", found.class));
        return Err(error.click(format!("element is not a {class}")).at(argument));
    }
    let (ports, own) = ((found.inputs, found.outputs), (setup.inputs, setup.outputs));
    if ports != own {
        let (inputs, outputs) = ports;
        let message = format!("'{name}' has {inputs} inputs and {outputs} outputs, not {}", own.0);
        return Err(ArgError::new(message).at(argument));
    }
    Ok(found.config.to_owned())
}
