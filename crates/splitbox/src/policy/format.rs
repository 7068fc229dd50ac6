//! The formats of policies, and the compiler of all of them.

use super::{CompiledPolicy, PolicyError, document, ip_filter, rules};
use castanet_lang::nearest;
use std::fmt::{Display, Formatter};
use std::path::Path;
use std::str::FromStr;

/// A format of policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Rules of `IPFilter`, one a line.
    #[default]
    IpFilter,
    /// Patterns of `IPClassifier`, one a line; packets of any pattern pass.
    IpClassifier,
    /// Stateless rules of `Middlebox`, one a line.
    Rules,
    /// TOML: address translation or a load balancer, and rules of `IPFilter` in front of it.
    Toml,
}

/// The formats by name.
const FORMATS: [(&str, Format); 4] = [
    ("ipfilter", Format::IpFilter),
    ("ipclassifier", Format::IpClassifier),
    ("rules", Format::Rules),
    ("toml", Format::Toml),
];

impl Format {
    /// The format of a file, by the ending of its name: `.toml`, `.mmb` for rules of `Middlebox`, all
    /// others for rules of `IPFilter`.
    pub fn of_file(path: &Path) -> Format {
        match path.extension().and_then(|it| it.to_str()) {
            Some("toml") => Format::Toml,
            Some("mmb") => Format::Rules,
            _ => Format::IpFilter,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        let names = || FORMATS.iter().map(|(name, _)| *name);
        found.map(|it| it.1).ok_or_else(|| match nearest(text, names()) {
            Some(near) => format!("`{text}` is no format; did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = names().collect();
                format!("`{text}` is no format; a format is one of {}", names.join(", "))
            }
        })
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let name = FORMATS.iter().find(|(_, format)| format == self);
        f.write_str(name.map_or("", |it| it.0))
    }
}

/// Compiles the text of a policy.
///
/// # Errors
/// All errors of the text that can be told at once.
pub fn compile(format: Format, text: &str) -> Result<CompiledPolicy, Vec<PolicyError>> {
    match format {
        Format::IpFilter => ip_filter::filter_text(text),
        Format::IpClassifier => ip_filter::classifier_text(text),
        Format::Rules => rules::compile(text),
        Format::Toml => document::compile(text),
    }
}
