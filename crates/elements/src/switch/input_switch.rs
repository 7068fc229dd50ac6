//! `InputSwitch`: passes on the packets of one input.

use castanet_element::prelude::*;

/// Passes on the packets of one input, which a handler can change; drops others.
///
/// ```click
/// a -> s :: InputSwitch(OUTPUT 0) -> out;  b -> [1] s
/// > a   1.0.0.1 > 2.0.0.2 udp
/// > b   1.0.1.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.other 1
/// ! s.switch 1
/// = s.switch 1
/// > b   1.0.1.2 > 2.0.0.2 udp
/// < out 1.0.1.2 > 2.0.0.2 udp
/// ! s.switch -1
/// > a   1.0.0.2 > 2.0.0.2 udp
/// = s.drops.other 2
/// ! s.switch 9
/// = s.switch -1
/// = s.config -1
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = InputSwitchArgs, methods, ports = "1-/1", processing = "h/h")]
pub struct InputSwitch {
    input: i64,
    inputs: usize,
}

#[derive(Args)]
pub struct InputSwitchArgs {
    /// Number of the input whose packets pass; negative for none.
    #[arg(name = "OUTPUT", default = 0)]
    input: i64,
}

#[derive(Fate)]
pub enum InputSwitchExit {
    /// Packets of the selected input.
    Chosen,
    /// Packets of inputs that are not selected.
    #[drop]
    Other,
}

impl InputSwitch {
    fn checked(self) -> Result<Self, ArgError> {
        match usize::try_from(self.input).is_ok_and(|input| input >= self.inputs) {
            true => Err(ArgError::new(format!("input must be < {}", self.inputs))),
            false => Ok(self),
        }
    }
}

#[handlers]
impl InputSwitch {
    /// The arguments as they are in effect: the number of the input.
    #[read]
    fn config(&self) -> i64 {
        self.input
    }
    /// Number of the input whose packets pass; negative for none.
    #[read]
    fn switch(&self) -> i64 {
        self.input
    }
    /// Sets the input whose packets pass; the number of an input that is not there means none, as in
    /// Click.
    #[write(switch)]
    fn set_switch(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let input = i64::from_arg(text, names);
        let input = input.map_err(|e| e.reworded("InputSwitch input must be integer"))?;
        let chosen = InputSwitch { input, inputs: self.inputs };
        Ok(chosen.checked().unwrap_or(InputSwitch { input: -1, inputs: self.inputs }))
    }
}

impl Build for InputSwitch {
    type Args = InputSwitchArgs;

    fn build(args: InputSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        InputSwitch { input: args.input, inputs: setup.inputs }.checked()
    }
}

impl PerBatch for InputSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = InputSwitchExit;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        let is_selected = usize::try_from(self.input).is_ok_and(|input| input == port);
        cx.emit_batch(
            if is_selected { InputSwitchExit::Chosen } else { InputSwitchExit::Other },
            batch,
        );
    }
}
