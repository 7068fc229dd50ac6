//! A pattern as rows of bits of a key, one of which a packet must have.

use super::keys::Place;
use super::pattern::{Expr, Id, Pattern, Test};
use super::plan::{Plan, Want, asked_for};
use super::prefixes::{common, outside, within};
use crate::rules::{Key, Masked, WORDS};

/// Two alternatives with each other make at most so many rows, or [`EACH`] for each test.
const MOST: usize = 32;
/// See [`MOST`].
const EACH: usize = 4;
/// Rows that are made for each node of a pattern, at most.
const SPARE: usize = 64;

/// Ranges that a row has beside its bits, at most.
const RANGES: usize = 2;
/// Ranges that come to more rows are left to be asked, in rows of fewer bits than these: those
/// of many find few packets as it is.
const FEW: [(u32, usize); 3] = [(NARROW, MOST), (32, 8), (u32::MAX, 2)];
/// A row of fewer bits would have too many packets.
pub(crate) const NARROW: u32 = 12;

/// Bits of a key, and ranges that words of the packet are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    mask: Key,
    value: Key,
    ranges: [Option<Test>; RANGES],
    /// Whether a packet that has them needs nothing else.
    pub(crate) is_exact: bool,
}

impl Row {
    /// What every packet has.
    const ANY: Row = Row {
        mask: Key([0; WORDS]),
        value: Key([0; WORDS]),
        ranges: [None; RANGES],
        is_exact: true,
    };
    /// What the key does not say.
    const VAGUE: Row = Row { is_exact: false, ..Row::ANY };

    fn bit(place: Place, bit: u32) -> Row {
        Row { mask: place.key(1), value: place.key(bit), ..Row::ANY }
    }

    /// That a packet passes a test, as long as it has its word.
    fn within(test: &Test, plan: &Plan) -> Row {
        match plan.bits(test, (test.mask, test.lo)) {
            None => Row::VAGUE,
            Some((mask, value)) if test.is_equality() => Row { mask, value, ..Row::ANY },
            Some(_) => Row { ranges: [Some(*test), None], ..Row::ANY },
        }
    }

    /// What both say; nothing, if no packet can have it.
    fn and(&self, other: &Row) -> Option<Row> {
        let mut row = *self;
        row.is_exact &= other.is_exact;
        for word in 0..WORDS {
            let common = self.mask.0[word] & other.mask.0[word];
            if (self.value.0[word] ^ other.value.0[word]) & common != 0 {
                return None;
            }
            row.mask.0[word] |= other.mask.0[word];
            row.value.0[word] |= other.value.0[word];
        }
        for range in other.ranges.iter().flatten() {
            let is_same = |it: &Test| it.same_word(range) && it.mask == range.mask;
            let place = row.ranges.iter_mut().find(|it| it.as_ref().is_none_or(is_same));
            match place {
                Some(Some(mine)) => *mine = common(mine, range)?,
                Some(none) => *none = Some(*range),
                None => row.is_exact = false,
            }
        }
        Some(row)
    }

    /// The same without ranges, where these come to a few rows.
    fn spread(self, plan: &Plan, into: &mut Vec<Row>) {
        let mut rows = vec![Row { ranges: [None; RANGES], ..self }];
        let most = FEW.iter().find(|(width, _)| self.width() < *width).map_or(1, |it| it.1);
        for range in self.ranges.iter().flatten() {
            let bits = within(range).filter(|bits| bits.len() * rows.len() <= most);
            let Some(bits) = bits else {
                rows.iter_mut().for_each(|row| row.is_exact = false);
                continue;
            };
            let bits = bits.iter().filter_map(|&bits| plan.bits(range, bits));
            let bits: Vec<Row> =
                bits.map(|(mask, value)| Row { mask, value, ..Row::ANY }).collect();
            rows = rows.iter().flat_map(|a| bits.iter().filter_map(|b| a.and(b))).collect();
        }
        into.append(&mut rows);
    }

    /// How many bits there are.
    pub(crate) fn width(&self) -> u32 {
        self.mask.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn masked(&self) -> Masked {
        Masked::new(self.mask, self.value)
    }
}

/// The rows of a pattern: what has none of them does not match; what has one does if that is
/// exact.
pub(crate) fn rows(pattern: &Pattern, plan: &Plan) -> Vec<Row> {
    let nodes = &pattern.nodes;
    let mut maker =
        Maker { plan, made: Vec::with_capacity(nodes.len()), spare: SPARE * (nodes.len() + 1) };
    let mut tests: Vec<usize> = Vec::with_capacity(nodes.len());
    for (expr, asked) in nodes.iter().zip(asked_for(pattern)) {
        let below = |ids: &[Id]| ids.iter().map(|&id| tests[id as usize]).sum::<usize>();
        let below = match *expr {
            Expr::Const(_) | Expr::Test { .. } => 1,
            Expr::Not(a) => below(&[a]),
            Expr::And(a, b) | Expr::Or(a, b) => below(&[a, b]),
            Expr::Cond(a, b, c) => below(&[a, b, c]),
        };
        let most = MOST.max(EACH * below);
        let each = [true, false].map(|holds| match asked[usize::from(!holds)] {
            true => maker.of_node(*expr, holds, most),
            false => Vec::new(),
        });
        maker.made.push(each);
        tests.push(below);
    }
    let made = maker.made.pop().map(|[rows, _]| rows).unwrap_or_default();
    let mut rows = Vec::with_capacity(made.len());
    made.into_iter().for_each(|row| row.spread(plan, &mut rows));
    rows
}

/// Makes the rows of a pattern's nodes.
struct Maker<'a> {
    plan: &'a Plan,
    /// For each node the rows of its truth and of its falsehood, until its operator takes them.
    made: Vec<[Vec<Row>; 2]>,
    /// Rows that may still be made, so that time grows with the pattern's length.
    spare: usize,
}

impl Maker<'_> {
    /// The rows of a node's truth or falsehood.
    fn of_node(&mut self, expr: Expr, holds: bool, most: usize) -> Vec<Row> {
        match expr {
            Expr::Const(truth) if truth == holds => vec![Row::ANY],
            Expr::Const(_) => Vec::new(),
            Expr::Test { test, negated } => of_test(&test, Want::new(negated, holds), self.plan),
            Expr::Not(a) => self.take(a, !holds),
            Expr::And(a, b) | Expr::Or(a, b) => {
                let (a, b) = (self.take(a, holds), self.take(b, holds));
                match matches!(expr, Expr::And(..)) == holds {
                    true => self.both(a, b, most),
                    false => either(a, b),
                }
            }
            Expr::Cond(a, b, c) => {
                // Its truth and its falsehood both need both of the condition.
                let [is, is_not] = self.made[a as usize].clone();
                let (then, otherwise) = (self.take(b, holds), self.take(c, holds));
                either(self.both(is, then, most), self.both(is_not, otherwise, most))
            }
        }
    }

    fn take(&mut self, id: Id, holds: bool) -> Vec<Row> {
        std::mem::take(&mut self.made[id as usize][usize::from(!holds)])
    }

    /// The rows of both; where they are too many, those of one, which then are not exact.
    fn both(&mut self, a: Vec<Row>, b: Vec<Row>, most: usize) -> Vec<Row> {
        if a == [Row::ANY] {
            return b;
        }
        if b == [Row::ANY] {
            return a;
        }
        // Those of one were made before, and are looked at once more.
        let Some(spare) = self.spare.checked_sub(a.len().max(b.len())) else {
            return vec![Row::VAGUE];
        };
        self.spare = spare;
        if a.len() * b.len() > most {
            // Those are kept that fewer packets have, as far as bits tell.
            let share = |rows: &[Row]| rows.iter().map(|it| (-f64::from(it.width())).exp2()).sum();
            let (of_a, of_b): (f64, f64) = (share(&a), share(&b));
            let mut kept = if of_a <= of_b { a } else { b };
            kept.iter_mut().for_each(|row| row.is_exact = false);
            return kept;
        }
        if let ([a], [b]) = (&a[..], &b[..]) {
            return a.and(b).into_iter().collect();
        }
        a.iter().flat_map(|a| b.iter().filter_map(|b| a.and(b))).collect()
    }
}

/// The rows of one or the other.
fn either(mut a: Vec<Row>, mut b: Vec<Row>) -> Vec<Row> {
    if a.len() < b.len() {
        std::mem::swap(&mut a, &mut b);
    }
    a.append(&mut b);
    // What every packet has leaves nothing to choose.
    let wide = |rows: &[Row], row: Row| rows.contains(&row).then(|| vec![row]);
    match a.len() {
        // The longer they are, the rarer this is, and the longer it takes to look.
        ..=MOST => wide(&a, Row::ANY).or_else(|| wide(&a, Row::VAGUE)).unwrap_or(a),
        _ => a,
    }
}

/// The rows of a test that ends as it is wanted to.
fn of_test(test: &Test, want: Want, plan: &Plan) -> Vec<Row> {
    if let Some(outcome) = plan.outcome(test) {
        let (place, bit) = match want {
            Want::Yes => (outcome.yes, 1),
            Want::NotYes => (outcome.yes, 0),
            Want::No => (outcome.no, 1),
            Want::NotNo => (outcome.no, 0),
        };
        return vec![place.map_or(Row::VAGUE, |place| Row::bit(place, bit))];
    }
    let there = |bit| plan.there(test).map_or(Row::VAGUE, |place| Row::bit(place, bit));
    let tests = match want {
        Want::Yes | Want::NotNo => vec![*test],
        Want::No | Want::NotYes => outside(test),
    };
    let rows = tests.iter().filter_map(|test| there(1).and(&Row::within(test, plan)));
    let is_short = matches!(want, Want::NotYes | Want::NotNo);
    rows.chain(is_short.then(|| there(0))).collect()
}
