//! `TimeSortedSched`: several streams as one, by time.

use castanet_engine::prelude::*;

/// Pulls from all its inputs and hands packets on in the order of their time stamps.
///
/// Each input must be in order by itself. A packet goes when every input has
/// either one that is younger or nothing at all.
///
/// ```click
/// a -> Queue -> [0] s :: TimeSortedSched -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp ; time 1000000001
/// > a 1.0.0.3 > 2.0.0.2 udp ; time 1000000003
/// > b 1.0.0.2 > 2.0.0.2 udp ; time 1000000002
/// > b 1.0.0.4 > 2.0.0.2 udp ; time 1000000004
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.000000000
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000002.000000000
/// < out 1.0.0.3 > 2.0.0.2 udp ; time 1000000003.000000000
/// < out 1.0.0.4 > 2.0.0.2 udp ; time 1000000004.000000000
/// ```
///
/// With STOP it stops the router once all inputs have run dry.
///
/// ```click
/// in -> Queue -> s :: TimeSortedSched(STOP true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "schedule", ports = "-/1", processing = "l/l")]
pub struct TimeSortedSched {
    /// Whether to stop the router when there is nothing left to pull.
    #[arg(keyword, default = false)]
    stop: bool,
    /// How many packets of an input FastClick keeps ready; here the puller's burst decides.
    #[arg(keyword, default = 1)]
    #[allow(dead_code)]
    buffer: u32,
}

/// What was pulled ahead.
#[derive(Default, Local)]
pub struct Heads {
    /// By input: its packets, the next one last.
    heads: Vec<Vec<Packet>>,
    /// How often in a row there was nothing.
    quiet: u32,
}

impl Heads {
    /// The input whose next packet is the oldest, once each has one or is dry.
    fn oldest(&mut self, n: usize, cx: &mut Cx) -> Option<usize> {
        self.heads.resize_with(cx.inputs(), Vec::new);
        for (input, head) in self.heads.iter_mut().enumerate().filter(|(_, head)| head.is_empty()) {
            head.extend(cx.pull(input, n).drain().rev());
        }
        let next = |(input, head): (usize, &Vec<Packet>)| Some((head.last()?.timestamp(), input));
        self.heads.iter().enumerate().filter_map(next).min().map(|(_, input)| input)
    }
}

impl Source for TimeSortedSched {
    type Local = Heads;
    type Fate = ();

    fn ask(&self, local: &mut Heads, n: usize, cx: &mut Cx) -> Asked {
        /// Others had a turn in between, so that nothing is on its way.
        const SURE: u32 = 2;
        let mut sent = 0;
        while sent < n
            && let Some(input) = local.oldest(n, cx)
        {
            local.heads[input].pop().into_iter().for_each(|packet| cx.emit((), packet));
            sent += 1;
        }
        local.quiet = if sent > 0 || cx.is_later() { 0 } else { local.quiet + 1 };
        if self.stop && local.quiet == SURE {
            cx.stop();
        }
        Asked::Empty
    }

    fn held(&self, local: &Heads) -> usize {
        local.heads.iter().map(Vec::len).sum()
    }
}
