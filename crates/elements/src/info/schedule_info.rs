//! `ScheduleInfo`: sets the scheduling parameters of tasks.

use castanet_element::prelude::*;

/// Sets the scheduling parameters (tickets) of elements' tasks.
///
/// A task runs in proportion to its parameter, 1 unless given; with 0 it never
/// runs. The parameter of a compound element applies to all elements in it that have
/// none of their own.
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue -> out;  ScheduleInfo(u 0.5, q 2)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue -> Discard;  ScheduleInfo(u 0)
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = q.length 1
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct ScheduleInfo {
    /// The name of an element, and its scheduling parameter.
    #[arg(rest)]
    pairs: Vec<Words>,
}

impl Info for ScheduleInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in self.pairs.iter().filter(|it| !it.words.is_empty()) {
            let [name, number] = argument.words.as_slice() else {
                return Err(ArgError::new(format!("`{}` is no name and number", argument.text))
                    .click("expected 'ELEMENTNAME PARAM'"));
            };
            let number = f64::from_arg(number, &Names::default()).ok().filter(|&it| it >= 0.0);
            let number = number.ok_or_else(|| {
                ArgError::new(format!("`{}` has no number from 0 on", argument.text))
                    .click("expected 'ELEMENTNAME PARAM' (bad scheduling parameter)")
            })?;
            facts.tickets.push((name.clone(), number));
        }
        Ok(())
    }
}
