//! `StaticThreadSched`: assigns elements to workers.

use castanet_element::element::ConfigNotice;
use castanet_element::prelude::*;

/// Assigns elements, or all elements of a compound, to workers.
///
/// A worker is a number from 0, or `NODE/N`: worker N, from 0, of those on the cores of NUMA node NODE. An
/// element with a number that no worker has belongs to worker 0, with a warning; where `VStaticThreadSched` names a
/// context for the number, it belongs to the worker with the remainder of a division by the number of workers.
///
/// ```click
/// StaticThreadSched(d 0/0, c 0)
/// Idle -> PullNull -> c :: Counter -> d :: Discard
/// = d.count 0
/// = d.home_thread 0
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct StaticThreadSched {
    /// Name of an element, and its worker; -1 for no assignment.
    #[arg(rest)]
    pairs: Vec<Words>,
}

/// The worker of the text; `None` for no assignment.
fn worker(text: &str, facts: &mut Facts) -> Result<Option<usize>, ArgError> {
    let number = |text: &str| i32::from_arg(text, &Names::default()).map_err(|e| e.at("THREAD"));
    let Some((node, place)) = text.split_once('/') else {
        let worker = number(text)?;
        if worker < -1 {
            // As in Click, where it is taken as -1.
            let warning = format!("thread preference {worker} out of range");
            facts.notices.push(ConfigNotice::Warning(warning));
        }
        return Ok(usize::try_from(worker).ok());
    };
    let (node, place) = (number(node)?, number(place)?);
    let nodes = &facts.nodes;
    let of_node = (0..nodes.len()).filter(|&it| i32::try_from(nodes[it]) == Ok(node));
    let of_node: Vec<usize> = of_node.collect();
    let worker = usize::try_from(place).ok().and_then(|place| of_node.get(place));
    worker.copied().map(Some).ok_or_else(|| {
        let there = of_node.len();
        ArgError::new(format!(
            "THREAD: NUMA node {node} has {there} workers, and no worker {place}"
        ))
        .click(format!("thread preference {text} out of range"))
        .help("`castanet explain` shows the worker of each core")
    })
}

impl Info for StaticThreadSched {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in &self.pairs {
            let (name, place) = match argument.words.as_slice() {
                [] => continue,
                [name, place] => (name, place),
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
            if let Some(worker) = worker(place, facts)? {
                facts.homes.push((name.clone(), worker));
            }
        }
        Ok(())
    }
}
