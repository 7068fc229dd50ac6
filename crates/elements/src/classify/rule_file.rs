//! Files of rules, which an argument of `IPFilter` names.

use super::ip_filter::IPFilterArgs;
use super::ip_rules::RuleText;
use castanet_element::prelude::*;
use castanet_element::resource::{Resource, from_args};

/// The most bytes that a file of rules may have.
const MAX_SIZE: u64 = 64 << 20;

/// The file that a rule's text names, if it names one.
fn name(text: &str) -> Option<String> {
    let name = text.trim().strip_prefix("file")?;
    let name = name.starts_with(char::is_whitespace).then(|| name.trim())?;
    String::from_arg(name, &Names::default()).ok()
}

/// Puts the rules of files in the places of the arguments that name them.
pub(super) fn include(arguments: Vec<RuleText>) -> Result<Vec<RuleText>, ArgError> {
    let mut all = Vec::new();
    for argument in arguments {
        match name(&argument.text) {
            Some(name) => all.extend(rules(&name).map_err(|e| e.at(&argument.place))?),
            None => all.push(argument),
        }
    }
    Ok(all)
}

/// The rules in a file, one a line.
fn rules(name: &str) -> Result<Vec<RuleText>, ArgError> {
    let fail = |e: std::io::Error| ArgError::of_file(name, &e);
    let size = std::fs::metadata(name).map_err(fail)?.len();
    if size > MAX_SIZE {
        return Err(ArgError::new(format!("{name} has {size} bytes, at most {MAX_SIZE} are read")));
    }
    let text = std::fs::read(name).map_err(fail)?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate();
    let rule = |(n, line): (usize, &str)| RuleText {
        text: line.to_owned(),
        place: format!("file {name}/pattern {n}"),
    };
    Ok(lines.map(rule).collect())
}

/// The files that the arguments name.
pub(super) fn resources(config: &str, names: &Names) -> Vec<Resource> {
    from_args(config, names, |it: &IPFilterArgs| {
        let files = it.rules.iter().filter_map(|rule| name(rule));
        files.flat_map(|file| Resource::input(Some(&file), "reads rules from it")).collect()
    })
}
