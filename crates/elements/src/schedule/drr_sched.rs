//! `DRRSched`: pulls from its inputs by deficit round robin.

use castanet_element::prelude::*;

/// Schedules its inputs by deficit round robin, so that each gets the same share of bytes.
///
/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): in each round an input may send the
/// quantum in bytes. If its next packet is longer than what it may still send, the input keeps the
/// rest for the next round.
///
/// ```click
/// a -> Queue -> [0] s :: DRRSched -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp len 400
/// > a 1.0.0.2 > 2.0.0.2 udp len 400
/// > b 1.0.1.1 > 2.0.0.2 udp len 100
/// > b 1.0.1.2 > 2.0.0.2 udp len 100
/// > b 1.0.1.3 > 2.0.0.2 udp len 100
/// > b 1.0.1.4 > 2.0.0.2 udp len 100
/// > b 1.0.1.5 > 2.0.0.2 udp len 100
/// > b 1.0.1.6 > 2.0.0.2 udp len 100
/// ! u.active true
/// < out 1.0.1.1 > 2.0.0.2 udp len 100
/// < out 1.0.1.2 > 2.0.0.2 udp len 100
/// < out 1.0.1.3 > 2.0.0.2 udp len 100
/// < out 1.0.1.4 > 2.0.0.2 udp len 100
/// < out 1.0.1.5 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 400
/// < out 1.0.1.6 > 2.0.0.2 udp len 100
/// < out 1.0.0.2 > 2.0.0.2 udp len 400
/// ```
#[derive(Element)]
#[element(room = "schedule", ports = "-/1", processing = "l/l")]
pub struct DRRSched {
    /// Number of bytes that an input may send per round.
    #[arg(default = 500, range = 1..)]
    quantum: u32,
}

/// The input to pull from, and the state of each input.
#[derive(Default, Local)]
pub struct DRRSchedState {
    current: usize,
    inputs: Vec<InputState>,
}

/// An input: the packet at its head if that was too long in the last round, and the number of bytes
/// that it may send.
#[derive(Default)]
struct InputState {
    head: Option<Packet>,
    deficit: u64,
}

impl Source for DRRSched {
    type Local = DRRSchedState;
    type Fate = ();

    fn produce(&self, state: &mut DRRSchedState, n: usize, cx: &mut Cx) -> NextRun {
        let (inputs, mut sent, mut empty_inputs) = (cx.inputs(), 0, 0);
        state.inputs.resize_with(inputs, InputState::default);
        while sent < n && empty_inputs < inputs {
            let input = &mut state.inputs[state.current];
            match input.head.take().or_else(|| cx.pull(state.current, 1).pop()) {
                Some(packet) if packet.len() as u64 <= input.deficit => {
                    input.deficit -= packet.len() as u64;
                    cx.emit((), packet);
                    (sent, empty_inputs) = (sent + 1, 0);
                    continue;
                }
                Some(packet) => (input.head, empty_inputs) = (Some(packet), 0),
                None => (input.deficit, empty_inputs) = (0, empty_inputs + 1),
            }
            state.current = (state.current + 1) % inputs;
            state.inputs[state.current].deficit += u64::from(self.quantum);
        }
        NextRun::Empty
    }

    fn held(&self, state: &DRRSchedState) -> usize {
        state.inputs.iter().filter(|input| input.head.is_some()).count()
    }
}
