//! Where in memory packets begin: an address modulo a number.

use std::fmt;

/// What is known of the addresses at which packets begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Alignment {
    /// Nothing is known, and nothing asked for.
    #[default]
    Open,
    /// `Modulo(m, r)`: the remainder by `m`, which is 2 or more, is `r`.
    Modulo(u32, u32),
    /// Any address: `m` is 1.
    Any,
    /// There are no packets, so all that is asked for holds.
    Vacuous,
    /// What is asked for contradicts itself.
    Contradiction,
}

/// Numbers beyond this are of no use to anybody.
const LARGEST: u32 = 1 << 16;

impl Alignment {
    /// An address whose remainder by `modulus` is `remainder`.
    pub fn new(modulus: u32, remainder: u32) -> Self {
        match modulus {
            0 | 1 => Alignment::Any,
            _ => Alignment::Modulo(modulus, remainder % modulus),
        }
    }

    /// The numbers as `AlignmentInfo` and `Align` take them.
    pub fn numbers(self) -> (u32, u32) {
        match self {
            Alignment::Modulo(modulus, remainder) => (modulus, remainder),
            _ => (1, 0),
        }
    }

    /// `bytes` further on, or back if negative.
    pub fn shift(self, bytes: i64) -> Self {
        match self {
            Alignment::Modulo(modulus, remainder) => {
                let at = (i64::from(remainder) + bytes).rem_euclid(i64::from(modulus));
                Alignment::Modulo(modulus, at as u32)
            }
            other => other,
        }
    }

    /// Whether packets that lie as `self` says lie as `wanted` asks.
    pub fn serves(self, wanted: Alignment) -> bool {
        match (self, wanted) {
            (Alignment::Contradiction, _) | (_, Alignment::Contradiction) => false,
            (Alignment::Vacuous, _) => true,
            (_, Alignment::Vacuous) => false,
            (_, Alignment::Open | Alignment::Any) => true,
            (Alignment::Modulo(m, r), Alignment::Modulo(n, s)) => m % n == 0 && r % n == s,
            (_, Alignment::Modulo(..)) => false,
        }
    }

    /// What is known of packets that lie as `self` or as `other` says.
    pub fn either(self, other: Alignment) -> Alignment {
        match (self, other) {
            (Alignment::Open, known) | (known, Alignment::Open) => known,
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

    /// What packets have to be like that are to serve both.
    pub fn both(self, other: Alignment) -> Alignment {
        match (self, other) {
            (Alignment::Contradiction, _) | (_, Alignment::Contradiction) => {
                Alignment::Contradiction
            }
            (Alignment::Open | Alignment::Vacuous, wanted)
            | (wanted, Alignment::Open | Alignment::Vacuous) => wanted,
            (Alignment::Any, wanted) | (wanted, Alignment::Any) => wanted,
            (Alignment::Modulo(m, r), Alignment::Modulo(n, s)) => {
                let common = m / gcd(m, n) * n;
                let fits = |at: &u32| at % n == s;
                match (common <= LARGEST).then(|| (r..common).step_by(m as usize).find(fits)) {
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
            Alignment::Open => f.write_str("nothing known"),
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

    /// Which of the addresses below 120 an alignment allows.
    fn addresses(of: Alignment) -> Vec<u32> {
        let fits = |at: &u32| match of {
            Modulo(m, r) => at % m == r,
            Any => true,
            _ => false,
        };
        (0..120).filter(fits).collect()
    }

    fn all() -> impl Iterator<Item = Alignment> {
        [1, 2, 3, 4, 5, 6, 8].into_iter().flat_map(|m| (0..m).map(move |r| Alignment::new(m, r)))
    }

    #[test]
    fn they_are_sets_of_addresses() {
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let (left, right) = (addresses(a), addresses(b));
            let common: Vec<u32> = left.iter().copied().filter(|at| right.contains(at)).collect();
            match a.both(b) {
                Contradiction => assert!(common.is_empty(), "{a} {b}"),
                both => assert_eq!(addresses(both), common, "{a} and {b}"),
            }
            assert_eq!(a.serves(b), left.iter().all(|at| right.contains(at)), "{a} {b}");
            let either = addresses(a.either(b));
            assert!(left.iter().chain(&right).all(|at| either.contains(at)), "{a} or {b}");
            // The least that has both: nothing smaller has.
            for other in all().filter(|&c| a.serves(c) && b.serves(c)) {
                assert!(a.either(b).serves(other), "{a} or {b}, but also {other}");
            }
        }
    }

    #[test]
    fn shifts_go_both_ways() {
        assert_eq!(Modulo(4, 2).shift(14), Modulo(4, 0));
        assert_eq!(Modulo(4, 0).shift(-14), Modulo(4, 2));
        assert_eq!(Any.shift(3), Any);
    }
}
