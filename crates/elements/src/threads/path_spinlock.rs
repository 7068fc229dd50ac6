//! `PathSpinlock`: passes packets on where FastClick locks what follows.

use castanet_element::args::AddressKind;
use castanet_element::prelude::*;

/// Passes packets on unchanged, each to the output of its input's number.
///
/// In FastClick one thread at a time may be on the paths behind the elements with
/// the same lock, because elements there may have state that threads must not
/// change at the same time. Here the state of an element belongs to one worker, or
/// is locked while a worker changes it: several workers may use the paths
/// together. LOCK is only checked.
///
/// ```click
/// SpinlockInfo(path)
/// a -> p :: PathSpinlock(path) -> b;  c -> [1] p;  p[1] -> d
/// e -> Queue -> PathSpinlock -> Unqueue -> f
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > c 1.0.0.3 > 2.0.0.4 udp
/// > e 1.0.0.5 > 2.0.0.6 udp
/// < b 1.0.0.1 > 2.0.0.2 udp
/// < d 1.0.0.3 > 2.0.0.4 udp
/// < f 1.0.0.5 > 2.0.0.6 udp
/// = p.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "threads", args = PathSpinlockArgs, ports = "1-/=", processing = "a/a", flow = "#/#")]
pub struct PathSpinlock;

#[derive(Args)]
pub struct PathSpinlockArgs {
    /// Name of a lock of a `SpinlockInfo`; a lock of the element's own if it is not given.
    #[arg]
    lock: Option<String>,
}

impl Build for PathSpinlock {
    type Args = PathSpinlockArgs;
    fn build(args: PathSpinlockArgs, setup: &Setup) -> Result<Self, ArgError> {
        let unknown = |name: &&String| {
            !name.is_empty() && setup.names.resolve(name, AddressKind::Spinlock).is_none()
        };
        if let Some(name) = args.lock.as_ref().filter(unknown) {
            let error = ArgError::new(format!("cannot locate spinlock {name}"));
            return Err(error.help("a SpinlockInfo declares locks"));
        }
        Ok(PathSpinlock)
    }
}

impl PerBatch for PathSpinlock {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, (): &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
