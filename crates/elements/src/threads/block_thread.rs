//! `BlockThread`: a worker that does nothing for a while.

use castanet_engine::prelude::*;

/// Keeps its worker from everything else for a while, to see what that does.
///
/// The worker is its own, which `StaticThreadSched` can choose; the others go
/// on. Whoever writes the handler waits as long.
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
    /// Does nothing for so many seconds.
    #[write(block)]
    fn block(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        // Of the real time, for a thread knows no other.
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
