//! The elements of `Script` and `DriverManager`: run a program on the control thread.

use castanet_element::args::io_error_text;
use castanet_element::files::HandlerFiles;
use castanet_element::handler::{ReadHandler, StateHandler};
use castanet_element::prelude::*;
use castanet_kit::script::{
    Environment, ExitReason, FUNCTIONS, Interpreter, MAX_VALUE_LEN, PRIVATE, ParseError, Program,
    State as InterpreterState, WriteError, call, signal,
};
use std::marker::PhantomData;

#[derive(Args)]
pub(crate) struct ScriptArgs {
    /// Start of the program: `ACTIVE` when the router starts, `PASSIVE` by its `run` handler,
    /// `PROXY` by any handler, `PACKET` (or `PUSH`) by packets, `SIGNAL` with signals such as `INT
    /// USR1` by these; `DRIVER` when the router starts, and stop requests go to the program.
    #[arg(keyword, name = "TYPE")]
    kind: Option<ScriptType>,
    /// The instructions of the program, in order.
    #[arg(rest)]
    instructions: Vec<Words>,
}

/// The TYPE of a script: the event that starts its program.
#[derive(Clone, PartialEq)]
pub(crate) enum ScriptType {
    Active,
    Passive,
    Proxy,
    Packet,
    Driver,
    Signal(Vec<i32>),
}

impl FromArg for ScriptType {
    const SYNTAX: &'static str = "ACTIVE, PASSIVE, PROXY, PACKET, DRIVER or SIGNAL with signals";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let mut words = text.split_whitespace();
        let kind = match (words.next().unwrap_or_default(), text.contains(char::is_whitespace)) {
            ("ACTIVE", false) => ScriptType::Active,
            ("PASSIVE", false) => ScriptType::Passive,
            ("PROXY", false) => ScriptType::Proxy,
            ("PACKET" | "PUSH", false) => ScriptType::Packet,
            ("DRIVER", false) => ScriptType::Driver,
            ("SIGNAL", _) => ScriptType::Signal(signals(words)?),
            _ => {
                let error = ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
                return Err(error.click("bad TYPE"));
            }
        };
        Ok(kind)
    }
}

/// Signals that no process can catch, or that report faults of the process itself.
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

/// A class of elements with a program.
pub(crate) trait ScriptClass: Send + Sync + 'static {
    /// The TYPE of a script without one.
    fn default_type(setup: &Setup) -> ScriptType;
}

/// An element with a program: its TYPE, and the files that it may read.
pub(crate) struct ScriptRunner<C> {
    kind: ScriptType,
    program: Program,
    files: HandlerFiles,
    class: PhantomData<C>,
}

/// Run-time state of a script.
#[derive(Default)]
pub(crate) struct ScriptState {
    interpreter: Interpreter,
    is_initialized: bool,
    /// Whether the action at the end of the program has been performed.
    is_end_handled: bool,
}

/// The read handlers for the manual; [`Control::call`] answers them.
const READ_HANDLERS: [ReadHandler<ScriptState>; FUNCTIONS.len() + 1] = {
    const NONE: fn(&ScriptState, &ReadRequest) -> Value = |_, _| Value::Text(String::new());
    let run = "The value that the program returns, called with these arguments.";
    let mut all = [const { ReadHandler::new("run", "", NONE) }; FUNCTIONS.len() + 1];
    all[FUNCTIONS.len()].doc = run;
    let mut n = 0;
    while n < FUNCTIONS.len() {
        (all[n].name, all[n].doc) = FUNCTIONS[n];
        n += 1;
    }
    all
};

impl Local for ScriptState {
    const READS: &'static [&'static [ReadHandler<Self>]] = &[&READ_HANDLERS];
    const WRITES: &'static [&'static [StateHandler<Self>]] = &[&[
        StateHandler {
            name: "run",
            doc: "Runs the program with these arguments.",
            apply: |_, _| Ok(().into()),
        },
        StateHandler {
            name: "step",
            doc: "Ends the current wait of the program, or as many waits as the number says.",
            apply: |_, _| Ok(().into()),
        },
        StateHandler { name: "goto", doc: "Continues at a label.", apply: |_, _| Ok(().into()) },
        StateHandler {
            name: "set",
            doc: "Sets a variable to a value.",
            apply: |_, _| Ok(().into()),
        },
    ]];
}

impl<C: ScriptClass> Build for ScriptRunner<C> {
    type Args = ScriptArgs;

    fn build(args: ScriptArgs, setup: &Setup) -> Result<Self, ArgError> {
        let kind = args.kind.unwrap_or_else(|| C::default_type(setup));
        if kind == ScriptType::Packet && setup.inputs == 0 {
            return Err(ArgError::new("PACKET script must have inputs"));
        }
        if kind != ScriptType::Packet && setup.inputs + setup.outputs > 0 {
            return Err(ArgError::new("ports allowed only on PACKET scripts"));
        }
        let texts = args.instructions.iter().map(|words| words.text.as_str());
        let program = Program::parse(texts, kind == ScriptType::Driver).map_err(combine_errors)?;
        Ok(ScriptRunner { kind, program, files: setup.names.files().clone(), class: PhantomData })
    }
}

impl<C: ScriptClass> Control for ScriptRunner<C>
where
    Self: Describe,
{
    type Local = ScriptState;
    const PRIVATE: &'static [&'static str] = PRIVATE;

    fn step(&self, state: &mut ScriptState, desk: &mut dyn ControlContext) -> ProgramWait {
        self.initialize(state, desk);
        // As Click's driver and its timers: a driver's program starts, and passes stop requests, by itself.
        let by_timer = match state.interpreter.state() {
            InterpreterState::Until(time) => desk.peek().0 >= *time,
            _ => !self.is_driver(),
        };
        let is_blocked = matches!(
            state.interpreter.state(),
            InterpreterState::Paused | InterpreterState::Until(_)
        );
        if is_blocked && self.is_driver() && desk.take_stop() {
            state.interpreter.step(1);
        }
        if self.starts_by_itself() || *state.interpreter.state() != InterpreterState::Ready {
            self.run(state, desk, &mut ErrorSink::console(by_timer));
        }
        match (state.interpreter.state(), self.is_driver()) {
            (InterpreterState::Paused, true) => ProgramWait::StopRequest,
            (InterpreterState::Until(time), true) => ProgramWait::AtOrStopRequest(Time(*time)),
            (InterpreterState::Until(time), false) => ProgramWait::At(Time(*time)),
            (InterpreterState::Paused | InterpreterState::Ready, _) => ProgramWait::Notified,
            (InterpreterState::Done(_), _) => ProgramWait::Ended,
        }
    }

    fn call(
        &self,
        state: &mut ScriptState,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        self.initialize(state, desk);
        let text = text.trim();
        match (handler, write) {
            ("step", true) => return Some(self.make_steps(state, text, desk)),
            ("goto", true) if !state.interpreter.jump(text, &self.program) => {
                return Some(Err(ArgError::new("jump to nonexistent label")));
            }
            ("goto", true) => {}
            ("set", true) => {
                let (variable, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                if variable.is_empty() {
                    return Some(Err(ArgError::new("no variable")));
                }
                let set = state.interpreter.set(variable, value.trim());
                return Some(set.map(|()| String::new()).map_err(ArgError::new));
            }
            ("packet", true) if self.kind == ScriptType::Packet => {
                return Some(self.decide(state, text, desk));
            }
            ("run", _) => state.interpreter.call(handler, text, write),
            _ => {
                if let Some(answer) = self.answer(state, handler, text, write, desk) {
                    return Some(answer);
                }
                if self.kind != ScriptType::Proxy {
                    return None;
                }
                state.interpreter.call(handler, text, write);
            }
        }
        state.is_end_handled = false;
        Some(self.run_for_caller(state, write, desk))
    }

    fn is_driver(&self) -> bool {
        self.kind == ScriptType::Driver
    }

    fn signals(&self) -> &[i32] {
        match &self.kind {
            ScriptType::Signal(signals) => signals,
            _ => &[],
        }
    }

    fn more_handlers(&self) -> Vec<String> {
        self.program.exports().map(str::to_owned).collect()
    }

    fn has_handler(&self, name: &str, write: bool) -> bool {
        self.kind == ScriptType::Proxy || !write && self.program.exports().any(|it| it == name)
    }

    fn references(&self) -> Vec<ProgramReference> {
        let (reads, writes) = self.program.handlers();
        let reads = reads.into_iter().map(|name| ProgramReference::Read(name.to_owned()));
        let writes = writes.into_iter().map(|name| ProgramReference::Write(name.to_owned()));
        reads.chain(writes).collect()
    }
}

impl<C> ScriptRunner<C> {
    /// Whether the program starts with the router, and not by a call.
    fn starts_by_itself(&self) -> bool {
        matches!(self.kind, ScriptType::Active | ScriptType::Driver)
    }

    fn initialize(&self, state: &mut ScriptState, desk: &mut dyn ControlContext) {
        if !std::mem::replace(&mut state.is_initialized, true) {
            let errors = &mut ErrorSink::console(false);
            let mut environment = ScriptEnvironment { files: &self.files, desk, errors };
            state.interpreter.initialize(&self.program, &mut environment);
        }
    }

    /// Continues the program, and performs the action at its end.
    fn run(&self, state: &mut ScriptState, desk: &mut dyn ControlContext, errors: &mut ErrorSink) {
        let mut environment = ScriptEnvironment { files: &self.files, desk: &mut *desk, errors };
        let is_done = matches!(
            state.interpreter.run(&self.program, &mut environment),
            InterpreterState::Done(_)
        );
        if !is_done || std::mem::replace(&mut state.is_end_handled, is_done) {
            return;
        }
        match (state.interpreter.state(), &self.kind) {
            (InterpreterState::Done(ExitReason::Stop), ScriptType::Driver) => desk.stop(0),
            (InterpreterState::Done(ExitReason::Stop), _) => desk.request_stop(),
            (InterpreterState::Done(ExitReason::End), ScriptType::Signal(signals)) => {
                signals.iter().for_each(|&signal| desk.on_signal(signal));
            }
            _ => {}
        }
    }

    /// Answers a read of a function or of an exported variable; `None` if there is none of that
    /// name.
    fn answer(
        &self,
        state: &mut ScriptState,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        if write {
            return None;
        }
        let errors = &mut ErrorSink::collecting();
        let mut environment = ScriptEnvironment { files: &self.files, desk, errors };
        if let Some(answer) = call(handler, text, &mut state.interpreter, &mut environment) {
            return Some(answer.map_err(ArgError::new));
        }
        state.interpreter.exported(handler).map(|value| Ok(value.to_owned()))
    }

    /// Ends as many waits of the program as `text` names, 1 if it is empty, and continues the
    /// program.
    fn make_steps(
        &self,
        state: &mut ScriptState,
        text: &str,
        desk: &mut dyn ControlContext,
    ) -> Result<String, ArgError> {
        let count = if matches!(text, "" | "router") { Ok(1) } else { text.parse() };
        let count = count.map_err(|_| ArgError::new("syntax error"))?;
        let count = match state.interpreter.state() {
            InterpreterState::Paused | InterpreterState::Until(_) => count,
            // The start of a program that starts by itself is the first step, as in Click.
            InterpreterState::Ready
                if self.starts_by_itself() && !self.program.begins_with_wait() =>
            {
                u64::saturating_sub(count, 1)
            }
            InterpreterState::Ready => count,
            InterpreterState::Done(_) => return Ok(String::new()),
        };
        state.interpreter.step(count);
        self.run_for_caller(state, true, desk)
    }

    /// Runs the program for the caller of a handler. Errors go to the caller.
    fn run_for_caller(
        &self,
        state: &mut ScriptState,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Result<String, ArgError> {
        let mut errors = ErrorSink::collecting();
        self.run(state, desk, &mut errors);
        let messages = errors.collected().join("\n");
        match state.interpreter.state() {
            _ if !messages.is_empty() => Err(ArgError::new(messages)),
            InterpreterState::Done(ExitReason::Error(_)) if write => Err(ArgError::new("")),
            InterpreterState::Done(ExitReason::Return(value)) => Ok(value.clone()),
            _ => Ok(String::new()),
        }
    }

    /// Runs the program for a packet, and returns the number of its output. The packet is dropped
    /// if there is no such output.
    fn decide(
        &self,
        state: &mut ScriptState,
        input: &str,
        desk: &mut dyn ControlContext,
    ) -> Result<String, ArgError> {
        _ = state.interpreter.set("input", input);
        state.interpreter.call("packet", "", true);
        state.is_end_handled = false;
        self.run(state, desk, &mut ErrorSink::console(true));
        Ok(match state.interpreter.state() {
            InterpreterState::Done(ExitReason::Return(value)) => value.trim().to_owned(),
            InterpreterState::Done(ExitReason::End) => "0".to_owned(),
            _ => String::new(),
        })
    }
}

/// Combines all errors of the instructions into one.
fn combine_errors(errors: Vec<ParseError>) -> ArgError {
    let text = |m: &ParseError| format!("instruction {}: {}", m.argument + 1, m.message);
    let words: Vec<String> = errors.iter().map(text).collect();
    let clicks: Vec<&str> = errors.iter().map(|m| m.click.as_str()).collect();
    let combined = ArgError::new(words.join("; ")).click(clicks.join("\n"));
    let help = errors.into_iter().find_map(|error| error.help);
    help.map_or(combined.clone(), |help| combined.help(help))
}

/// The error messages of a step of the program.
struct ErrorSink {
    count: usize,
    destination: Destination,
}

/// Destination of error messages of the program.
enum Destination {
    /// The console. With a context, a line with the name of the script precedes the first message; the
    /// context is whether it was printed.
    Console { context: Option<bool> },
    /// A list for the caller of a handler.
    Collected(Vec<String>),
}

impl ErrorSink {
    /// Messages to the console, with the name of the script if there is a context.
    fn console(has_context: bool) -> ErrorSink {
        let context = has_context.then_some(false);
        ErrorSink { count: 0, destination: Destination::Console { context } }
    }

    fn collecting() -> ErrorSink {
        ErrorSink { count: 0, destination: Destination::Collected(Vec::new()) }
    }

    fn collected(self) -> Vec<String> {
        match self.destination {
            Destination::Collected(messages) => messages,
            Destination::Console { .. } => Vec::new(),
        }
    }
}

/// Access of the interpreter to the router.
struct ScriptEnvironment<'a> {
    files: &'a HandlerFiles,
    desk: &'a mut dyn ControlContext,
    errors: &'a mut ErrorSink,
}

impl Environment for ScriptEnvironment<'_> {
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
    fn write(&mut self, handler: &str, value: &str) -> Result<(), WriteError> {
        let done = self.desk.write(handler, value);
        done.map_err(|e| WriteError { message: self.desk.words(&e), status: e.status() })
    }
    fn exists(&mut self, handler: &str, write: bool) -> bool {
        self.desk.exists(handler, write)
    }
    fn now(&self) -> i64 {
        self.desk.now().0
    }
    fn peek(&self) -> i64 {
        self.desk.peek().0
    }
    /// The clock of the router is monotonic, unlike the system's time.
    fn steady(&self) -> i64 {
        self.desk.now().0
    }
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String> {
        self.desk.kill(process, signal)
    }
    fn random(&mut self) -> u32 {
        self.desk.random()
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
        self.errors.count += 1;
        // A script that ends by `error` alone says nothing.
        if message.is_empty() {
            return;
        }
        match &mut self.errors.destination {
            Destination::Collected(messages) => messages.push(message.to_owned()),
            Destination::Console { context: None } => self.desk.chatter(&format!("{message}\n")),
            Destination::Console { context: Some(is_printed) } => {
                if !std::mem::replace(is_printed, true) {
                    let label = self.desk.label();
                    self.desk.chatter(&format!("While executing '{label}':\n"));
                }
                let message = message.replace('\n', "\n  ");
                self.desk.chatter(&format!("  {message}\n"));
            }
        }
    }
    fn errors(&self) -> usize {
        self.errors.count
    }
    fn request_stop(&mut self) {
        self.desk.request_stop();
    }
    fn is_stopping(&self) -> bool {
        self.desk.is_stopping()
    }
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String> {
        use std::io::Write;
        let mut options = std::fs::OpenOptions::new();
        let open_file =
            options.create(true).write(true).append(append).truncate(!append).open(file);
        let saved = open_file.and_then(|mut it| it.write_all(text.as_bytes()));
        saved.map_err(|e| format!("{file}: {}", io_error_text(&e)))
    }
    fn load(&mut self, function: &str, file: &str) -> Result<String, String> {
        let read = self.files.read(function, file, MAX_VALUE_LEN);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        read.map(text).map_err(|e| self.desk.words(&e))
    }
}
