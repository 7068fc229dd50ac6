//! `TimeFilter`: filters packets by time stamp.

use super::signed_time::seconds;
use super::time_window::{TimeWindow, WindowEnd, WindowStart};
use castanet_element::prelude::*;

/// Filters packets by time stamp: passes those within a period.
///
/// Start and end may be absolute, relative to the first packet (`_AFTER`), relative to the start
/// of the router (`_DELAY`) or, for the end, relative to the start of the period (INTERVAL). The
/// end does not belong to the period. At the first packet that is not before the end END_CALL is
/// called once, before that packet leaves; `$t` in it is replaced by the packet's time stamp. If
/// the call moves the end, a packet that was pushed is checked again, and there may be another
/// call.
///
/// ```click
/// in -> f :: TimeFilter(START_AFTER 1, INTERVAL 2, END_CALL p.color 9) -> p :: Paint(1) -> out;  f[1] -> rest
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000010
/// > in   1.0.0.2 > 2.0.0.2 udp ; time 1000000011
/// > in   1.0.0.3 > 2.0.0.2 udp ; time 1000000012
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 1000000010.000000000
/// < out  1.0.0.2 > 2.0.0.2 udp ; time 1000000011.000000000 paint 1
/// < out  1.0.0.3 > 2.0.0.2 udp ; time 1000000012.000000000 paint 1
/// = f.start 1000000011.000000
/// = f.end 1000000013.000000
/// = f.interval 2.000000
/// > in   1.0.0.4 > 2.0.0.2 udp ; time 1000000013.5
/// < rest 1.0.0.4 > 2.0.0.2 udp ; time 1000000013.500000000
/// = p.color 9
/// ! f.extend_interval 1
/// = f.end 1000000014.000000
/// ! f.interval 5
/// ! f.start 1000000000
/// ! f.end 1000000001
/// = f.interval 1.000000
/// ```
///
/// ```click
/// in -> f :: TimeFilter(END 1000000010, END_CALL f.extend_interval 2) -> out;  f[1] -> rest
/// > in  1.0.0.1 > 2.0.0.2 udp ; time 1000000013
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000013.000000000
/// = f.end 1000000014.000000
/// > in  1.0.0.2 > 2.0.0.2 udp ; time 1000000014
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000014.000000000
/// ```
///
/// ```click
/// in -> f :: TimeFilter(END 1000000010, END_CALL f.end 1000000009) -> out;  f[1] -> rest
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000013
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 1000000013.000000000
/// = f.end 1000000009.000000
/// ```
///
/// ```click
/// in -> f :: TimeFilter(1000000001, 1000000002, END_CALL s.run $t) -> out;  f[1] -> rest
/// s :: Script(TYPE PASSIVE, write p.color 1, goto end $(ne $1 1000000003.500000), write p.color 2, label end)
/// Idle -> p :: Paint(0) -> Idle
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 1000000000
/// > in   1.0.0.2 > 2.0.0.2 udp ; time 1000000001
/// > in   1.0.0.3 > 2.0.0.2 udp ; time 1000000003.5
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 1000000000.000000000
/// < out  1.0.0.2 > 2.0.0.2 udp ; time 1000000001.000000000
/// < rest 1.0.0.3 > 2.0.0.2 udp ; time 1000000003.500000000
/// = p.color 2
/// ```
///
/// ```click
/// in -> f :: TimeFilter(START 1, END 10) -> out;  f[1] -> rest
/// = f.start 1.000000
/// = f.end 10.000000
/// = f.interval 9.000000
/// ! f.end 4
/// ! f.extend_interval -1
/// > in   1.0.0.1 > 2.0.0.2 udp ; time 3.25
/// > in   1.0.0.2 > 2.0.0.2 udp ; time 2.5
/// < rest 1.0.0.1 > 2.0.0.2 udp ; time 3.250000000
/// < out  1.0.0.2 > 2.0.0.2 udp ; time 2.500000000
/// = f.end 3.000000
/// ```
#[derive(Element)]
#[element(room = "trace", args = TimeFilterArgs)]
pub struct TimeFilter {
    window: TimeWindow,
    stop: bool,
    call: Option<Call>,
}

#[derive(Args)]
pub struct TimeFilterArgs {
    /// The start, in seconds since 1970.
    #[arg]
    start: Option<Timestamp>,
    /// The end, in seconds since 1970.
    #[arg]
    end: Option<Timestamp>,
    /// The start, as a time after the first packet.
    #[arg(keyword)]
    start_after: Option<Duration>,
    /// The start, as a time after the start of the router.
    #[arg(keyword)]
    start_delay: Option<Duration>,
    /// The end, as a time after the first packet.
    #[arg(keyword)]
    end_after: Option<Duration>,
    /// The end, as a time after the start of the router.
    #[arg(keyword)]
    end_delay: Option<Duration>,
    /// The end, as a time after the start of the period.
    #[arg(keyword)]
    interval: Option<Duration>,
    /// Whether to stop the router at the first packet that is not before the end.
    #[arg(keyword, default = false)]
    stop: bool,
    /// A handler to write at that packet, and its value.
    #[arg(keyword)]
    end_call: Option<Call>,
}

impl Build for TimeFilter {
    type Args = TimeFilterArgs;

    fn build(it: TimeFilterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let absolute = |time: Timestamp| time.0;
        let started = setup.started;
        let begin = match (it.start, it.start_after, it.start_delay) {
            (None, None, None) => WindowStart::At(0),
            (Some(time), None, None) => WindowStart::At(absolute(time)),
            (None, Some(after), None) => WindowStart::After(nanos(after)),
            (None, None, Some(delay)) => WindowStart::At((started + delay).0),
            _ => {
                return Err(ArgError::new("conflicting START arguments")
                    .help("one of START, START_AFTER and START_DELAY"));
            }
        };
        let end = match (it.end, it.end_after, it.end_delay, it.interval) {
            (None, None, None, None) => WindowEnd::At(i64::MAX),
            (Some(time), None, None, None) => WindowEnd::At(absolute(time)),
            (None, Some(after), None, None) => WindowEnd::After(nanos(after)),
            (None, None, Some(delay), None) => WindowEnd::At((started + delay).0),
            (None, None, None, Some(interval)) => WindowEnd::Interval(nanos(interval)),
            _ => {
                return Err(ArgError::new("conflicting END arguments")
                    .help("one of END, END_AFTER, END_DELAY and INTERVAL"));
            }
        };
        if it.stop && it.end_call.is_some() {
            return Err(ArgError::new("STOP and END_CALL are mutually exclusive"));
        }
        Ok(TimeFilter { window: TimeWindow::new(begin, end), stop: it.stop, call: it.end_call })
    }
}

impl TimeFilter {
    /// The handler that a configuration string makes the element call.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        let call = <TimeFilterArgs as Args>::parse(config, names).ok()?.end_call?;
        Some(vec![(Some("END_CALL"), call.handler)])
    }
}

#[derive(Fate)]
pub enum TimeFilterExit {
    /// Packets within the period.
    Within,
    /// Packets outside the period.
    #[optional]
    Outside,
}

impl PerBatch for TimeFilter {
    type On = on::Any;
    type Local = TimeWindow;
    type Fate = TimeFilterExit;
    const SHARED: bool = true;

    fn apply_config(&self, window: &mut TimeWindow) {
        window.configure(&self.window);
    }

    fn batch(&self, window: &mut TimeWindow, port: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            let time = packet.timestamp();
            if window.is_first_after(time) {
                if self.stop {
                    cx.stop();
                }
                if let Some(Call { handler, value }) = &self.call {
                    let value = value.replace("$t", &seconds(time));
                    if cx.pulling_output().is_none() {
                        cx.call_and_return(handler, &value, port, packet);
                        continue;
                    }
                    cx.call(handler, &value);
                }
            }
            let exit = if window.contains(time) {
                TimeFilterExit::Within
            } else {
                TimeFilterExit::Outside
            };
            cx.emit(exit, packet);
        }
    }
}
