//! Handlers that elements call in the middle of a path, where something else happens there too.

use crate::bed::{balance, build, clean, number};
use castanet_element::class::{Class, per_batch, per_packet, source};
use castanet_element::prelude::*;

/// Writes a handler at each batch, between its first packet and the others; then panics, or not.
#[derive(Element)]
struct Tell {
    /// The handler.
    #[arg]
    handler: String,
    /// The value to write.
    #[arg]
    value: String,
    /// Whether to panic when there are two packets left.
    #[arg(keyword, default = false)]
    trip: bool,
}

impl PerBatch for Tell {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        let mut others = batch.split_off(1);
        cx.emit_batch((), batch);
        cx.call(&self.handler, &self.value);
        if self.trip {
            let left = others.split_off(others.len().saturating_sub(2));
            cx.emit_batch((), std::mem::replace(&mut others, left));
            assert!(others.is_empty(), "tripped, as the test wants");
        }
        cx.emit_batch((), others);
    }
}

/// Writes a handler, then pulls, and pushes on.
#[derive(Element)]
#[element(ports = "1/1", processing = "l/h")]
struct Fetch {
    /// The handler.
    #[arg]
    handler: String,
    /// The value to write.
    #[arg]
    value: String,
}

#[derive(Default, Local)]
struct ReadState {
    once: bool,
}

impl Source for Fetch {
    type Local = ReadState;
    type Fate = ();
    fn produce(&self, fetched: &mut ReadState, n: usize, cx: &mut Cx) -> NextRun {
        if !std::mem::replace(&mut fetched.once, true) {
            cx.call(&self.handler, &self.value);
        }
        let batch = cx.pull(0, n);
        let asked = if batch.is_empty() { NextRun::Empty } else { NextRun::Again };
        cx.emit_batch((), batch);
        asked
    }
}

/// Passes packets on, and remembers what was written to it.
#[derive(Element)]
struct Note;

#[derive(Default, Local)]
#[local(methods)]
struct NoteState {
    words: Vec<String>,
}

#[handlers]
impl NoteState {
    /// All that was written.
    #[read]
    fn words(&self) -> String {
        self.words.join(" ")
    }
    /// Something to remember.
    #[write]
    fn note(&mut self, word: &str) -> Result<(), ArgError> {
        self.words.push(word.to_owned());
        Ok(())
    }
}

impl PerPacket for Note {
    type On = on::Any;
    type Local = NoteState;
    type Fate = ();
    fn packet(&self, _: &mut NoteState, _: &mut Packet) {}
}

pub(crate) static CLASSES: &[Class] =
    &[per_batch::<Tell>(), source::<Fetch>(), per_packet::<Note>()];

#[test]
fn what_was_sent_before_a_call_and_a_panic_is_not_lost() {
    let text = "m :: Make(320) -> t :: Tell(n.note, x, TRIP true) -> n :: Note -> e :: End";
    let mut router = build(text, 1, true);
    router.settle(1000);
    // Of each ten bursts two packets.
    assert_eq!(number(&mut router, "t.drops.panic"), 20);
    assert_eq!(number(&mut router, "e.count"), 300);
    assert_eq!(router.read("n.words").unwrap(), ["x"; 10].join(" "));
    balance(&mut router);
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.panics), (0, 10));
}

#[test]
fn calls_on_a_pull_are_made_by_the_elements_that_made_them() {
    // Names are those of the caller's own compound.
    let text =
        "elementclass Inner { input -> Tell(n.note, inner) -> output; Make(0) -> n :: Note -> End }
                Make(5) -> Keep -> i :: Inner -> Fetch(n.note, outer) -> n :: Note -> e :: End";
    let mut router = build(text, 1, true);
    router.settle(1000);
    let words = ["n.words", "i/n.words"].map(|handler| router.read(handler).unwrap());
    assert_eq!(words, ["outer", "inner"]);
    assert_eq!(number(&mut router, "e.count"), 5);
    balance(&mut router);
    clean(router);
}
