//! The parser of scripts.

use super::expand::{add_calls, fixed_name};
use super::number::parse_nanoseconds;
use castanet_lang::args::shift_word;
use castanet_lang::nearest;

/// A script's instructions, one for each argument.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(super) instructions: Vec<Instruction>,
}

/// An instruction. Texts are substituted when it runs; with `unquote`, a layer of quotes is removed
/// afterwards.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Instruction {
    Set {
        variable: String,
        text: String,
        unquote: bool,
    },
    /// Executed once before the script runs, then skipped.
    Init {
        variable: String,
        text: String,
        unquote: bool,
        export: bool,
    },
    Print {
        file: Option<File>,
        text: String,
        line_end: bool,
        unquote: bool,
    },
    Read {
        text: String,
        unquote: bool,
    },
    Write {
        text: String,
        unquote: bool,
    },
    Pause(u64),
    Wait(String),
    Label(String),
    Goto {
        to: JumpTarget,
        condition: String,
        /// Whether it jumps only until the router was asked to stop.
        unless_stopping: bool,
    },
    /// Asks the router to stop; the script goes on.
    RequestStop,
    Return {
        text: String,
        unquote: bool,
    },
    Exit(ExitKind),
    Error {
        text: String,
        unquote: bool,
    },
}

/// A file to print to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) append: bool,
}

/// A kind of exit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ExitKind {
    End,
    Exit,
    Stop,
}

/// The target of a `goto`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JumpTarget {
    /// A label that has not been resolved.
    Unresolved(String),
    To(usize),
    Exit(ExitKind),
    Error,
}

/// An error in an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct ParseError {
    /// The index of the argument.
    pub argument: usize,
    /// The error.
    pub message: String,
    /// Click's message.
    pub click: String,
    /// A correct form.
    pub help: Option<String>,
}

const WORDS: &[&str] = &[
    "set",
    "setq",
    "init",
    "initq",
    "export",
    "exportq",
    "print",
    "printq",
    "printn",
    "printnq",
    "save",
    "append",
    "read",
    "readq",
    "write",
    "writeq",
    "pause",
    "wait",
    "wait_step",
    "wait_stop",
    "wait_time",
    "wait_for",
    "label",
    "goto",
    "gotoa",
    "loop",
    "return",
    "returnq",
    "end",
    "exit",
    "stop",
    "please_stop",
    "error",
    "errorq",
];

impl Program {
    /// Whether the first instruction waits for time or for steps.
    pub fn begins_with_wait(&self) -> bool {
        matches!(self.instructions.first(), Some(Instruction::Pause(_) | Instruction::Wait(_)))
    }

    /// Parses instructions and returns all errors at once. A script that `drives` the router waits
    /// for one stop request if it is empty, and stops the router at its end.
    pub fn parse<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        drives: bool,
    ) -> Result<Program, Vec<ParseError>> {
        let (mut program, mut errors, mut origins) = (Program::default(), Vec::new(), Vec::new());
        for (argument, text) in arguments.into_iter().enumerate() {
            let (word, rest) = shift_word(text);
            if word.is_empty() {
                continue;
            }
            match instruction(word, rest.trim()) {
                Some(instruction) => {
                    program.instructions.push(instruction);
                    origins.push(argument);
                }
                None => errors.push(syntax(argument, word)),
            }
        }
        program.link(&origins, &mut errors);
        if drives && program.instructions.is_empty() {
            program.instructions.push(Instruction::Pause(1));
        }
        let last = if drives { ExitKind::Stop } else { ExitKind::End };
        program.instructions.push(Instruction::Exit(last));
        if errors.is_empty() { Ok(program) } else { Err(errors) }
    }

    /// Variables that are also read handlers.
    pub fn exports(&self) -> impl Iterator<Item = &str> {
        self.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Init { variable, export: true, .. } => Some(variable.as_str()),
            _ => None,
        })
    }

    /// The handlers that the script reads, and those that it writes, as far as it does not compute
    /// their names.
    pub fn handlers(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for instruction in &self.instructions {
            let text = match instruction {
                Instruction::Set { text, .. }
                | Instruction::Init { text, .. }
                | Instruction::Print { text, .. }
                | Instruction::Read { text, .. }
                | Instruction::Write { text, .. }
                | Instruction::Wait(text)
                | Instruction::Goto { condition: text, .. }
                | Instruction::Return { text, .. }
                | Instruction::Error { text, .. } => text,
                Instruction::Pause(_)
                | Instruction::Label(_)
                | Instruction::RequestStop
                | Instruction::Exit(_) => continue,
            };
            match instruction {
                Instruction::Print { .. } if prints_handler(text) => reads.extend(fixed_name(text)),
                Instruction::Read { .. } => reads.extend(fixed_name(text)),
                Instruction::Write { .. } => writes.extend(fixed_name(text)),
                _ => {}
            }
            add_calls(text, &mut reads);
        }
        (reads, writes)
    }

    /// The target of a label.
    pub(super) fn label(&self, name: &str) -> Option<JumpTarget> {
        let is_it = |i: &Instruction| matches!(i, Instruction::Label(l) if l == name);
        self.instructions.iter().position(is_it).map(JumpTarget::To).or(match name {
            "begin" | "loop" => Some(JumpTarget::To(0)),
            "end" => Some(JumpTarget::Exit(ExitKind::End)),
            "exit" => Some(JumpTarget::Exit(ExitKind::Exit)),
            "stop" => Some(JumpTarget::Exit(ExitKind::Stop)),
            "error" => Some(JumpTarget::Error),
            _ => None,
        })
    }

    fn link(&mut self, origins: &[usize], errors: &mut Vec<ParseError>) {
        for (at, &argument) in origins.iter().enumerate() {
            let Instruction::Goto { to: JumpTarget::Unresolved(name), .. } = &self.instructions[at]
            else {
                continue;
            };
            let found = self.label(name);
            if found.is_none() {
                let labels = self.instructions.iter().filter_map(|i| match i {
                    Instruction::Label(label) => Some(label.as_str()),
                    _ => None,
                });
                errors.push(ParseError {
                    argument,
                    message: format!("no such label '{name}'"),
                    click: format!("no such label '{name}'"),
                    help: nearest(name, labels).map(|near| format!("did you mean '{near}'?")),
                });
            }
            if let (Some(found), Instruction::Goto { to, .. }) = (found, &mut self.instructions[at])
            {
                *to = found;
            }
        }
    }
}

/// Whether `print` of this text prints the value of a handler.
pub(super) fn prints_handler(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@' || c == '_')
}

fn syntax(argument: usize, word: &str) -> ParseError {
    let known = WORDS.contains(&word);
    let near = if known { None } else { nearest(word, WORDS.iter().copied()) };
    ParseError {
        argument,
        message: match known {
            true => format!("'{word}' does not take these arguments"),
            false => format!("there is no instruction '{word}'"),
        },
        click: format!("syntax error at '{word}'"),
        help: near.map(|near| format!("did you mean '{near}'?")),
    }
}

/// Parses one instruction; `None` if its form is unknown.
fn instruction(word: &str, rest: &str) -> Option<Instruction> {
    let (bare, unquote) = match word {
        "setq" | "initq" | "exportq" | "printq" | "printnq" | "readq" | "writeq" | "returnq"
        | "errorq" => (&word[..word.len() - 1], true),
        _ => (word, false),
    };
    let text = rest.to_owned();
    Some(match bare {
        "set" | "init" | "export" => {
            let (variable, value) = shift_word(rest);
            if variable.is_empty() || bare == "set" && value.is_empty() {
                return None;
            }
            let (variable, text) = (variable.to_owned(), value.to_owned());
            match bare {
                "set" => Instruction::Set { variable, text, unquote },
                _ => Instruction::Init { variable, text, unquote, export: bare == "export" },
            }
        }
        "print" | "printn" => print(rest, bare == "print", unquote),
        "save" | "append" => {
            let (handler, name) = shift_word(rest);
            let named = !matches!(name.trim(), "" | "-");
            let file = named.then(|| File { name: name.into(), append: bare == "append" });
            Instruction::Print { file, text: handler.into(), line_end: true, unquote: false }
        }
        "read" => Instruction::Read { text, unquote },
        "write" => Instruction::Write { text, unquote },
        "wait" if rest.is_empty() => Instruction::Pause(1),
        "pause" | "wait_step" | "wait_stop" => match rest {
            "" => Instruction::Pause(1),
            count => Instruction::Pause(count.parse().ok()?),
        },
        "wait" | "wait_time" | "wait_for" => {
            let fixed = !rest.contains('$');
            if rest.is_empty() || fixed && parse_nanoseconds(rest).is_none() {
                return None;
            }
            Instruction::Wait(text)
        }
        "label" if shift_word(rest).1.is_empty() && !rest.is_empty() => Instruction::Label(text),
        "goto" | "gotoa" | "loop" if rest.is_empty() => {
            goto(JumpTarget::To(0), "", bare == "gotoa")
        }
        "goto" | "gotoa" => {
            let (label, condition) = shift_word(rest);
            goto(JumpTarget::Unresolved(label.into()), condition, bare == "gotoa")
        }
        "please_stop" if rest.is_empty() => Instruction::RequestStop,
        "return" => Instruction::Return { text, unquote },
        "end" if rest.is_empty() => Instruction::Exit(ExitKind::End),
        "exit" if rest.is_empty() => Instruction::Exit(ExitKind::Exit),
        "stop" if rest.is_empty() => Instruction::Exit(ExitKind::Stop),
        "error" => Instruction::Error { text, unquote },
        _ => return None,
    })
}

fn goto(to: JumpTarget, condition: &str, unless_stopping: bool) -> Instruction {
    Instruction::Goto { to, condition: condition.to_owned(), unless_stopping }
}

fn print(rest: &str, line_end: bool, unquote: bool) -> Instruction {
    let Some(after) = rest.strip_prefix('>') else {
        return Instruction::Print { file: None, text: rest.into(), line_end, unquote };
    };
    let (append, after) = after.strip_prefix('>').map_or((false, after), |after| (true, after));
    let (name, text) = shift_word(after);
    let file = (name != "-").then(|| File { name: name.into(), append });
    Instruction::Print { file, text: text.into(), line_end, unquote }
}
