//! Leakage reports as text.

use super::{FunctionReport, LeakageReport, ProjectionReport};
use std::fmt::{Display, Formatter};

/// Hashes in a second, for which times of a brute force are stated.
pub const HASHES_PER_SECOND: f64 = 1e9;

/// The time of so many guesses at [`HASHES_PER_SECOND`], as text.
pub fn guess_time(bits: u32) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    const YEAR: f64 = 365.25 * DAY;
    let seconds = 2_f64.powi(bits as i32) / HASHES_PER_SECOND;
    match seconds {
        _ if seconds < 1e-3 => "less than 1 ms".to_owned(),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 2.0 * MINUTE => format!("{seconds:.0} s"),
        _ if seconds < 2.0 * HOUR => format!("{:.0} min", seconds / MINUTE),
        _ if seconds < 2.0 * DAY => format!("{:.0} h", seconds / HOUR),
        _ if seconds < 2.0 * YEAR => format!("{:.0} days", seconds / DAY),
        _ if seconds < 1e6 * YEAR => format!("{:.0} years", seconds / YEAR),
        _ => format!("10^{:.0} years", (seconds / YEAR).log10().floor()),
    }
}

impl Display for ProjectionReport {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let or_any = |fields: &[String]| match fields {
            [] => "nothing".to_owned(),
            fields => fields.join(", "),
        };
        write!(f, "{:>6} matches on {:>3} bits", self.matches, self.bits)?;
        write!(f, ", 2^{} guesses ({}): ", self.guess_bits, guess_time(self.guess_bits))?;
        match self.ip4 == self.ip6 {
            true => write!(f, "{}", or_any(&self.ip4)),
            false => write!(f, "{} (IPv6: {})", or_any(&self.ip4), or_any(&self.ip6)),
        }
    }
}

impl Display for FunctionReport {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        let FunctionReport { rules, actions, matches, longest_path, .. } = self;
        let shape = match self.is_list {
            true => "a list, whose first match decides",
            false => "a tree",
        };
        writeln!(
            f,
            "function: {rules} rules in {shape}; {actions} actions, {matches} different matches, {} \
             projections, at most {longest_path} rules for a packet",
            self.projections.len()
        )?;
        writeln!(f, "projections, and the cost of a brute force at 10^9 hashes a second:")?;
        self.projections.iter().try_for_each(|it| writeln!(f, "{it}"))
    }
}

impl Display for LeakageReport {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        writeln!(f, "party: {} of setup {}", self.party, self.setup)?;
        let LeakageReport { processors, header_bits, blinds, lanes, hash, .. } = self;
        let use_of_blinds = if self.uses_blinds_once { "each used once" } else { "used again" };
        writeln!(f, "setup: t = {processors} processors, n = {header_bits} bits, hash {hash}")?;
        writeln!(f, "blinds: l = {blinds} an epoch, {use_of_blinds}; {lanes} lanes")?;
        if let Some(dummies) = self.dummies_per_million {
            writeln!(f, "dummies: {dummies} in a million packets")?;
        }
        if let Some(function) = &self.function {
            write!(f, "{function}")?;
        }
        writeln!(f, "it can know:")?;
        self.known.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "it cannot know:")?;
        self.hidden.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
