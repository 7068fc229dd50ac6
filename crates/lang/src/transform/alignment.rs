//! Alignment of packets in memory: the address of their first byte modulo a number.

use std::fmt;

/// A set of addresses at which packets may begin, either as known or as required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Alignment {
    /// Nothing is known or required.
    #[default]
    Unspecified,
    /// `Modulo(m, r)`: the remainder by `m`, which is 2 or more, is `r`.
    Modulo(u32, u32),
    /// Any address: `m` is 1.
    Any,
    /// There are no packets, so every requirement holds.
    Vacuous,
    /// The requirements contradict each other.
    Contradiction,
}

/// Largest modulus; requirements that need a larger one are a contradiction.
const MAX_MODULUS: u32 = 1 << 16;

impl Alignment {
    /// The addresses whose remainder by `modulus` is `remainder`.
    pub fn new(modulus: u32, remainder: u32) -> Self {
        match modulus {
            0 | 1 => Alignment::Any,
            _ => Alignment::Modulo(modulus, remainder % modulus),
        }
    }

    /// Returns modulus and remainder as `AlignmentInfo` and `Align` take them.
    pub fn numbers(self) -> (u32, u32) {
        match self {
            Alignment::Modulo(modulus, remainder) => (modulus, remainder),
            _ => (1, 0),
        }
    }

    /// Returns the alignment `bytes` further on, or back if negative.
    pub fn shift(self, bytes: i64) -> Self {
        match self {
            Alignment::Modulo(modulus, remainder) => {
                let at = (i64::from(remainder) + bytes).rem_euclid(i64::from(modulus));
                Alignment::Modulo(modulus, at as u32)
            }
            other => other,
        }
    }

    /// Whether packets with the alignment `self` have the alignment `required`.
    pub fn satisfies(self, required: Alignment) -> bool {
        match (self, required) {
            (Alignment::Contradiction, _) | (_, Alignment::Contradiction) => false,
            (Alignment::Vacuous, _) => true,
            (_, Alignment::Vacuous) => false,
            (_, Alignment::Unspecified | Alignment::Any) => true,
            (Alignment::Modulo(m, r), Alignment::Modulo(n, s)) => m % n == 0 && r % n == s,
            (_, Alignment::Modulo(..)) => false,
        }
    }

    /// Returns the alignment of packets that have the alignment `self` or `other`.
    pub fn union(self, other: Alignment) -> Alignment {
        match (self, other) {
            (Alignment::Unspecified, known) | (known, Alignment::Unspecified) => known,
            (Alignment::Contradiction, _) | (_, Alignment::Contradiction) => {
                Alignment::Contradiction
            }
            (Alignment::Vacuous, known) | (known, Alignment::Vacuous) => known,
            (Alignment::Any, _) | (_, Alignment::Any) => Alignment::Any,
            (Alignment::Modulo(m, r), Alignment::Modulo(n, s)) => {
                Alignment::new(gcd(gcd(m, n), r.abs_diff(s)), r)
            }
        }
    }

    /// Returns the alignment of packets that satisfy both `self` and `other`.
    pub fn intersection(self, other: Alignment) -> Alignment {
        match (self, other) {
            (Alignment::Contradiction, _) | (_, Alignment::Contradiction) => {
                Alignment::Contradiction
            }
            (Alignment::Unspecified | Alignment::Vacuous, required)
            | (required, Alignment::Unspecified | Alignment::Vacuous) => required,
            (Alignment::Any, required) | (required, Alignment::Any) => required,
            (Alignment::Modulo(m, r), Alignment::Modulo(n, s)) => {
                let common = m / gcd(m, n) * n;
                let fits = |at: &u32| at % n == s;
                match (common <= MAX_MODULUS).then(|| (r..common).step_by(m as usize).find(fits)) {
                    Some(Some(at)) => Alignment::new(common, at),
                    _ => Alignment::Contradiction,
                }
            }
        }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alignment::Modulo(modulus, remainder) => write!(f, "{modulus}/{remainder}"),
            Alignment::Unspecified => f.write_str("nothing known"),
            Alignment::Any => f.write_str("1/0"),
            Alignment::Vacuous => f.write_str("no packets"),
            Alignment::Contradiction => f.write_str("a contradiction"),
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::Alignment::{self, Any, Contradiction, Modulo};

    /// Returns the addresses below 120 that an alignment allows.
    fn addresses(alignment: Alignment) -> Vec<u32> {
        let fits = |at: &u32| match alignment {
            Modulo(m, r) => at % m == r,
            Any => true,
            _ => false,
        };
        (0..120).filter(fits).collect()
    }

    /// All alignments with a modulus of 1 to 6, or 8.
    fn all() -> impl Iterator<Item = Alignment> {
        [1, 2, 3, 4, 5, 6, 8].into_iter().flat_map(|m| (0..m).map(move |r| Alignment::new(m, r)))
    }

    #[test]
    fn alignments_are_sets_of_addresses() {
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let (left, right) = (addresses(a), addresses(b));
            let common: Vec<u32> = left.iter().copied().filter(|at| right.contains(at)).collect();
            match a.intersection(b) {
                Contradiction => assert!(common.is_empty(), "{a} {b}"),
                both => assert_eq!(addresses(both), common, "{a} and {b}"),
            }
            assert_eq!(a.satisfies(b), left.iter().all(|at| right.contains(at)), "{a} {b}");
            let either = addresses(a.union(b));
            assert!(left.iter().chain(&right).all(|at| either.contains(at)), "{a} or {b}");
            // The union is the least alignment that contains both.
            for other in all().filter(|&c| a.satisfies(c) && b.satisfies(c)) {
                assert!(a.union(b).satisfies(other), "{a} or {b}, but also {other}");
            }
        }
    }

    #[test]
    fn shifts_are_positive_or_negative() {
        assert_eq!(Modulo(4, 2).shift(14), Modulo(4, 0));
        assert_eq!(Modulo(4, 0).shift(-14), Modulo(4, 2));
        assert_eq!(Any.shift(3), Any);
    }
}
