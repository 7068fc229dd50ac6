//! What `Script` and `DriverManager` are: the language, at a desk.

use castanet_engine::args::io_error_text;
use castanet_engine::class::{Change, Read};
use castanet_engine::files::HandlerFiles;
use castanet_engine::prelude::*;
use castanet_kit::script::{
    Environment, ExitReason, FUNCTIONS, Interpreter, MAX_VALUE_LEN, ParseError, Program,
    State as Wait, call, signal,
};

#[derive(Args)]
pub struct Instructions {
    /// What starts the program: `ACTIVE` itself, `PASSIVE` its `run` handler,
    /// `PROXY` any handler, `PACKET` (or `PUSH`) packets, `SIGNAL` with signals
    /// such as `INT USR1` those; `DRIVER` also decides what stop requests mean.
    #[arg(keyword, name = "TYPE")]
    kind: Option<Kind>,
    /// Instructions, in order.
    #[arg(rest)]
    instructions: Vec<Words>,
}

/// What starts a script.
#[derive(Clone, PartialEq)]
pub(super) enum Kind {
    Active,
    Passive,
    Proxy,
    Packet,
    Driver,
    Signal(Vec<i32>),
}

impl FromArg for Kind {
    const SYNTAX: &'static str = "ACTIVE, PASSIVE, PROXY, PACKET, DRIVER or SIGNAL with signals";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let mut words = text.split_whitespace();
        let kind = match (words.next().unwrap_or_default(), text.contains(char::is_whitespace)) {
            ("ACTIVE", false) => Kind::Active,
            ("PASSIVE", false) => Kind::Passive,
            ("PROXY", false) => Kind::Proxy,
            ("PACKET" | "PUSH", false) => Kind::Packet,
            ("DRIVER", false) => Kind::Driver,
            ("SIGNAL", _) => Kind::Signal(signals(words)?),
            _ => {
                let error = ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
                return Err(error.click("bad TYPE"));
            }
        };
        Ok(kind)
    }
}

/// Signals that the system lets nobody catch, or that tell of broken code.
const UNCATCHABLE: &[i32] = &[0, 4, 8, 9, 11, 19];

fn signals<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<i32>, ArgError> {
    let wrong = || ArgError::new("bad signal number").help("such as INT, HUP, USR1 or 10");
    let signals: Option<Vec<i32>> =
        words.map(|word| signal(word).filter(|n| !UNCATCHABLE.contains(n))).collect();
    let mut signals = signals.filter(|signals| !signals.is_empty()).ok_or_else(wrong)?;
    signals.sort_unstable();
    signals.dedup();
    Ok(signals)
}

/// A program and what starts it.
pub(super) struct Scripted {
    kind: Kind,
    program: Program,
    files: HandlerFiles,
}

/// Where a script stands.
#[derive(Default)]
pub struct State {
    machine: Interpreter,
    begun: bool,
    /// Whether its end has been acted on.
    over: bool,
    seed: u64,
}

/// Handlers as the manual lists them; [`Scripted::call`] answers them.
const LISTED: [Read<State>; FUNCTIONS.len() + 1] = {
    const NONE: fn(&State, &Ask) -> Value = |_, _| Value::Text(String::new());
    let run = "The value that the program returns, called with these arguments.";
    let mut all = [const { Read { name: "run", doc: "", get: NONE } }; FUNCTIONS.len() + 1];
    all[FUNCTIONS.len()].doc = run;
    let mut n = 0;
    while n < FUNCTIONS.len() {
        (all[n].name, all[n].doc) = FUNCTIONS[n];
        n += 1;
    }
    all
};

impl Local for State {
    const READS: &'static [&'static [Read<Self>]] = &[&LISTED];
    const WRITES: &'static [&'static [Change<Self>]] = &[&[
        Change {
            name: "run",
            doc: "Runs the program with these arguments.",
            apply: |_, _| Ok(().into()),
        },
        Change {
            name: "step",
            doc: "Goes past what the program waits for.",
            apply: |_, _| Ok(().into()),
        },
        Change { name: "goto", doc: "Goes on at a label.", apply: |_, _| Ok(().into()) },
        Change { name: "set", doc: "Sets a variable to a value.", apply: |_, _| Ok(().into()) },
    ]];
}

impl Scripted {
    pub(super) fn new(
        args: Instructions,
        usual: Kind,
        setup: &Setup,
    ) -> Result<Scripted, ArgError> {
        let kind = args.kind.unwrap_or(usual);
        if kind == Kind::Packet && setup.inputs == 0 {
            return Err(ArgError::new("PACKET script must have inputs"));
        }
        if kind != Kind::Packet && setup.inputs + setup.outputs > 0 {
            return Err(ArgError::new("ports allowed only on PACKET scripts"));
        }
        let texts = args.instructions.iter().map(|words| words.text.as_str());
        let program = Program::parse(texts, kind == Kind::Driver).map_err(all_wrong)?;
        Ok(Scripted { kind, program, files: setup.names.files().clone() })
    }

    pub(super) fn drives(&self) -> bool {
        self.kind == Kind::Driver
    }

    pub(super) fn signals(&self) -> &[i32] {
        match &self.kind {
            Kind::Signal(signals) => signals,
            _ => &[],
        }
    }

    pub(super) fn exports(&self) -> Vec<String> {
        self.program.exports().map(str::to_owned).collect()
    }

    pub(super) fn answers(&self, name: &str, write: bool) -> bool {
        self.kind == Kind::Proxy || !write && self.program.exports().any(|it| it == name)
    }

    pub(super) fn step(&self, state: &mut State, desk: &mut dyn Desk) -> Step {
        self.begin(state, desk);
        let is_blocked = matches!(state.machine.state(), Wait::Paused | Wait::Until(_));
        if is_blocked && self.drives() && desk.take_stop() {
            state.machine.step(1);
        }
        let waits_for_call = !matches!(self.kind, Kind::Active | Kind::Driver);
        if !(waits_for_call && *state.machine.state() == Wait::Ready) {
            self.run(state, desk, &mut Said::aloud());
        }
        match (state.machine.state(), self.drives()) {
            (Wait::Paused, true) => Step::Stopped,
            (Wait::Until(time), true) => Step::AtOrStopped(Time(*time)),
            (Wait::Until(time), false) => Step::At(Time(*time)),
            (Wait::Paused | Wait::Ready, _) => Step::Prodded,
            (Wait::Done(_), _) => Step::Ended,
        }
    }

    fn begin(&self, state: &mut State, desk: &mut dyn Desk) {
        if !std::mem::replace(&mut state.begun, true) {
            state.seed = desk.now().0.unsigned_abs();
            let said = &mut Said::aloud();
            let mut site = Site { files: &self.files, seed: &mut state.seed, desk, said };
            state.machine.initialize(&self.program, &mut site);
        }
    }

    /// Runs on, and does what its end asks for.
    fn run(&self, state: &mut State, desk: &mut dyn Desk, said: &mut Said) {
        let mut site = Site { files: &self.files, seed: &mut state.seed, desk: &mut *desk, said };
        let ended = matches!(state.machine.run(&self.program, &mut site), Wait::Done(_));
        if !ended || std::mem::replace(&mut state.over, ended) {
            return;
        }
        match (state.machine.state(), &self.kind) {
            (Wait::Done(ExitReason::Stop), Kind::Driver) => desk.stop(0),
            (Wait::Done(ExitReason::Stop), _) => desk.request_stop(),
            (Wait::Done(ExitReason::End), Kind::Signal(signals)) => {
                signals.iter().for_each(|&signal| desk.on_signal(signal));
            }
            _ => {}
        }
    }

    pub(super) fn call(
        &self,
        state: &mut State,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        self.begin(state, desk);
        let text = text.trim();
        match (handler, write) {
            ("step", true) => return Some(self.make_steps(state, text, desk)),
            ("goto", true) if !state.machine.jump(text, &self.program) => {
                return Some(Err(ArgError::new("jump to nonexistent label")));
            }
            ("goto", true) => {}
            ("set", true) => {
                let (variable, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                if variable.is_empty() {
                    return Some(Err(ArgError::new("no variable")));
                }
                let set = state.machine.set(variable, value.trim());
                return Some(set.map(|()| String::new()).map_err(ArgError::new));
            }
            ("packet", true) if self.kind == Kind::Packet => {
                return Some(self.decide(state, text, desk));
            }
            ("run", _) => state.machine.call(handler, text, write),
            _ => {
                if let Some(answer) = self.answer(state, handler, text, write, desk) {
                    return Some(answer);
                }
                if self.kind != Kind::Proxy {
                    return None;
                }
                state.machine.call(handler, text, write);
            }
        }
        state.over = false;
        Some(self.run_called(state, write, desk))
    }

    /// A function or an exported variable.
    fn answer(
        &self,
        state: &mut State,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        if write {
            return None;
        }
        let said = &mut Said::Kept(Vec::new());
        let mut site = Site { files: &self.files, seed: &mut state.seed, desk, said };
        if let Some(answer) = call(handler, text, &mut state.machine, &mut site) {
            return Some(answer.map_err(ArgError::new));
        }
        state.machine.exported(handler).map(|value| Ok(value.to_owned()))
    }

    /// Goes past so many instructions that block.
    fn make_steps(
        &self,
        state: &mut State,
        text: &str,
        desk: &mut dyn Desk,
    ) -> Result<String, ArgError> {
        let count = if matches!(text, "" | "router") { Ok(1) } else { text.parse() };
        let count = count.map_err(|_| ArgError::new("syntax error"))?;
        if !matches!(state.machine.state(), Wait::Paused | Wait::Until(_)) {
            return Ok(String::new());
        }
        state.machine.step(count);
        self.run_called(state, true, desk)
    }

    /// Runs for somebody who hears what goes wrong.
    fn run_called(
        &self,
        state: &mut State,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Result<String, ArgError> {
        let mut said = Said::Kept(Vec::new());
        self.run(state, desk, &mut said);
        let complaints = said.kept().join("\n");
        match state.machine.state() {
            _ if !complaints.is_empty() => Err(ArgError::new(complaints)),
            Wait::Done(ExitReason::Error(_)) if write => Err(ArgError::new("")),
            Wait::Done(ExitReason::Return(value)) => Ok(value.clone()),
            _ => Ok(String::new()),
        }
    }

    /// Runs for a packet, and says to which output it goes; none that there is
    /// drops it.
    fn decide(
        &self,
        state: &mut State,
        input: &str,
        desk: &mut dyn Desk,
    ) -> Result<String, ArgError> {
        _ = state.machine.set("input", input);
        state.machine.call("packet", "", true);
        state.over = false;
        self.run(state, desk, &mut Said::aloud());
        Ok(match state.machine.state() {
            Wait::Done(ExitReason::Return(value)) => value.trim().to_owned(),
            Wait::Done(ExitReason::End) => "0".to_owned(),
            _ => String::new(),
        })
    }
}

/// All that is wrong with instructions, as one error.
fn all_wrong(mistakes: Vec<ParseError>) -> ArgError {
    let said = |m: &ParseError| format!("instruction {}: {}", m.argument + 1, m.message);
    let words: Vec<String> = mistakes.iter().map(said).collect();
    let clicks: Vec<&str> = mistakes.iter().map(|m| m.click.as_str()).collect();
    let error = ArgError::new(words.join("; ")).click(clicks.join("\n"));
    let help = mistakes.into_iter().find_map(|mistake| mistake.help);
    help.map_or(error.clone(), |help| error.help(help))
}

/// Where complaints go.
enum Said {
    /// To standard error, behind a line that says whose they are, once.
    Aloud { whose_is_known: bool },
    /// To whoever has called.
    Kept(Vec<String>),
}

impl Said {
    fn aloud() -> Said {
        Said::Aloud { whose_is_known: false }
    }

    fn kept(self) -> Vec<String> {
        match self {
            Said::Kept(complaints) => complaints,
            Said::Aloud { .. } => Vec::new(),
        }
    }
}

/// The desk as the language sees it.
struct Site<'a> {
    files: &'a HandlerFiles,
    seed: &'a mut u64,
    desk: &'a mut dyn Desk,
    said: &'a mut Said,
}

impl Environment for Site<'_> {
    fn name(&self) -> &str {
        self.desk.name()
    }
    fn label(&self) -> String {
        self.desk.label()
    }
    fn full_name(&self, handler: &str) -> String {
        self.desk.full_name(handler)
    }
    fn read(&mut self, handler: &str) -> Result<String, String> {
        self.desk.read(handler).map_err(|e| self.desk.words(&e))
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.desk.write(handler, value).map_err(|e| self.desk.words(&e))
    }
    fn exists(&mut self, handler: &str, write: bool) -> bool {
        self.desk.exists(handler, write)
    }
    fn now(&self) -> i64 {
        self.desk.now().0
    }
    /// The router's clock never jumps, whatever becomes of the wall's.
    fn steady(&self) -> i64 {
        self.desk.now().0
    }
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String> {
        self.desk.kill(process, signal)
    }
    /// SplitMix64: the same sequence every time under simulated time.
    fn random(&mut self) -> u64 {
        *self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*self.seed ^ (*self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn process(&self) -> u32 {
        std::process::id()
    }
    fn print(&mut self, text: &str) {
        self.desk.print(text);
    }
    fn report(&mut self, text: &str) {
        self.desk.chatter(text);
    }
    fn report_error(&mut self, message: &str) {
        match self.said {
            Said::Kept(complaints) => complaints.push(message.to_owned()),
            Said::Aloud { whose_is_known } => {
                if !std::mem::replace(whose_is_known, true) {
                    let label = self.desk.label();
                    self.desk.chatter(&format!("While executing '{label}':\n"));
                }
                let message = message.replace('\n', "\n  ");
                self.desk.chatter(&format!("  {message}\n"));
            }
        }
    }
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String> {
        use std::io::Write;
        let mut options = std::fs::OpenOptions::new();
        let opened = options.create(true).write(true).append(append).truncate(!append).open(file);
        let saved = opened.and_then(|mut it| it.write_all(text.as_bytes()));
        saved.map_err(|e| format!("{file}: {}", io_error_text(&e)))
    }
    fn load(&mut self, function: &str, file: &str) -> Result<String, String> {
        let read = self.files.read(function, file, MAX_VALUE_LEN);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        read.map(text).map_err(|error| self.desk.words(&error))
    }
}
