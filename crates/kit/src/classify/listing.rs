//! Tests as text, in a form like that of Click's `program` handlers, with ranges.

use super::graph::{DROP, Graph, OUT, Target};
use super::pattern::Base;
use std::fmt;

/// The offset at which Click's listing puts each header.
pub(crate) fn listing_base(base: Base) -> usize {
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
            let from = listing_base(test.base);
            safe = safe.max(from + usize::from(test.needs()));
            write!(f, "{step:2} {:3}/{:08x}", from + usize::from(test.offset), test.lo)?;
            if !test.is_equality() {
                write!(f, "-{:08x}", test.hi)?;
            }
            write!(
                f,
                "%{:08x}  yes->{}  no->{}",
                test.mask,
                BranchText(node.yes),
                BranchText(node.no)
            )?;
            f.write_str(if node.short_yes { "  short->yes\n" } else { "\n" })?;
        }
        if self.start >= OUT {
            writeln!(f, "all->{}", BranchText(self.start))?;
        }
        writeln!(f, "safe length {safe}\nalignment offset 0")
    }
}

/// A branch in Click's form.
pub(crate) struct BranchText(pub(crate) Target);

impl fmt::Display for BranchText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DROP => f.write_str("[X]"),
            step @ 0..OUT => write!(f, "step {step}"),
            output => write!(f, "[{}]", output - OUT),
        }
    }
}
