//! `VStaticThreadSched`: assigns threads to accounts of processor time.

use castanet_element::prelude::*;

/// Charges the processor time of threads to contexts (*Data plane virtualisation*, section 3).
///
/// A thread is a number that `StaticThreadSched` gives to elements, one for each virtual router. Where there are fewer workers than
/// threads, several threads are on one worker, each with its own account. The shares of a context are
/// those of the [`CPUAccount`](CPUAccount.md) of its name; one without is charged, and has no guarantee and no limit.
///
/// ```click
/// StaticThreadSched(r1 0, r2 1);
/// VStaticThreadSched(0 vs1, 1 vs2);
/// first :: CPUAccount(vs1, GUARANTEE 15%, LIMIT 15%);
/// in -> q :: Queue -> r1 :: Unqueue -> q2 :: Queue -> r2 :: Unqueue -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// + 10ms
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = first.limit 15%
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct VStaticThreadSched {
    /// A thread, and the name or number of its context.
    #[arg(rest)]
    pairs: Vec<Words>,
}

impl Info for VStaticThreadSched {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in self.pairs.iter().filter(|it| !it.words.is_empty()) {
            let [thread, context] = argument.words.as_slice() else {
                return Err(ArgError::new(format!("`{}` is no thread and context", argument.text))
                    .help("a number is followed by a name, as in `0 vs1`"));
            };
            let thread = usize::from_arg(thread, &Names::default()).map_err(|e| e.at("THREAD"))?;
            if facts.contexts.iter().any(|(other, _)| *other == thread) {
                return Err(ArgError::new(format!("thread {thread} has a context already")));
            }
            facts.contexts.push((thread, context.clone()));
        }
        Ok(())
    }
}
