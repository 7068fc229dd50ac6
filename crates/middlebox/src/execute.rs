//! Executes commands of the language on a `Middlebox`, and the lines of its configuration.

use crate::analysis::{RuleDiagnostic, warnings_beside, warnings_of_all};
use crate::burst::HookContext;
use crate::config_line::ConfigLine;
use crate::file::{self, FileContext, MAX_REPORTED, RuleFile};
use crate::language::{Command, ListFormat, ParseError, TestPacket, command, place};
use crate::matcher::MAX_SLOTS;
use crate::middlebox::Middlebox;
use crate::named_sets::NamedSets;
use crate::packet_test::PacketTest;
use crate::placement::placement_error;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use castanet_element::prelude::*;

/// Returns the rules, or an error if there are too many.
pub(crate) fn check_rule_count(rules: RuleSet) -> Result<RuleSet, ArgError> {
    match rules.slots() > MAX_SLOTS {
        true => Err(ArgError::new(format!("{} rules; there can be {MAX_SLOTS}", rules.len()))),
        false => Ok(rules),
    }
}

/// The rules of a configuration: those of its file, then its lines in their order.
pub(crate) fn built_rules(
    lines: Vec<ConfigLine>,
    path: Option<&str>,
    context: &FileContext,
    setup: &Setup,
) -> Result<RuleSet, ArgError> {
    let mut sets = NamedSets::default();
    for ConfigLine(line) in &lines {
        match line {
            Command::ChangeSet(name, change) => {
                sets.change(name, change).map_err(ArgError::new)?;
            }
            Command::LoadSet(name, path) => {
                let change = file::set_of_file(path, context.read)?;
                sets.change(name, &change).map_err(ArgError::new)?;
            }
            _ => {}
        }
    }
    let loaded = match path {
        Some(path) => file::load(path, sets, context).map_err(|error| error.at("FILE"))?,
        None => RuleFile { sets, ..RuleFile::default() },
    };
    let path = path.unwrap_or_default();
    loaded.warnings.iter().for_each(|said| (setup.warn)(format!("{path}: {said}")));
    let of_file = loaded.rules.len();
    let mut rules = RuleSet::default();
    loaded.apply_to(&mut rules);
    for ConfigLine(line) in lines {
        match line {
            Command::Add(rule) => {
                if let Some(remark) = (context.placement_error)(&rule) {
                    return Err(rule_arg_error(&remark, &rule));
                }
                let rule = rules.resolved(rule).map_err(ArgError::new)?;
                rules.add(rule);
            }
            Command::ChangeSet(..) | Command::LoadSet(..) => {}
            setting => _ = rules.execute(&setting),
        }
    }
    rules.renew_chains().map_err(ArgError::new)?;
    let all = || rules.entries().map(|entry| &entry.rule);
    for (at, remark) in warnings_of_all(all(), MAX_REPORTED) {
        if let Some(entry) = rules.at(at).filter(|_| at >= of_file) {
            (setup.warn)(remark.line(&entry.rule));
        }
    }
    check_rule_count(rules)
}

/// The error for a rule without effect here.
fn rule_arg_error(remark: &RuleDiagnostic, rule: &Rule) -> ArgError {
    ArgError::new(RuleDiagnostic { help: None, ..remark.clone() }.line(rule))
        .help(remark.help.clone().unwrap_or_default())
}

/// Renders warnings as lines of an answer.
fn warning_lines(warnings: impl IntoIterator<Item = String>) -> String {
    warnings.into_iter().fold(String::new(), |all, said| all + "\nwarning: " + &said)
}

impl Middlebox {
    /// Executes a line of the language and returns the changed element.
    pub(crate) fn execute_line(&self, line: &str, names: &Names) -> Result<Self, ArgError> {
        let Some(command) = command(line)? else { return Ok(self.clone()) };
        let mut warnings = Vec::new();
        if let Command::Add(rule) | Command::Replace(_, rule) = &command {
            if let Some(RuleDiagnostic { part, message, help }) = self.placement_error(rule) {
                // A client of a control socket sees only the message.
                let help = help.map_or(String::new(), |help| format!("; {help}"));
                return Err(ParseError::new(place(line, part), message + &help).into());
            }
            let others = self.active_rules.rules().entries().map(|entry| &entry.rule);
            warnings = warnings_beside(rule, others);
            warnings.truncate(MAX_REPORTED);
        }
        let mut new = self.execute(&command, names)?;
        if let Command::Add(rule) | Command::Replace(_, rule) = &command {
            new.answer += &warning_lines(warnings.iter().map(|remark| remark.line(rule)));
        }
        Ok(new)
    }

    /// Why a rule has no effect here.
    pub(crate) fn placement_error(&self, rule: &Rule) -> Option<RuleDiagnostic> {
        placement_error(rule, &self.interfaces, self.forwarding)
    }

    /// Executes a command and returns the changed element.
    pub(crate) fn execute(&self, command: &Command, names: &Names) -> Result<Self, ArgError> {
        let mut new = self.clone();
        let mut rules = RuleSet::clone(self.active_rules.rules());
        let said = match command {
            Command::Enable(names) => new.interfaces.set(names, true),
            Command::Disable(names) => new.interfaces.set(names, false),
            Command::Test(test) => self.test_packet(test, 0),
            Command::DeleteConnection(tuple) => {
                match self.connections.change(|all| all.delete(tuple)) {
                    true => Ok("deleted the connection".to_owned()),
                    false => Err("there is no such connection".into()),
                }
            }
            Command::Save(path) => {
                let text = self.active_rules.rules().text();
                names.files().write("save", path, text.as_bytes())?;
                Ok(format!("saved {} rules", self.active_rules.rules().len()))
            }
            Command::Load(path) => {
                let loaded = self.load_file(path, names)?;
                let warnings = warning_lines(loaded.warnings.clone());
                let said = format!("loaded {} rules{warnings}", loaded.rules.len());
                loaded.apply_to(&mut rules);
                Ok(said)
            }
            Command::LoadSet(name, path) => {
                let read = |path: &str| file::read_named(names.files(), path);
                rules.change_set(name, &file::set_of_file(path, &read)?)
            }
            Command::List(ListFormat::Text) => Err("`list` is a handler to be read".into()),
            Command::List(ListFormat::Json) => Err("`list_json` is a handler to be read".into()),
            other => {
                rules.execute(other).unwrap_or_else(|| Err("that is a handler to be read".into()))
            }
        };
        new.answer = said.map_err(ArgError::new)?;
        let is_about_rules = !matches!(
            command,
            Command::Test(_)
                | Command::Save(_)
                | Command::Enable(_)
                | Command::Disable(_)
                | Command::DeleteConnection(_)
        );
        if is_about_rules {
            new.active_rules = self.active_rules.with(check_rule_count(rules)?);
        }
        Ok(new)
    }

    /// Loads a file that a command names.
    fn load_file(&self, path: &str, names: &Names) -> Result<RuleFile, ArgError> {
        let read = |path: &str| file::read_named(names.files(), path);
        let placement_error = |rule: &Rule| self.placement_error(rule);
        file::load_named(path, &FileContext { placement_error: &placement_error, read: &read })
    }

    /// Parses rules that a handler puts in place of all.
    pub(crate) fn parse_rules(&self, text: &str, names: &Names) -> Result<RuleFile, ArgError> {
        let read = |path: &str| file::read_named(names.files(), path);
        let placement_error = |rule: &Rule| self.placement_error(rule);
        let context = FileContext { placement_error: &placement_error, read: &read };
        file::parse_rules(text, NamedSets::default(), &context)
    }

    /// Executes the command that a handler is named after.
    pub(crate) fn run_command(
        &self,
        name: &str,
        text: &str,
        names: &Names,
    ) -> Result<Self, ArgError> {
        let line = format!("{name} {text}");
        // Error offsets refer to the text that was written.
        let unnamed = |mut error: ArgError| {
            let shift = |(at, len): (usize, usize)| (at.saturating_sub(name.len() + 1), len);
            error.range = error.range.map(shift);
            error
        };
        self.execute_line(&line, names).map_err(unnamed)
    }

    /// The context of packets from a port at a time in nanoseconds, which count or are only tested.
    pub(crate) fn hook(&self, port: usize, now: u64, is_counted: bool) -> HookContext<'_> {
        HookContext {
            rules: self.active_rules.rules(),
            interfaces: &self.interfaces,
            connections: &self.connections,
            fragments: &self.fragments,
            mtu: self.mtu,
            port,
            now,
            is_counted,
            log: &self.log,
        }
    }

    /// Tests a packet at a time in nanoseconds.
    pub(crate) fn test_packet(&self, test: &TestPacket, now: u64) -> Result<String, String> {
        let port = self.interfaces.path(test.input.as_deref(), test.output.as_deref())?;
        let (hook, active_rules) = (self.hook(port, now, false), &self.active_rules);
        let is_enabled = self.interfaces.is_enabled(port);
        PacketTest { hook, active_rules, is_enabled }.run(&test.packet)
    }
}
