//! `HandlerAggregate`: aggregates a handler of several elements.

use castanet_element::prelude::*;

/// Aggregates a read handler of several elements: sum, mean, minimum, maximum or list.
///
/// The parameter names the handler, as in `h.add(count)`.
///
/// ```click
/// a -> c :: Counter -> x;  b -> d :: Counter -> y;  h :: HandlerAggregate(ELEMENT c, ELEMENT d)
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.0.1 > 2.0.0.2 udp len 40
/// > b 1.0.0.1 > 2.0.0.2 udp len 80
/// < x 1.0.0.1 > 2.0.0.2 udp len 60
/// < y 1.0.0.1 > 2.0.0.2 udp len 40
/// < y 1.0.0.1 > 2.0.0.2 udp len 80
/// = h.add(count) 3
/// = h.avg(byte_count) 90
/// = h.min(byte_count) 60
/// = h.max(byte_count) 120
/// = h.list(count) 1 2
/// ```
#[derive(Element)]
#[element(room = "script", args = HandlerAggregateArgs)]
pub struct HandlerAggregate {
    elements: Vec<String>,
}

#[derive(Args)]
pub struct HandlerAggregateArgs {
    /// One element per argument, with or without the word `ELEMENT`.
    #[arg(rest)]
    elements: Vec<Words>,
}

impl Build for HandlerAggregate {
    type Args = HandlerAggregateArgs;

    fn build(args: HandlerAggregateArgs, _: &Setup) -> Result<Self, ArgError> {
        let name = |words: &Words| match words.words.as_slice() {
            [name] => Ok(name.clone()),
            [word, name] if word == "ELEMENT" => Ok(name.clone()),
            _ => Err(ArgError::new(format!("`{}` is no element", words.text))),
        };
        let elements: Vec<String> = args.elements.iter().map(name).collect::<Result<_, _>>()?;
        match elements.is_empty() {
            true => Err(ArgError::new("it wants at least one element").at("ELEMENT")),
            false => Ok(HandlerAggregate { elements }),
        }
    }
}

/// Documentation of the handlers. The element itself answers them in `call`.
#[derive(Default, Local)]
#[local(methods)]
pub struct HandlerAggregateState;

#[handlers]
impl HandlerAggregateState {
    /// Sum of the values of a handler.
    #[read]
    fn add(&self) -> String {
        String::new()
    }
    /// Mean of the values of a handler.
    #[read]
    fn avg(&self) -> String {
        String::new()
    }
    /// Minimum of the values of a handler.
    #[read]
    fn min(&self) -> String {
        String::new()
    }
    /// Maximum of the values of a handler.
    #[read]
    fn max(&self) -> String {
        String::new()
    }
    /// All values of a handler, separated by spaces.
    #[read]
    fn list(&self) -> String {
        String::new()
    }
}

impl Control for HandlerAggregate {
    type Local = HandlerAggregateState;

    fn step(&self, _: &mut HandlerAggregateState, _: &mut dyn ControlContext) -> ProgramWait {
        ProgramWait::Ended
    }

    fn references(&self) -> Vec<ProgramReference> {
        self.elements.iter().cloned().map(ProgramReference::Element).collect()
    }

    fn call(
        &self,
        _: &mut HandlerAggregateState,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        if write {
            return None;
        }
        let fold: fn(&[f64]) -> f64 = match handler {
            "add" => |all| all.iter().sum(),
            "avg" => |all| all.iter().sum::<f64>() / all.len() as f64,
            "min" => |all| all.iter().copied().fold(f64::INFINITY, f64::min),
            "max" => |all| all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            "list" => |_| 0.0,
            _ => return None,
        };
        let read = |element: &String| desk.read(&format!("{element}.{}", text.trim()));
        let texts: Result<Vec<String>, ArgError> = self.elements.iter().map(read).collect();
        Some(texts.map(|texts| match handler {
            "list" => texts.join(" "),
            _ => {
                let number = |text: &String| text.trim().parse().unwrap_or(0.0);
                fold(&texts.iter().map(number).collect::<Vec<f64>>()).to_string()
            }
        }))
    }
}
