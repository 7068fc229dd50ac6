//! `NotifierDebug`: shows the signal next to it.

use castanet_element::prelude::*;

/// Passes packets on, and shows whether there is something to pull or room to push.
///
/// `signal` is about the stores next to it: upstream, whether they have packets, if it is pulled, else
/// downstream, whether they have room. It is `KIND.WORD/MASK:VALUE` in hexadecimal digits, with `*`
/// behind it if it is on: each store of a configuration has a bit, in the order of declaration.
/// `busy*` means always, `idle` never.
///
/// ```click
/// in -> f :: NotifierDebug -> q :: Queue(1) -> e :: NotifierDebug -> u :: Unqueue(ACTIVE false) -> out
/// = f.signal full.0/1:1*
/// > in  1.0.0.1 > 2.0.0.2 udp
/// = f.signal full.0/1:0
/// = e.signal empty.0/1:1*
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = e.signal empty.0/1:0
/// = f.signal full.0/1:1*
/// ```
///
/// ```click
/// a -> Queue -> [0] r :: RoundRobinSched -> e :: NotifierDebug -> out
/// Idle -> Queue -> Discard; b -> f :: NotifierDebug -> Queue -> [1] r
/// Idle -> i :: NotifierDebug -> Unqueue -> Discard
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = e.signal empty.0/5:0
/// = f.signal full.0/4:4*
/// = i.signal idle
/// ```
#[derive(Element)]
#[element(room = "queue", ports = "1/1")]
pub struct NotifierDebug;

impl PerBatch for NotifierDebug {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
