//! `CopyTCPSeq`: writes the highest sequence number of some segments to others.

use castanet_element::prelude::*;
use castanet_element::wire::tcp::precedes;

/// Writes the highest sequence number of segments on input 0 to all segments on input 1.
///
/// Segments leave by the output of their input's number. Numbers are compared modulo 2^32. Before the
/// first segment the number is 0. Checksums are not updated; `SetTCPChecksum` does that.
///
/// ```click
/// a -> [0] c :: CopyTCPSeq [0] -> x;  b -> [1] c [1] -> SetTCPChecksum -> y
/// > a 1.0.0.1:10 > 2.0.0.2:20 tcp seq 4294967290
/// > a 1.0.0.1:10 > 2.0.0.2:20 tcp seq 5
/// > a 1.0.0.1:10 > 2.0.0.2:20 tcp seq 1
/// > b 2.0.0.2:20 > 1.0.0.1:10 tcp seq 7
/// < x 1.0.0.1:10 > 2.0.0.2:20 tcp seq 4294967290
/// < x 1.0.0.1:10 > 2.0.0.2:20 tcp seq 5
/// < x 1.0.0.1:10 > 2.0.0.2:20 tcp seq 1
/// < y 2.0.0.2:20 > 1.0.0.1:10 tcp seq 5
/// ! c.reset
/// > a 1.0.0.1:10 > 2.0.0.2:20 tcp seq 1
/// > b 2.0.0.2:20 > 1.0.0.1:10 tcp seq 7
/// < x 1.0.0.1:10 > 2.0.0.2:20 tcp seq 1
/// < y 2.0.0.2:20 > 1.0.0.1:10 tcp seq 1
/// ```
#[derive(Element)]
#[element(room = "tcp", ports = "2/2", processing = "a/a", flow = "#/#")]
pub struct CopyTCPSeq;

/// The highest number.
#[derive(Default, Local)]
#[local(methods)]
pub struct CopyTCPSeqState {
    seq: u32,
    is_set: bool,
}

#[handlers]
impl CopyTCPSeqState {
    /// Forgets the number: the next segment on input 0 has the highest.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.is_set = false;
        Ok(())
    }

    /// Notes the number of a segment.
    fn note(&mut self, seq: u32) {
        if !self.is_set || precedes(self.seq, seq) {
            (self.seq, self.is_set) = (seq, true);
        }
    }
}

#[derive(Fate)]
pub enum CopyTCPSeqExit {
    /// Segments of input 0.
    Source,
    /// Segments of input 1, with the highest number.
    Copy,
}

impl PerBatch for CopyTCPSeq {
    type On = on::Tcp;
    type Local = CopyTCPSeqState;
    type Fate = CopyTCPSeqExit;
    // There is one highest number.
    const SHARED: bool = true;

    fn batch(&self, state: &mut CopyTCPSeqState, port: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in &mut batch {
            let Some(mut tcp) = packet.tcp() else { continue };
            match port {
                0 => state.note(tcp.seq()),
                _ => tcp.set_seq(state.seq),
            }
        }
        cx.emit_batch(if port == 0 { CopyTCPSeqExit::Source } else { CopyTCPSeqExit::Copy }, batch);
    }
}
