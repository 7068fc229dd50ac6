//! `DRRSched`: from each input the same number of bytes.

use castanet_engine::prelude::*;

/// Pulls from its inputs in turn, so that each gets its share of the bytes.
///
/// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): at its turn an
/// input may send as many bytes more as the quantum says; what it has left over,
/// because its next packet is longer, it keeps for its next turn.
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
    /// How many bytes an input may send at each turn.
    #[arg(default = 500, range = 1..)]
    quantum: u32,
}

/// Whose turn it is.
#[derive(Default, Local)]
pub struct Turn {
    next: usize,
    inputs: Vec<Input>,
}

/// One input: its next packet, and how many bytes it may send.
#[derive(Default)]
struct Input {
    head: Option<Packet>,
    deficit: u64,
}

impl Source for DRRSched {
    type Local = Turn;
    type Fate = ();

    fn ask(&self, turn: &mut Turn, n: usize, cx: &mut Cx) -> Asked {
        let (inputs, mut sent, mut dry) = (cx.inputs(), 0, 0);
        turn.inputs.resize_with(inputs, Input::default);
        while sent < n && dry < inputs {
            let it = &mut turn.inputs[turn.next];
            match it.head.take().or_else(|| cx.pull(turn.next, 1).pop()) {
                Some(packet) if packet.len() as u64 <= it.deficit => {
                    it.deficit -= packet.len() as u64;
                    cx.emit((), packet);
                    (sent, dry) = (sent + 1, 0);
                    continue;
                }
                Some(packet) => (it.head, dry) = (Some(packet), 0),
                None => (it.deficit, dry) = (0, dry + 1),
            }
            turn.next = (turn.next + 1) % inputs;
            turn.inputs[turn.next].deficit += u64::from(self.quantum);
        }
        Asked::Empty
    }

    fn held(&self, turn: &Turn) -> usize {
        turn.inputs.iter().filter(|input| input.head.is_some()).count()
    }
}
