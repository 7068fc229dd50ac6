//! `BlockThread`: blocks a worker for some time.

use castanet_element::prelude::*;

/// Blocks its worker for some time, to test the other workers.
///
/// `StaticThreadSched` can assign it to a worker; the other workers go on. A write to the handler
/// `block` returns when the time is over.
///
/// ```click
/// in -> c :: Counter -> out;  b :: BlockThread
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! b.block 1ms
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = c.count 2
/// ```
#[derive(Clone, Element)]
#[element(room = "threads", methods, ports = "0/0")]
pub struct BlockThread;

#[handlers]
impl BlockThread {
    /// Blocks the worker for this time, in seconds.
    #[write(block)]
    fn block(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        // In real time: simulated time does not apply to a thread that sleeps.
        std::thread::sleep(Duration::from_arg(text, names)?);
        Ok(self.clone())
    }
}

impl PerBatch for BlockThread {
    type On = on::Any;
    type Local = ();
    type Fate = Never;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}
