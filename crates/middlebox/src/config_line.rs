//! Lines of a configuration or of a file of rules.

use crate::language::{Command, command};
use crate::rule::Rule;
use crate::rule_set::NonIpPolicy;
use castanet_element::prelude::*;

/// A line of a configuration or of a file of rules.
pub(crate) enum ConfigLine {
    /// A rule.
    Rule(Rule),
    /// The policy for packets that are neither IPv4 nor IPv6.
    NonIpPolicy(NonIpPolicy),
}

impl ConfigLine {
    pub(crate) fn from_command(command: Command) -> Option<ConfigLine> {
        match command {
            Command::Add(rule) => Some(ConfigLine::Rule(rule)),
            Command::SetNonIpPolicy(other) => Some(ConfigLine::NonIpPolicy(other)),
            _ => None,
        }
    }

    /// Splits lines into rules and the last `other` policy.
    pub(crate) fn split(lines: Vec<ConfigLine>) -> (Vec<Rule>, Option<NonIpPolicy>) {
        let (mut rules, mut other) = (Vec::with_capacity(lines.len()), None);
        for line in lines {
            match line {
                ConfigLine::Rule(rule) => rules.push(rule),
                ConfigLine::NonIpPolicy(it) => other = Some(it),
            }
        }
        (rules, other)
    }
}

impl FromArg for ConfigLine {
    const SYNTAX: &'static str = "a rule, such as `tcp-dport 80 mod tcp-dport 443`";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let line = command(text)?.and_then(ConfigLine::from_command);
        line.ok_or_else(|| ArgError::new(format!("`{text}` is not {}", ConfigLine::SYNTAX)))
    }
}
