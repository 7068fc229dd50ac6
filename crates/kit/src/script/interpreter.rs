//! The interpreter: the state of a script's run, and the execution of each instruction.

use super::expand::{expand, full_call, own_handler, read, too_long};
use super::number::parse_nanoseconds;
use super::parse::{ExitKind, Instruction, JumpTarget, Program, prints_handler};
use super::{Environment, MAX_VALUE_LEN, WriteError, sprintf::words};
use crate::text::parse_bool;
use castanet_lang::args::{shift_word, unquote};
use std::collections::{BTreeMap, BTreeSet};

/// How many jumps a script may make without blocking, as in Click.
const MAX_JUMPS: usize = 1000;

/// Write handlers of a script that it may call itself.
pub(super) const OWN_WRITES: &[&str] = &["step", "goto", "set", "run"];

/// The state of a script's run: ready, blocked or ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// Not blocked: the script can run.
    #[default]
    Ready,
    /// Blocked until a step.
    Paused,
    /// Blocked until a time in nanoseconds, or a step.
    Until(i64),
    /// The script has ended.
    Done(ExitReason),
}

/// The reason why a script ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ExitReason {
    /// `end`, or the last instruction.
    End,
    /// `exit`.
    Exit,
    /// `stop`: the router is to stop.
    Stop,
    /// `error`, with its message.
    Error(String),
    /// `return`, with its value.
    Return(String),
}

/// The state of a script's run.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    at: usize,
    state: State,
    /// Steps that were requested and not yet used.
    steps: u64,
    /// Steps that the current `pause` has used.
    paused: u64,
    variables: BTreeMap<String, String>,
    exports: BTreeSet<String>,
    /// The result of the last `write`.
    status: i32,
    arguments: String,
    handler: String,
    writing: bool,
    /// The nesting depth of the current call.
    pub(super) depth: usize,
    /// The size of all variables in bytes.
    variable_bytes: usize,
    /// The error that ends the script.
    failure: Option<String>,
}

/// The limit of the size of all variables together.
const MAX_VARIABLE_BYTES: usize = 16 * MAX_VALUE_LEN;

/// How the run continues after an instruction.
enum Control {
    Continue,
    Jump(usize),
    /// Jumps to a label whose name was computed.
    Label(String),
    Block(State),
}

impl Interpreter {
    /// Sets the variables of `init` and `export` instructions before the script runs.
    pub fn initialize(&mut self, program: &Program, env: &mut dyn Environment) {
        for instruction in &program.instructions {
            let Instruction::Init { variable, text, unquote, export } = instruction else {
                continue;
            };
            let value = self.text(text, *unquote, env);
            if let Err(message) = self.set(variable, &value) {
                env.report_error(&message);
            }
            if *export {
                self.exports.insert(variable.clone());
            }
        }
    }

    /// The state of the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Lets the script pass `n` blocking instructions.
    pub fn step(&mut self, n: u64) {
        self.steps = self.steps.saturating_add(n);
    }

    /// Jumps to a label; `false` if there is none.
    pub fn jump(&mut self, label: &str, program: &Program) -> bool {
        let Some(JumpTarget::To(at)) = program.label(label) else { return false };
        self.set_position(at);
        true
    }

    /// Starts from the first instruction, as a handler that was called.
    pub fn call(&mut self, handler: &str, arguments: &str, write: bool) {
        self.set_position(0);
        self.arguments = arguments.to_owned();
        self.handler = handler.to_owned();
        self.writing = write;
    }

    fn set_position(&mut self, at: usize) {
        (self.at, self.paused, self.state) = (at, 0, State::Ready);
    }

    /// Sets a variable; an error if its value would be too large.
    pub fn set(&mut self, variable: &str, value: &str) -> Result<(), String> {
        if value.len() > MAX_VALUE_LEN {
            return Err(too_long());
        }
        let before = self.variables.get(variable).map_or(0, |it| it.len() + variable.len());
        let variable_bytes = self.variable_bytes - before + variable.len() + value.len();
        if variable_bytes > MAX_VARIABLE_BYTES {
            return Err(format!(
                "all variables together would have more than {MAX_VARIABLE_BYTES} bytes"
            ));
        }
        self.variable_bytes = variable_bytes;
        self.variables.insert(variable.to_owned(), value.to_owned());
        Ok(())
    }

    /// Whether the script is to end after the current instruction.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the script after the current instruction, with this error.
    pub(super) fn fail(&mut self, error: String) {
        self.failure.get_or_insert(error);
    }

    /// The value of a variable that the script has set.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
    }

    /// The value of a variable, or the arguments, which a variable `args` hides.
    pub(super) fn value(&self, variable: &str) -> Option<&str> {
        self.get(variable).or((variable == "args").then_some(&self.arguments))
    }

    /// Sets a variable, or the arguments unless a variable `args` hides them.
    pub(super) fn assign(&mut self, variable: &str, value: &str) -> Result<(), String> {
        match variable {
            "args" if self.get(variable).is_none() => {
                value.clone_into(&mut self.arguments);
                Ok(())
            }
            _ => self.set(variable, value),
        }
    }

    /// The value of a variable that is also a read handler.
    pub fn exported(&self, variable: &str) -> Option<&str> {
        self.exports.get(variable).and_then(|name| self.get(name))
    }

    /// The value of a variable or of a special parameter.
    pub(super) fn variable(&self, name: &str, env: &dyn Environment) -> Option<String> {
        if let Some(value) = self.get(name) {
            return Some(value.to_owned());
        }
        match name {
            "?" => Some(self.status.to_string()),
            "$" => Some(env.process().to_string()),
            "#" => Some(words(&self.arguments).len().to_string()),
            "0" => Some(self.handler.clone()),
            "args" => Some(self.arguments.clone()),
            "write" => Some(self.writing.to_string()),
            _ => {
                let n = name.parse::<usize>().ok()?.checked_sub(1)?;
                Some(words(&self.arguments).get(n).copied().unwrap_or_default().to_owned())
            }
        }
    }

    /// Runs until the script blocks or ends.
    pub fn run(&mut self, program: &Program, env: &mut dyn Environment) -> &State {
        let mut jumps = 0;
        while !matches!(self.state, State::Done(_)) {
            let Some(instruction) = program.instructions.get(self.at) else {
                self.state = State::Done(ExitReason::End);
                break;
            };
            let next = self.execute(instruction, env);
            if let Some(error) = self.failure.take() {
                env.report_error(&error);
                self.state = State::Done(ExitReason::Error(error));
                break;
            }
            match next {
                Control::Continue => self.set_position(self.at + 1),
                Control::Jump(at) => {
                    self.set_position(at);
                    jumps += 1;
                }
                Control::Label(label) => {
                    jumps += 1;
                    if !self.jump(&label, program) {
                        env.report_error("jump to nonexistent label");
                        self.status = -1;
                        self.set_position(self.at + 1);
                    }
                }
                Control::Block(state) => {
                    self.state = state;
                    break;
                }
            }
            if jumps >= MAX_JUMPS {
                let label = env.label();
                env.report(&format!("{label}: too many jumps, giving up\n"));
                self.state = State::Done(ExitReason::Exit);
            }
        }
        if matches!(self.state, State::Done(_)) {
            self.steps = 0;
        }
        &self.state
    }

    fn text(&mut self, text: &str, unquoted: bool, env: &mut dyn Environment) -> String {
        let text = expand(text, false, self, env);
        if unquoted { unquote(&text) } else { text }
    }

    fn execute(&mut self, instruction: &Instruction, env: &mut dyn Environment) -> Control {
        match instruction {
            Instruction::Init { .. } | Instruction::Label(_) => Control::Continue,
            Instruction::Set { variable, text, unquote } => {
                let value = self.text(text, *unquote, env);
                if !self.has_failed()
                    && let Err(error) = self.set(variable, &value)
                {
                    self.fail(error);
                }
                Control::Continue
            }
            Instruction::Print { file, text, line_end, unquote } => {
                let printed = self.print_text(text, *line_end, *unquote, env);
                if let Some(text) = printed.filter(|text| !self.has_failed() && !text.is_empty()) {
                    let done = match file {
                        None => {
                            env.print(&text);
                            Ok(())
                        }
                        Some(file) => env.save(&file.name, &text, file.append),
                    };
                    done.unwrap_or_else(|message| env.report_error(&message));
                }
                Control::Continue
            }
            Instruction::Read { text, unquote } => {
                self.report(text, *unquote, env);
                Control::Continue
            }
            Instruction::Write { text, unquote } => {
                self.write(text, *unquote, env).unwrap_or(Control::Continue)
            }
            Instruction::Pause(count) => self.pause(*count),
            Instruction::Wait(time) => self.wait(time, env),
            Instruction::Goto { unless_stopping: true, .. } if env.is_stopping() => {
                Control::Continue
            }
            Instruction::Goto { to, condition, .. } => self.goto(to, condition, env),
            Instruction::RequestStop => {
                env.request_stop();
                Control::Continue
            }
            Instruction::Return { text, unquote } => {
                let value = self.text(text, *unquote, env);
                Control::Block(State::Done(ExitReason::Return(value)))
            }
            Instruction::Exit(how) => Control::Block(State::Done(exit_reason(*how))),
            Instruction::Error { text, unquote } => {
                let message = self.text(text, *unquote, env);
                if !message.is_empty() {
                    env.report_error(&message);
                }
                Control::Block(State::Done(ExitReason::Error(message)))
            }
        }
    }

    /// The text that `print` prints, with the end of the line unless an error was reported; `None` if
    /// a handler failed.
    fn print_text(
        &mut self,
        text: &str,
        line_end: bool,
        unquoted: bool,
        env: &mut dyn Environment,
    ) -> Option<String> {
        let errors = env.errors();
        let mut out = if prints_handler(text) {
            let (name, parameter) = self.call_text(text, unquoted, env);
            match read(&name, &parameter, self, env) {
                Ok(value) => value,
                Err(message) => {
                    self.report_failure((&name, &parameter), false, &message, env);
                    return None;
                }
            }
        } else {
            unquote(&expand(text, true, self, env))
        };
        if line_end && env.errors() == errors && !out.ends_with('\n') {
            out.push('\n');
        }
        Some(out)
    }

    /// A handler's name and parameter, with the parameter unquoted if `unquoted`.
    fn call_text(
        &mut self,
        text: &str,
        unquoted: bool,
        env: &mut dyn Environment,
    ) -> (String, String) {
        let text = expand(text, false, self, env);
        let (name, parameter) = shift_word(&text);
        let parameter = match unquoted {
            true => unquote(parameter),
            false => parameter.trim_end().to_owned(),
        };
        (name.to_owned(), parameter)
    }

    fn report(&mut self, text: &str, unquoted: bool, env: &mut dyn Environment) {
        let (name, parameter) = self.call_text(text, unquoted, env);
        match read(&name, &parameter, self, env) {
            Ok(value) => {
                let name = full_call(&name, "", self, env);
                env.report(&format!("{name}:\n{value}\n"));
            }
            Err(message) => self.report_failure((&name, &parameter), false, &message, env),
        }
    }

    /// Reports the error of a handler with the call; if there is no such handler, only the error.
    fn report_failure(
        &self,
        (name, parameter): (&str, &str),
        write: bool,
        message: &str,
        env: &mut dyn Environment,
    ) {
        let call = full_call(name, parameter, self, env);
        let name = shift_word(&call).0;
        match env.exists(name, write) && !message.is_empty() {
            true => {
                let message = message.replace('\n', "\n  ");
                env.report_error(&format!("While calling '{call}':\n  {message}"));
            }
            false => env.report_error(message),
        }
    }

    /// Calls a write handler; handlers of the script itself are executed in place.
    fn write(&mut self, text: &str, unquoted: bool, env: &mut dyn Environment) -> Option<Control> {
        let (handler, value) = self.call_text(text, unquoted, env);
        let (handler, value) = (handler.as_str(), value.as_str());
        let failed = |message: String| WriteError { message, status: -1 };
        let own = own_handler(handler, env).filter(|name| OWN_WRITES.contains(&name.as_str()));
        let mut next = None;
        let done = match own.as_deref() {
            Some("set") => {
                let (variable, value) = shift_word(value);
                self.assign(variable, value).map_err(failed)
            }
            Some("step") if value.is_empty() => {
                self.step(1);
                Ok(())
            }
            Some("step") => match value.parse::<u64>() {
                Ok(count) => {
                    self.step(count);
                    Ok(())
                }
                Err(_) => Err(failed("syntax error".to_owned())),
            },
            Some("goto") => {
                next = Some(value.to_owned());
                Ok(())
            }
            Some(_) => {
                value.clone_into(&mut self.arguments);
                next = Some("begin".to_owned());
                Ok(())
            }
            None => env.write(handler, value),
        };
        self.status = done.as_ref().err().map_or(0, |error| error.status);
        if let Err(error) = done {
            self.report_failure((handler, value), true, &error.message, env);
        }
        next.map(Control::Label)
    }

    fn pause(&mut self, count: u64) -> Control {
        let used = self.steps.min(count - self.paused.min(count));
        self.steps -= used;
        self.paused += used;
        if self.paused < count { Control::Block(State::Paused) } else { Control::Continue }
    }

    fn wait(&mut self, time: &str, env: &mut dyn Environment) -> Control {
        if let State::Until(time) = self.state {
            if env.peek() >= time {
                return Control::Continue;
            }
        } else {
            let text = self.text(time, false, env);
            let Some(time) = parse_nanoseconds(&text) else {
                env.report_error("syntax error at 'wait'");
                return Control::Block(State::Done(ExitReason::Error(String::new())));
            };
            self.state = State::Until(env.now().saturating_add(time));
        }
        if self.steps > 0 {
            self.steps -= 1;
            return Control::Continue;
        }
        Control::Block(self.state.clone())
    }

    fn goto(&mut self, to: &JumpTarget, condition: &str, env: &mut dyn Environment) -> Control {
        let condition = self.text(condition, false, env);
        let holds = match condition.trim() {
            "" => true,
            text => parse_bool(text).unwrap_or_else(|| {
                env.report_error(&format!("bad condition '{text}'"));
                false
            }),
        };
        match to {
            _ if !holds => Control::Continue,
            JumpTarget::To(at) => Control::Jump(*at),
            JumpTarget::Exit(how) => Control::Block(State::Done(exit_reason(*how))),
            JumpTarget::Error | JumpTarget::Unresolved(_) => {
                Control::Block(State::Done(ExitReason::Error(String::new())))
            }
        }
    }
}

fn exit_reason(how: ExitKind) -> ExitReason {
    match how {
        ExitKind::End => ExitReason::End,
        ExitKind::Exit => ExitReason::Exit,
        ExitKind::Stop => ExitReason::Stop,
    }
}
