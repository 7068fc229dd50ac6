//! Branches: a match that policies have in common is asked once for all of them.

use super::{Item, Part, Samples};
use crate::bits::{Bits, Ternary};

/// Maximum number of branches of a list.
const MAX_BRANCHES: usize = 64;

/// Matches that samples are compared with in a tree.
pub(super) fn matches(tree: &[Part], samples: &Samples) -> u64 {
    samples.iter().map(|&(string, count)| count * visit(tree, string).0).sum()
}

/// Number of matches that a string is compared with, and whether a policy matches.
fn visit(tree: &[Part], string: Bits) -> (u64, bool) {
    let mut count = 0;
    for part in tree {
        count += 1;
        match part {
            Part::Item(item) if item.policy.condition.matches(string) => return (count, true),
            Part::Group(condition, inner) if condition.matches(string) => {
                let (more, is_match) = visit(inner, string);
                count += more;
                if is_match {
                    return (count, true);
                }
            }
            _ => {}
        }
    }
    (count, false)
}

/// Neighbours that are worth a branch.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
    condition: Ternary,
    /// Matches that the branch saves.
    gain: u64,
}

/// A list with branches where they save matches.
pub(super) fn grouped(items: &[Item], samples: &Samples) -> Vec<Part> {
    let mut left = MAX_BRANCHES;
    with_branches(items, samples, &mut left)
}

fn with_branches(items: &[Item], samples: &Samples, left: &mut usize) -> Vec<Part> {
    let group = best_group(items, samples).filter(|_| *left > 0);
    let Some(Group { start, end, condition, .. }) = group else {
        return items.iter().copied().map(Part::Item).collect();
    };
    *left -= 1;
    let reaching = |samples: &Samples, passed: &[Item]| -> Samples {
        let passes = |string: Bits| !passed.iter().any(|it| it.policy.condition.matches(string));
        samples.iter().filter(|it| passes(it.0)).copied().collect()
    };
    let here = reaching(samples, &items[..start]);
    let inside = here.iter().filter(|it| condition.matches(it.0)).copied().collect();
    let after = reaching(&here, &items[start..end]);
    let mut parts = with_branches(&items[..start], samples, left);
    parts.push(Part::Group(condition, with_branches(&items[start..end], &inside, left)));
    parts.extend(with_branches(&items[end..], &after, left));
    parts
}

/// The neighbours whose branch saves most; `None` if no branch saves a match.
fn best_group(items: &[Item], samples: &Samples) -> Option<Group> {
    let mut best: Option<Group> = None;
    let mut reaching = samples.clone();
    for start in 0..items.len() {
        let packets: u64 = reaching.iter().map(|it| it.1).sum();
        let most = packets * (items.len() - start - 1) as u64;
        if most <= best.map_or(0, |it| it.gain) {
            break;
        }
        for (end, condition) in ends(&items[start..]) {
            let (count, least) = (end as u64, best.map_or(0, |it| it.gain));
            if packets * (count - 1) <= least {
                continue;
            }
            let within = reaching.iter().filter(|it| condition.matches(it.0)).map(|it| it.1);
            let within: u64 = within.sum();
            // Others skip all but the branch; packets within are compared once more.
            let saved = ((packets - within) * (count - 1)).saturating_sub(within);
            if saved > least {
                best = Some(Group { start, end: start + end, condition, gain: saved });
            }
        }
        reaching.retain(|it| !items[start].policy.condition.matches(it.0));
    }
    best
}

/// The longest beginnings of a list with a match in common, of at least two policies.
fn ends(items: &[Item]) -> Vec<(usize, Ternary)> {
    let mut ends: Vec<(usize, Ternary)> = Vec::new();
    let mut common = items.first().map_or(Ternary::ANY, |it| it.policy.condition);
    for (at, item) in items.iter().enumerate().skip(1) {
        let next = common.common(&item.policy.condition);
        if next != common && at > 1 {
            ends.push((at, common));
        }
        common = next;
        if common == Ternary::ANY {
            return ends;
        }
    }
    if items.len() > 1 {
        ends.push((items.len(), common));
    }
    ends
}
