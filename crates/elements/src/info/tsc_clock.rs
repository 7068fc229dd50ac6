//! `TSCClock`: shows the engine's time, which comes from the time-stamp counter.

use castanet_element::prelude::*;

/// Shows the time as the engine reads it from the processor's time-stamp counter.
///
/// FastClick's element makes the time-stamp counter the source of all times. Here it always is: the engine
/// takes the wall clock once, when the router is built, and from then on counts with the time-stamp counter,
/// so that time never jumps. The element changes nothing, and its arguments have no effect; it
/// is there for configurations that name it and for its handlers. In simulated time the handlers show
/// that.
///
/// ```click
/// clock :: TSCClock(VERBOSE 0, NOWAIT true)
/// = clock.now 1000000000000000000
/// = clock.now_steady 0
/// + 1.5s
/// = clock.now 1000000001500000000
/// = clock.now_steady 1500000000
/// = clock.cycles 1500000000
/// = clock.cycles_hz 1000000000
/// = clock.phase 2
/// ```
#[derive(Element)]
#[element(room = "info", args = TSCClockArgs, ports = "0/0", methods)]
pub struct TSCClock {
    started: Time,
}

#[derive(Args)]
pub struct TSCClockArgs {
    /// How much FastClick's element writes about its frequency; ignored.
    #[arg(keyword, default = 1)]
    #[allow(dead_code)]
    verbose: i32,
    /// Whether FastClick's element provides the time; ignored, as the engine's clock always does.
    #[arg(keyword, default = true)]
    install: bool,
    /// Whether FastClick's element provides the time before its frequency is stable; ignored. It needs
    /// INSTALL.
    #[arg(keyword, default = false)]
    nowait: bool,
    /// An element with a clock that FastClick's element follows; refused, as no class has one.
    #[arg(keyword)]
    base: Option<String>,
}

impl Build for TSCClock {
    type Args = TSCClockArgs;

    fn build(args: TSCClockArgs, setup: &Setup) -> Result<Self, ArgError> {
        if let Some(base) = args.base {
            let Some(found) = setup.element(&base, None) else {
                return Err(ArgError::new(format!("no element named '{base}'")).at("BASE"));
            };
            let label = format!("{} :: {}", found.name, found.class);
            let error = ArgError::new(format!("'{label}' is no clock to follow"));
            let help = "without BASE the time is that of the machine";
            return Err(error.click(format!("{label} is not a UserClock")).help(help).at("BASE"));
        }
        if args.nowait && !args.install {
            let click = "You want to install without waiting but do not want to install?!";
            let error = ArgError::new("has no meaning with INSTALL false").click(click);
            return Err(error.at("NOWAIT"));
        }
        Ok(TSCClock { started: setup.started })
    }
}

#[handlers]
impl TSCClock {
    /// The time, in nanoseconds since 1970.
    #[read]
    fn now(&self, ask: &ReadRequest) -> u64 {
        ask.now.nanos()
    }
    /// The time since the router was built, in nanoseconds.
    #[read]
    fn now_steady(&self, ask: &ReadRequest) -> u64 {
        ask.now.since(self.started)
    }
    /// Ticks of the clock since the router was built: nanoseconds.
    #[read]
    fn cycles(&self, ask: &ReadRequest) -> u64 {
        ask.now.since(self.started)
    }
    /// Ticks of the clock in a second.
    #[read]
    fn cycles_hz(&self) -> u64 {
        1_000_000_000
    }
    /// 2: the clock provides the time, as FastClick's after its measurements.
    #[read]
    fn phase(&self) -> u64 {
        2
    }
}

impl PerBatch for TSCClock {
    type On = on::Any;
    type Local = ();
    type Fate = Never;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}
