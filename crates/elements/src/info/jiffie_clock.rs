//! `JiffieClock`: shows the time in jiffies.

use castanet_element::prelude::*;

/// Shows the time in jiffies, which are milliseconds.
///
/// FastClick's element counts jiffies by a timer, and moves that from thread to thread where tasks
/// delay it. Here jiffies are read from the engine's clock and are never late. The element changes
/// nothing, and its arguments have no effect; it is there for configurations that name it
/// and for its handlers.
///
/// ```click
/// clock :: JiffieClock(true, 3)
/// = clock.jiffies 3567587328
/// = clock.status true
/// + 1.5s
/// = clock.jiffies 3567588828
/// ```
#[derive(Element)]
#[element(room = "info", ports = "0/0", methods)]
pub struct JiffieClock {
    /// Whether FastClick's element writes when it begins and when it moves to another thread; ignored.
    #[arg(default = false)]
    #[allow(dead_code)]
    verbose: bool,
    /// Number of jiffies by which FastClick's element may be late; ignored.
    #[arg(default = 2)]
    #[allow(dead_code)]
    minprecision: i32,
}

#[handlers]
impl JiffieClock {
    /// Milliseconds since 1970, modulo 4294967296.
    #[read]
    fn jiffies(&self, ask: &ReadRequest) -> u64 {
        ask.now.nanos() / 1_000_000 % (1 << 32)
    }
    /// Whether the clock counts: always.
    #[read]
    fn status(&self) -> bool {
        true
    }
}

impl PerBatch for JiffieClock {
    type On = on::Any;
    type Local = ();
    type Fate = Never;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}
