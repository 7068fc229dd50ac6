//! Where a run of a script stands, and what each instruction does to it.

use super::expand::{called, expand, own, read, too_long};
use super::number::{seconds, truth};
use super::parse::{Instruction, Jump, Leave, Program};
use super::{LONGEST, World, sprintf::words};
use castanet_lang::args::{shift_word, unquote};
use std::collections::{BTreeMap, BTreeSet};

/// How many jumps a script may make without blocking, as in Click.
const MAX_JUMPS: usize = 1000;

/// Write handlers of a script that it may call itself by.
pub(super) const OWN_WRITES: &[&str] = &["step", "goto", "set", "run"];

/// What a script waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// To be run.
    #[default]
    Ready,
    /// A step.
    Paused,
    /// A time in nanoseconds, or a step.
    Until(i64),
    /// Nothing: it has ended.
    Done(End),
}

/// How a script ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// By `end`, or at its last instruction.
    End,
    /// By `exit`.
    Exit,
    /// By `stop`: the router is to stop.
    Stop,
    /// By `error`, with its message.
    Error(String),
    /// By `return`, with its value.
    Return(String),
}

/// Where a run of a script stands.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    at: usize,
    state: State,
    /// Steps that were made and not yet used.
    steps: u64,
    /// Steps that the current `pause` has used.
    paused: u64,
    variables: BTreeMap<String, String>,
    exports: BTreeSet<String>,
    /// What the last `write` came to.
    status: i32,
    arguments: String,
    handler: String,
    writing: bool,
    /// How many calls the current one lies in.
    pub(super) depth: usize,
    /// How many bytes the variables have.
    held: usize,
    /// Why the script cannot go on.
    failure: Option<String>,
}

/// The most bytes of all variables together.
const MOST_HELD: usize = 16 * LONGEST;

/// What an instruction asks of the loop around it.
enum Next {
    On,
    Jump(usize),
    /// To a label that was only known now.
    Label(String),
    Block(State),
}

impl Machine {
    /// Sets the variables that are set before the script runs.
    pub fn initialize(&mut self, program: &Program, world: &mut dyn World) {
        for instruction in &program.instructions {
            let Instruction::Init { variable, text, unquote, export } = instruction else {
                continue;
            };
            let value = self.text(text, *unquote, world);
            if let Err(message) = self.set(variable, &value) {
                world.complain(&message);
            }
            if *export {
                self.exports.insert(variable.clone());
            }
        }
    }

    /// What it waits for.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Makes `n` steps past what blocks the script, when it next runs.
    pub fn step(&mut self, n: u64) {
        self.steps = self.steps.saturating_add(n);
    }

    /// Goes to a label; `false` if there is none.
    pub fn jump(&mut self, label: &str, program: &Program) -> bool {
        let Some(Jump::To(at)) = program.label(label) else { return false };
        self.go(at);
        true
    }

    /// Starts again from the first instruction, as a handler.
    pub fn call(&mut self, handler: &str, arguments: &str, write: bool) {
        self.go(0);
        self.arguments = arguments.to_owned();
        self.handler = handler.to_owned();
        self.writing = write;
    }

    fn go(&mut self, at: usize) {
        (self.at, self.paused, self.state) = (at, 0, State::Ready);
    }

    /// Sets a variable, if there is room for its value.
    pub fn set(&mut self, variable: &str, value: &str) -> Result<(), String> {
        if value.len() > LONGEST {
            return Err(too_long());
        }
        let before = self.variables.get(variable).map_or(0, |it| it.len() + variable.len());
        let held = self.held - before + variable.len() + value.len();
        if held > MOST_HELD {
            return Err(format!("all variables together would have more than {MOST_HELD} bytes"));
        }
        self.held = held;
        self.variables.insert(variable.to_owned(), value.to_owned());
        Ok(())
    }

    /// Whether the script is to end after the current instruction.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Has the script end after the current instruction, for this reason.
    pub(super) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// A variable that the script has set.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
    }

    /// A variable that handlers may ask for, arguments included.
    pub(super) fn value(&self, variable: &str) -> Option<&str> {
        match variable {
            "args" => Some(&self.arguments),
            _ => self.get(variable),
        }
    }

    /// Changes a variable, or the arguments.
    pub(super) fn assign(&mut self, variable: &str, value: &str) -> Result<(), String> {
        match variable {
            "args" => {
                value.clone_into(&mut self.arguments);
                Ok(())
            }
            _ => self.set(variable, value),
        }
    }

    /// A variable that is a read handler too.
    pub fn exported(&self, variable: &str) -> Option<&str> {
        self.exports.get(variable).and_then(|name| self.get(name))
    }

    /// A variable, or what stands for the arguments of a call.
    pub(super) fn variable(&self, name: &str, world: &dyn World) -> Option<String> {
        if let Some(value) = self.get(name) {
            return Some(value.to_owned());
        }
        match name {
            "?" => Some(self.status.to_string()),
            "$" => Some(world.process().to_string()),
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

    /// Runs until it has to wait, or has ended.
    pub fn run(&mut self, program: &Program, world: &mut dyn World) -> &State {
        let mut jumps = 0;
        while !matches!(self.state, State::Done(_)) {
            let Some(instruction) = program.instructions.get(self.at) else {
                self.state = State::Done(End::End);
                break;
            };
            let next = self.obey(instruction, world);
            if let Some(why) = self.failure.take() {
                world.complain(&why);
                self.state = State::Done(End::Error(why));
                break;
            }
            match next {
                Next::On => self.go(self.at + 1),
                Next::Jump(at) => {
                    self.go(at);
                    jumps += 1;
                }
                Next::Label(label) => {
                    jumps += 1;
                    if !self.jump(&label, program) {
                        world.complain("jump to nonexistent label");
                        self.status = -1;
                        self.go(self.at + 1);
                    }
                }
                Next::Block(state) => {
                    self.state = state;
                    break;
                }
            }
            if jumps >= MAX_JUMPS {
                let label = world.label();
                world.report(&format!("{label}: too many jumps, giving up\n"));
                self.state = State::Done(End::Exit);
            }
        }
        if matches!(self.state, State::Done(_)) {
            self.steps = 0;
        }
        &self.state
    }

    fn text(&mut self, text: &str, unquoted: bool, world: &mut dyn World) -> String {
        let text = expand(text, false, self, world);
        if unquoted { unquote(&text) } else { text }
    }

    fn obey(&mut self, instruction: &Instruction, world: &mut dyn World) -> Next {
        match instruction {
            Instruction::Init { .. } | Instruction::Label(_) => Next::On,
            Instruction::Set { variable, text, unquote } => {
                let value = self.text(text, *unquote, world);
                if !self.has_failed()
                    && let Err(why) = self.set(variable, &value)
                {
                    self.fail(why);
                }
                Next::On
            }
            Instruction::Print { file, text, line_end, unquote } => {
                let printed = self.printed(text, *line_end, *unquote, world);
                if let Some(text) = printed.filter(|_| !self.has_failed()) {
                    let done = match file {
                        None => {
                            world.print(&text);
                            Ok(())
                        }
                        Some(file) => world.save(&file.name, &text, file.append),
                    };
                    done.unwrap_or_else(|message| world.complain(&message));
                }
                Next::On
            }
            Instruction::Read { text, unquote } => {
                self.report(text, *unquote, world);
                Next::On
            }
            Instruction::Write { text, unquote } => {
                self.write(text, *unquote, world).unwrap_or(Next::On)
            }
            Instruction::Pause(count) => self.pause(*count),
            Instruction::Wait(time) => self.wait(time, world),
            Instruction::Goto { to, condition } => self.goto(to, condition, world),
            Instruction::Return { text, unquote } => {
                let value = self.text(text, *unquote, world);
                Next::Block(State::Done(End::Return(value)))
            }
            Instruction::Leave(how) => Next::Block(State::Done(left(*how))),
            Instruction::Error { text, unquote } => {
                let message = self.text(text, *unquote, world);
                if !message.is_empty() {
                    world.complain(&message);
                }
                Next::Block(State::Done(End::Error(message)))
            }
        }
    }

    /// What `print` prints; nothing if a handler failed.
    fn printed(
        &mut self,
        text: &str,
        line_end: bool,
        unquoted: bool,
        world: &mut dyn World,
    ) -> Option<String> {
        let is_handler = |c: char| c.is_ascii_alphabetic() || c == '@' || c == '_';
        let mut out = if text.starts_with(is_handler) {
            let call = self.call_text(text, unquoted, world);
            match read(&call, self, world) {
                Ok(value) => value,
                Err(message) => {
                    self.complain_of(&call, false, &message, world);
                    return None;
                }
            }
        } else {
            unquote(&expand(text, true, self, world))
        };
        if line_end && !out.ends_with('\n') {
            out.push('\n');
        }
        Some(out)
    }

    /// A handler's name and parameter, the latter perhaps unquoted.
    fn call_text(&mut self, text: &str, unquoted: bool, world: &mut dyn World) -> String {
        let text = expand(text, false, self, world);
        let (name, parameter) = shift_word(&text);
        match unquoted {
            true => format!("{name} {}", unquote(parameter)),
            false => text,
        }
    }

    fn report(&mut self, text: &str, unquoted: bool, world: &mut dyn World) {
        let call = self.call_text(text, unquoted, world);
        match read(&call, self, world) {
            Ok(value) => {
                let name = called(shift_word(&call).0, self, world);
                world.report(&format!("{name}:\n{value}\n"));
            }
            Err(message) => self.complain_of(&call, false, &message, world),
        }
    }

    /// Says what a handler answered, and which it was; or, if there is no such
    /// handler, only that.
    fn complain_of(&self, call: &str, write: bool, message: &str, world: &mut dyn World) {
        let call = called(call, self, world);
        let name = shift_word(&call).0;
        match world.exists(name, write) && !message.is_empty() {
            true => {
                let message = message.replace('\n', "\n  ");
                world.complain(&format!("While calling '{call}':\n  {message}"));
            }
            false => world.complain(message),
        }
    }

    /// Calls a write handler; its own the script obeys where it stands.
    fn write(&mut self, text: &str, unquoted: bool, world: &mut dyn World) -> Option<Next> {
        let call = self.call_text(text, unquoted, world);
        let (handler, value) = shift_word(&call);
        let value = value.trim();
        let own = own(handler, world).filter(|name| OWN_WRITES.contains(&name.as_str()));
        let mut next = None;
        let done = match own.as_deref() {
            Some("set") => {
                let (variable, value) = shift_word(value);
                self.assign(variable, value)
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
                Err(_) => Err("syntax error".to_owned()),
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
            None => world.write(handler, value),
        };
        self.status = if done.is_ok() { 0 } else { -1 };
        if let Err(message) = done {
            self.complain_of(&call, true, &message, world);
        }
        next.map(Next::Label)
    }

    fn pause(&mut self, count: u64) -> Next {
        let used = self.steps.min(count - self.paused.min(count));
        self.steps -= used;
        self.paused += used;
        if self.paused < count { Next::Block(State::Paused) } else { Next::On }
    }

    fn wait(&mut self, time: &str, world: &mut dyn World) -> Next {
        if let State::Until(time) = self.state {
            if world.now() >= time {
                return Next::On;
            }
        } else {
            let text = self.text(time, false, world);
            let Some(time) = seconds(&text) else {
                world.complain("syntax error at 'wait'");
                return Next::Block(State::Done(End::Error(String::new())));
            };
            self.state = State::Until(world.now().saturating_add(time));
        }
        if self.steps > 0 {
            self.steps -= 1;
            return Next::On;
        }
        Next::Block(self.state.clone())
    }

    fn goto(&mut self, to: &Jump, condition: &str, world: &mut dyn World) -> Next {
        let condition = self.text(condition, false, world);
        let holds = match condition.trim() {
            "" => true,
            text => truth(text).unwrap_or_else(|| {
                world.complain(&format!("bad condition '{text}'"));
                false
            }),
        };
        match to {
            _ if !holds => Next::On,
            Jump::To(at) => Next::Jump(*at),
            Jump::Leave(how) => Next::Block(State::Done(left(*how))),
            Jump::Error | Jump::Named(_) => Next::Block(State::Done(End::Error(String::new()))),
        }
    }
}

fn left(how: Leave) -> End {
    match how {
        Leave::End => End::End,
        Leave::Exit => End::Exit,
        Leave::Stop => End::Stop,
    }
}
