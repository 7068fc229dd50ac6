//! Accounts of processor time, as information elements declare them.

use crate::args::{FromArg, Names};
use crate::error::ArgError;
use std::time::Duration;

/// A part of a processor, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct CpuPart(pub f64);

impl FromArg for CpuPart {
    const SYNTAX: &'static str = "a part of a processor such as 20% or 0.2";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let text = text.trim();
        let (number, whole) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let part = f64::from_arg(number, names).ok().map(|number| number / whole);
        part.filter(|part| (0.0..=1.0).contains(part)).map(CpuPart).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)).click("invalid number")
        })
    }
}

/// An account to which the processor time of elements is charged, and the time that it may use on
/// each worker.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuAccount {
    /// The element or compound whose time it pays for, or a context of `VStaticThreadSched`.
    pub name: String,
    /// The part of a processor that it has whenever it has work.
    pub guarantee: CpuPart,
    /// The part that it gets at most; above 0.
    pub limit: Option<CpuPart>,
    /// The longest time for which one run of another account may keep it waiting.
    pub delay: Option<Duration>,
    /// The element that declares it; the runtime sets it.
    pub element: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_percents_or_fractions() {
        let part = |text| CpuPart::from_arg(text, &Names::default()).ok().map(|part| part.0);
        assert_eq!([part("20%"), part("0.2"), part(" 100 % ")], [Some(0.2), Some(0.2), Some(1.0)]);
        assert_eq!([part("0"), part("12.5%")], [Some(0.0), Some(0.125)]);
        for wrong in ["", "%", "101%", "1.5", "-1%", "x", "NaN", "inf", "20 % %"] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }
}
