//! Where a run of a script stands, and what each instruction does to it.

use super::expand::{expand, read};
use super::number::{seconds, truth};
use super::parse::{Instruction, Jump, Leave, Program};
use super::{World, sprintf::words};
use castanet_lang::args::{shift_word, unquote};
use std::collections::{BTreeMap, BTreeSet};

/// How many jumps a script may make without blocking, as in Click.
const MAX_JUMPS: usize = 1000;

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
}

/// What an instruction asks of the loop around it.
enum Next {
    On,
    Jump(usize),
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
            self.variables.insert(variable.clone(), value);
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
        self.steps += n;
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

    /// Sets a variable.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.variables.insert(variable.to_owned(), value.to_owned());
    }

    /// A variable that the script has set.
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str)
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
                let n: usize = name.parse().ok()?;
                Some(words(&self.arguments).get(n - 1).copied().unwrap_or_default().to_owned())
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
            match self.obey(instruction, world) {
                Next::On => self.go(self.at + 1),
                Next::Jump(at) => {
                    self.go(at);
                    jumps += 1;
                }
                Next::Block(state) => {
                    self.state = state;
                    break;
                }
            }
            if jumps >= MAX_JUMPS {
                world.complain("too many jumps, giving up");
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
                self.variables.insert(variable.clone(), value);
                Next::On
            }
            Instruction::Print { file, text, line_end, unquote } => {
                let printed = self.printed(text, *line_end, *unquote, world);
                if let Some(text) = printed {
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
                self.write(text, *unquote, world);
                Next::On
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
                    world.complain(&message);
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
            Ok(value) => world.report(&format!("{}:\n{value}\n", shift_word(&call).0)),
            Err(message) => world.complain(&message),
        }
    }

    fn write(&mut self, text: &str, unquoted: bool, world: &mut dyn World) {
        let call = self.call_text(text, unquoted, world);
        let (handler, value) = shift_word(&call);
        let done = world.write(handler, value.trim());
        self.status = if done.is_ok() { 0 } else { -1 };
        done.unwrap_or_else(|message| world.complain(&message));
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
