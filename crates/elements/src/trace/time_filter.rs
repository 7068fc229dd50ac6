//! `TimeFilter`: packets of some time.

use super::time_span::seconds;
use super::time_window::{Begin, End, Window};
use castanet_engine::prelude::*;

/// Passes packets whose time stamps lie within a time.
///
/// It may be given absolutely, from the first packet on (`_AFTER`), from the start of the router
/// on (`_DELAY`), or, for the end, from the beginning on (INTERVAL). The end itself
/// no longer belongs to it. What is to be called at the first packet that does not come before the
/// end is called once, before that packet goes on; `$t` in it stands for the packet's time. If it moves
/// the end, a packet that was pushed is looked at anew, and there may be another call.
///
/// ```click
/// in -> f :: TimeFilter(START_AFTER 1, INTERVAL 2, END_CALL p.color 9) -> p :: Paint(1) -> out;  f[1] -> rest
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000010
/// > in   1.0.0.2 > 2.0.0.2 udp ; time 1000000011
/// > in   1.0.0.3 > 2.0.0.2 udp ; time 1000000012
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 1000000010.000000000
/// < out  1.0.0.2 > 2.0.0.2 udp ; time 1000000011.000000000 paint 1
/// < out  1.0.0.3 > 2.0.0.2 udp ; time 1000000012.000000000 paint 1
/// = f.start 1000000011.000000000
/// = f.end 1000000013.000000000
/// = f.interval 2.000000000
/// > in   1.0.0.4 > 2.0.0.2 udp ; time 1000000013.5
/// < rest 1.0.0.4 > 2.0.0.2 udp ; time 1000000013.500000000
/// = p.color 9
/// ! f.extend_interval 1
/// = f.end 1000000014.000000000
/// ! f.interval 5
/// ! f.start 1000000000
/// ! f.end 1000000001
/// = f.interval 1.000000000
/// ```
///
/// ```click
/// in -> f :: TimeFilter(END 1000000010, END_CALL f.extend_interval 2) -> out;  f[1] -> rest
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000013
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000013.000000000
/// = f.end 1000000014.000000000
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000014
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000014.000000000
/// ```
///
/// ```click
/// in -> f :: TimeFilter(END 1000000010, END_CALL f.end 1000000009) -> out;  f[1] -> rest
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000013
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 1000000013.000000000
/// = f.end 1000000009.000000000
/// ```
#[derive(Element)]
#[element(room = "trace", args = Wishes)]
pub struct TimeFilter {
    window: Window,
    stop: bool,
    call: Option<Call>,
}

#[derive(Args)]
pub struct Wishes {
    /// The first time, in seconds since 1970.
    #[arg(keyword)]
    start: Option<Timestamp>,
    /// The first time, after that of the first packet.
    #[arg(keyword)]
    start_after: Option<Duration>,
    /// The first time, after the start of the router.
    #[arg(keyword)]
    start_delay: Option<Duration>,
    /// The end, in seconds since 1970.
    #[arg(keyword)]
    end: Option<Timestamp>,
    /// The end, after that of the first packet.
    #[arg(keyword)]
    end_after: Option<Duration>,
    /// The end, after the start of the router.
    #[arg(keyword)]
    end_delay: Option<Duration>,
    /// The end, after the first time.
    #[arg(keyword)]
    interval: Option<Duration>,
    /// Whether to stop the router at the first packet after the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to write then, and its value.
    #[arg(keyword)]
    end_call: Option<Call>,
}

impl Build for TimeFilter {
    type Args = Wishes;

    fn build(it: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let absolute = |time: Timestamp| time.0;
        let started = setup.started;
        let begin = match (it.start, it.start_after, it.start_delay) {
            (None, None, None) => Begin::At(0),
            (Some(time), None, None) => Begin::At(absolute(time)),
            (None, Some(after), None) => Begin::After(nanos(after)),
            (None, None, Some(delay)) => Begin::At((started + delay).0),
            _ => {
                return Err(ArgError::new("conflicting START arguments")
                    .help("one of START, START_AFTER and START_DELAY"));
            }
        };
        let end = match (it.end, it.end_after, it.end_delay, it.interval) {
            (None, None, None, None) => End::At(i64::MAX),
            (Some(time), None, None, None) => End::At(absolute(time)),
            (None, Some(after), None, None) => End::After(nanos(after)),
            (None, None, Some(delay), None) => End::At((started + delay).0),
            (None, None, None, Some(interval)) => End::Interval(nanos(interval)),
            _ => {
                return Err(ArgError::new("conflicting END arguments")
                    .help("one of END, END_AFTER, END_DELAY and INTERVAL"));
            }
        };
        if it.stop && it.end_call.is_some() {
            return Err(ArgError::new("STOP and END_CALL are mutually exclusive"));
        }
        Ok(TimeFilter { window: Window::new(begin, end), stop: it.stop, call: it.end_call })
    }
}

impl TimeFilter {
    /// The handler that it calls.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        let call = <Wishes as Args>::parse(config, names).ok()?.end_call?;
        Some(vec![(Some("END_CALL"), call.handler)])
    }
}

#[derive(Fate)]
pub enum Way {
    /// Packets of that time.
    Within,
    /// Packets of other times.
    #[optional]
    Outside,
}

impl PerBatch for TimeFilter {
    type On = on::Any;
    type Local = Window;
    type Fate = Way;
    const SHARED: bool = true;

    fn batch(&self, window: &mut Window, port: usize, batch: Batch, cx: &mut Cx) {
        window.begin(&self.window);
        for packet in batch {
            let time = packet.timestamp();
            if window.is_first_after(time) {
                if self.stop {
                    cx.stop();
                }
                if let Some(Call { handler, value }) = &self.call {
                    let value = value.replace("$t", &seconds(time));
                    if cx.pulled().is_none() {
                        cx.call_and_return(handler, &value, port, packet);
                        continue;
                    }
                    cx.call(handler, &value);
                }
            }
            let way = if window.has(time) { Way::Within } else { Way::Outside };
            cx.emit(way, packet);
        }
    }
}
