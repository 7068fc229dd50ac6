//! Programs as text, as Click's `program` handlers list them.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::Base;
use std::fmt;

/// Where Click's listing counts each header from.
pub(crate) fn listed(base: Base) -> usize {
    match base {
        Base::Packet | Base::Link => 0,
        Base::Network => 256,
        Base::Transport => 512,
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut safe = 0;
        for (step, node) in self.nodes.iter().enumerate() {
            let test = &node.test;
            let from = listed(test.base);
            safe = safe.max(from + usize::from(test.needs()));
            write!(f, "{step:2} {:3}/{:08x}", from + usize::from(test.offset), test.lo)?;
            if !test.is_equality() {
                write!(f, "-{:08x}", test.hi)?;
            }
            write!(f, "%{:08x}  yes->{}  no->{}", test.mask, Jump(node.yes), Jump(node.no))?;
            f.write_str(if node.short_yes { "  short->yes\n" } else { "\n" })?;
        }
        if self.start >= OUT {
            writeln!(f, "all->{}", Jump(self.start))?;
        }
        writeln!(f, "safe length {safe}\nalignment offset 0")
    }
}

/// A branch as Click lists it.
pub(crate) struct Jump(pub(crate) Target);

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DROP => f.write_str("[X]"),
            step @ 0..OUT => write!(f, "step {step}"),
            output => write!(f, "[{}]", output - OUT),
        }
    }
}
