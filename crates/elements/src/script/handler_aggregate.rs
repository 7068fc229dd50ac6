//! `HandlerAggregate`: a handler of several elements.

use castanet_engine::prelude::*;

/// Reads a handler of several elements and adds the answers up.
///
/// The handler is the parameter, as in `h.add(count)`.
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
#[element(room = "script", args = Elements)]
pub struct HandlerAggregate {
    elements: Vec<String>,
}

#[derive(Args)]
pub struct Elements {
    /// An element each, after the word `ELEMENT` or without it.
    #[arg(rest)]
    elements: Vec<Words>,
}

impl Build for HandlerAggregate {
    type Args = Elements;

    fn build(args: Elements, _: &Setup) -> Result<Self, ArgError> {
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

/// The handlers' pages; the element answers itself.
#[derive(Default, Local)]
#[local(methods)]
pub struct Answers;

#[handlers]
impl Answers {
    /// The sum of a handler's values.
    #[read]
    fn add(&self) -> String {
        String::new()
    }
    /// The mean of a handler's values.
    #[read]
    fn avg(&self) -> String {
        String::new()
    }
    /// The least of a handler's values.
    #[read]
    fn min(&self) -> String {
        String::new()
    }
    /// The greatest of a handler's values.
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
    type Local = Answers;

    fn step(&self, _: &mut Answers, _: &mut dyn Desk) -> Step {
        Step::Ended
    }

    fn call(
        &self,
        _: &mut Answers,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
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
