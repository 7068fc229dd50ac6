//! `StaticThreadSched`: assigns elements to workers.

use castanet_element::prelude::*;

/// Assigns elements, or all elements of a compound, to workers.
///
/// ```click
/// StaticThreadSched(d 1, c 0)
/// Idle -> PullNull -> c :: Counter -> d :: Discard
/// = d.count 0
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct StaticThreadSched {
    /// Name of an element, and the number of its worker; -1 for no assignment.
    #[arg(rest)]
    pairs: Vec<Words>,
}

impl Info for StaticThreadSched {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in &self.pairs {
            let (name, worker) = match argument.words.as_slice() {
                [] => continue,
                [name, worker] => (name, worker),
                [_] => {
                    return Err(ArgError::new(format!("`{}` has no worker", argument.text))
                        .click("THREAD: required argument missing")
                        .help("an element is followed by a number, as in `q 1`"));
                }
                [_, _, more, ..] => {
                    return Err(ArgError::new(format!("`{more}` is one word too many"))
                        .click("too many arguments"));
                }
            };
            let worker = i32::from_arg(worker, &Names::default()).map_err(|e| e.at("THREAD"))?;
            if worker < -1 {
                return Err(ArgError::new(format!("THREAD: there is no worker {worker}"))
                    .click(format!("thread preference {worker} out of range"))
                    .help("workers are counted from 0; -1 leaves the element where it is"));
            }
            if let Ok(worker) = usize::try_from(worker) {
                facts.homes.push((name.clone(), worker));
            }
        }
        Ok(())
    }
}
