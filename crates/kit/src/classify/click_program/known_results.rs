//! Jumps over tests whose results are known from the tests before.
//!
//! Each instruction is reached by some paths. Of these up to [`MAX_PATHS`] are remembered, as the
//! branches that packets took; more are replaced by what they have in common. A jump skips a test that
//! every remembered path decides, if they all lead to the same place.

use super::Budget;
use super::instruction::{Instruction, Jump};
use std::collections::HashMap;

/// The most paths of an instruction.
const MAX_PATHS: usize = 4;

/// A branch of an instruction: twice its number, plus 1 for equal. Of instructions with the same
/// comparison the first one stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Branch(u32);

impl Branch {
    fn new(instruction: usize, equal: bool) -> Branch {
        Branch(2 * instruction as u32 + u32::from(equal))
    }

    fn instruction(self) -> usize {
        (self.0 / 2) as usize
    }

    fn is_equal(self) -> bool {
        self.0 % 2 == 1
    }

    fn opposite(self) -> Branch {
        Branch(self.0 ^ 1)
    }

    fn has_same_test(self, other: Branch) -> bool {
        self.instruction() == other.instruction()
    }
}

/// The branches that packets took to an instruction, and last a place for one of its own.
type Path = Vec<Branch>;

/// The beginning of a path to another instruction.
struct PathBefore {
    from: usize,
    path: usize,
    len: usize,
}

/// Lets each jump skip tests whose result is known, in order, as far as the budget goes.
pub(super) fn shorten_jumps(instructions: &mut [Instruction], budget: &mut Budget) {
    if budget.is_spent() {
        return;
    }
    let mut jumps = Jumps::new(instructions, budget);
    for at in 0..jumps.instructions.len() {
        jumps.find_paths(at);
        jumps.shorten(at, true);
        jumps.shorten(at, false);
        if jumps.budget.is_spent() {
            return;
        }
    }
}

/// The jumps of a program, and what is known of the paths.
struct Jumps<'a> {
    instructions: &'a mut [Instruction],
    budget: &'a mut Budget,
    /// The bytes that packets must have had before they come to an instruction.
    known_lengths: Vec<u32>,
    /// For each instruction the first with the same comparison.
    firsts: Vec<usize>,
    /// For each instruction the branches that lead to it, in an order that Click's results depend on.
    sources: Vec<Vec<Branch>>,
    /// For each instruction so far its paths; none if no packet can come to it.
    paths: Vec<Vec<Path>>,
}

impl<'a> Jumps<'a> {
    fn new(instructions: &'a mut [Instruction], budget: &'a mut Budget) -> Jumps<'a> {
        let mut sources = vec![Vec::new(); instructions.len()];
        for (from, instruction) in instructions.iter().enumerate().rev() {
            for equal in [true, false] {
                if let Some(to) = instruction.jump(equal).step() {
                    sources[to].push(Branch::new(from, equal));
                }
            }
        }
        let mut first_of = HashMap::with_capacity(instructions.len());
        let firsts = instructions.iter().enumerate();
        let firsts = firsts.map(|(at, it)| *first_of.entry(it.test).or_insert(at)).collect();
        let known_lengths = known_lengths(instructions);
        let paths = Vec::with_capacity(instructions.len());
        Jumps { instructions, budget, known_lengths, firsts, sources, paths }
    }

    fn branch(&self, instruction: usize, equal: bool) -> Branch {
        Branch::new(self.firsts[instruction], equal)
    }

    /// Finds the paths to an instruction, of which all before it have theirs. Removes it from them if
    /// its result is the same on all paths, or if there are none.
    fn find_paths(&mut self, at: usize) {
        let sources = self.sources[at].clone();
        let before = self.paths_before(&sources);
        let own = self.branch(at, false);
        let mut paths: Vec<Path> = Vec::new();
        if before.len() > MAX_PATHS {
            let lists = before.iter().map(|it| &self.paths[it.from][it.path][..it.len]);
            let lists: Vec<Vec<u32>> =
                lists.map(|path| path.iter().map(|branch| branch.0).collect()).collect();
            self.budget.take(lists.iter().map(Vec::len).sum());
            paths.push(common(&lists).into_iter().map(Branch).chain([own]).collect());
        } else {
            let result = self.extend_paths(&before, own, &mut paths);
            if let Some(equal) = result {
                let target = self.instructions[at].jump(equal);
                sources.iter().for_each(|&source| self.set(source, target));
                paths.clear();
            }
        }
        if paths.is_empty() {
            match at {
                0 => paths.push(vec![own]),
                _ => [false, true].iter().for_each(|&it| self.set(Branch::new(at, it), Jump::Drop)),
            }
        }
        self.paths.push(paths);
    }

    /// The paths that lead to an instruction by some branches, without those that contradict themselves.
    fn paths_before(&mut self, sources: &[Branch]) -> Vec<PathBefore> {
        let mut before: Vec<PathBefore> = Vec::new();
        for (n, &source) in sources.iter().enumerate() {
            let from = source.instruction();
            if n > 0 && sources[n - 1].has_same_test(source) {
                // Both branches lead here, so the result is not known. As in Click, only the last path
                // forgets it, and paths that exclude the first branch are left out.
                if let Some(last) = before.last_mut().filter(|last| last.from == from) {
                    last.len = last.len.saturating_sub(1);
                }
                continue;
            }
            let branch = self.branch(from, source.is_equal());
            for path in 0..self.paths[from].len() {
                let len = self.paths[from][path].len();
                self.budget.take(len);
                let Some((own, rest)) = self.paths[from][path].split_last_mut() else { continue };
                if !rest.contains(&branch.opposite()) {
                    *own = branch;
                    before.push(PathBefore { from, path, len });
                }
            }
        }
        before
    }

    /// Makes an instruction's paths of those before it. Returns its result if all paths have it.
    fn extend_paths(
        &mut self,
        before: &[PathBefore],
        own: Branch,
        paths: &mut Vec<Path>,
    ) -> Option<bool> {
        let (mut own, mut all_know) = (own, !before.is_empty());
        for (n, it) in before.iter().enumerate() {
            let before = &self.paths[it.from][it.path][..it.len];
            self.budget.take(before.len());
            let mut path = Vec::with_capacity(before.len() + 1);
            let mut known = None;
            if let Some((&last, rest)) = before.split_last() {
                // The last branch stands once, at its end.
                let rest = rest.iter().copied().filter(|branch| !branch.has_same_test(last));
                for branch in rest.chain([last]) {
                    known = if branch.has_same_test(own) { Some(branch) } else { known };
                    path.push(branch);
                }
            }
            match known {
                Some(branch) if all_know && (n == 0 || branch == own) => own = branch,
                _ => all_know = false,
            }
            path.push(own);
            paths.push(path);
        }
        all_know.then(|| own.is_equal())
    }

    /// Lets a branch skip the tests whose results are known on all paths.
    fn shorten(&mut self, at: usize, equal: bool) {
        let Some(next) = self.instructions[at].jump(equal).step() else { return };
        let routes: Vec<Vec<Jump>> =
            (0..self.paths[at].len()).map(|path| self.follow(at, equal, path, next)).collect();
        let Some(ends) =
            routes.iter().map(|route| route.last().copied()).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let target = match ends.as_slice() {
            [] => return,
            [end, others @ ..] if others.iter().all(|other| other == end) => *end,
            _ => last_common(&routes),
        };
        if target != self.instructions[at].jump(equal) {
            self.set(Branch::new(at, equal), target);
        }
    }

    /// The targets of a branch that leads to `next`, as one path lets it skip tests.
    fn follow(&mut self, at: usize, equal: bool, path: usize, next: usize) -> Vec<Jump> {
        let branch = self.branch(at, equal);
        let path = &mut self.paths[at][path];
        if let Some(own) = path.last_mut() {
            *own = branch;
        }
        let (mut target, mut route) = (Jump::Step(next as u32), Vec::new());
        loop {
            route.push(target);
            let Some(step) = target.step() else { return route };
            let test = &self.instructions[step].test;
            let mut looked = 0;
            let result = path.iter().rev().find_map(|branch| {
                looked += 1;
                let before = branch.instruction();
                let known_length = self.known_lengths[before];
                self.instructions[before].test.decides(branch.is_equal(), test, known_length)
            });
            self.budget.take(looked);
            match result {
                Some(result) => target = self.instructions[step].jump(result),
                None => return route,
            }
        }
    }

    fn set(&mut self, branch: Branch, target: Jump) {
        let jump =
            &mut self.instructions[branch.instruction()].jumps[usize::from(branch.is_equal())];
        let old = std::mem::replace(jump, target);
        if let Some(old) = old.step() {
            self.budget.take(self.sources[old].len());
            self.sources[old].retain(|source| *source != branch);
        }
        if let Some(new) = target.step() {
            let sources = &mut self.sources[new];
            self.budget.take(sources.len());
            let place = sources.iter().position(|source| source.0 >= branch.0);
            sources.insert(place.unwrap_or(sources.len()), branch);
        }
    }
}

/// For each instruction the bytes that packets must have had before it.
fn known_lengths(instructions: &[Instruction]) -> Vec<u32> {
    let mut lengths = vec![u32::MAX; instructions.len()];
    if let Some(first) = lengths.first_mut() {
        *first = 0;
    }
    for (at, instruction) in instructions.iter().enumerate() {
        let test = &instruction.test;
        let known = lengths[at];
        // Only by the one branch go packets that were too short.
        let by_branch = [(test.short_yes, known), (!test.short_yes, known.max(test.length()))];
        for (equal, length) in by_branch {
            if let Some(next) = instruction.jump(equal).step() {
                lengths[next] = lengths[next].min(length);
            }
        }
    }
    lengths
}

/// The last instruction that all routes come to.
fn last_common(routes: &[Vec<Jump>]) -> Jump {
    let steps = |jumps: &[Jump]| -> Vec<u32> {
        jumps.iter().filter_map(|jump| jump.step()).map(|step| step as u32).collect()
    };
    let common = common(&routes.iter().map(|route| steps(route)).collect::<Vec<_>>());
    // Routes begin with the same instruction.
    common.last().map_or(routes[0][0], |&step| Jump::Step(step))
}

/// The numbers that all of some lists have, if they ascend. As in Click, lists need not ascend; then
/// some of these are missing.
fn common(lists: &[Vec<u32>]) -> Vec<u32> {
    let mut places = vec![0; lists.len()];
    let (mut common, mut number) = (Vec::new(), 0);
    loop {
        let (mut agreed, mut list) = (0, 0);
        while agreed < lists.len() {
            let rest = &lists[list][places[list]..];
            places[list] += rest.iter().take_while(|it| **it < number).count();
            let Some(&found) = lists[list].get(places[list]) else { return common };
            if found > number {
                (number, agreed) = (found, 0);
            }
            agreed += 1;
            list = (list + 1) % lists.len();
        }
        common.push(number);
        number += 1;
    }
}
