//! Shows an expected and an actual line, one under the other.

/// Two lines of words in common columns, with marks under differences.
pub(super) fn side_by_side(expected: &str, got: &str) -> String {
    if expected.split_whitespace().eq(got.split_whitespace()) {
        // Columns would hide blanks.
        let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
        return format!("  expected {expected}\n  got      {got}\n{:>1$}", '^', 12 + same);
    }
    let words = |line| str::split(line, ' ').collect::<Vec<&str>>();
    let mut lines = ["  expected".to_owned(), "  got     ".to_owned(), "          ".to_owned()];
    for (expected, got) in columns(&words(expected), &words(got)) {
        let width = expected.chars().count().max(got.chars().count());
        let mark = if expected == got { String::new() } else { "^".repeat(width) };
        for (line, word) in lines.iter_mut().zip([expected, got, &mark]) {
            *line += &format!(" {word:width$}");
        }
    }
    lines.map(|line| line.trim_end().to_owned()).join("\n")
}

/// Beyond this product of lengths, words are paired as they come: finding the
/// longest common subsequence takes that much time and memory.
const MOST: usize = 1 << 20;

/// Pairs the words of two lines: those of their longest common subsequence
/// with themselves, and what lies between in order.
fn columns<'a>(left: &[&'a str], right: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let (mut pairs, mut between) = (Vec::new(), (Vec::new(), Vec::new()));
    if left.len() * right.len() > MOST {
        pair_up(&mut pairs, &mut (left.to_vec(), right.to_vec()));
        return pairs;
    }
    let common = common_lengths(left, right);
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            pair_up(&mut pairs, &mut between);
            pairs.push((left[i], right[j]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && common[i + 1][j] >= common[i][j + 1]) {
            between.0.push(left[i]);
            i += 1;
        } else {
            between.1.push(right[j]);
            j += 1;
        }
    }
    pair_up(&mut pairs, &mut between);
    pairs
}

/// For every two tails: the number of words that they have in common, in order.
fn common_lengths(left: &[&str], right: &[&str]) -> Vec<Vec<usize>> {
    let mut common = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            common[i][j] = match left[i] == right[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    common
}

/// Pairs the words between two common words.
fn pair_up<'a>(
    pairs: &mut Vec<(&'a str, &'a str)>,
    (left, right): &mut (Vec<&'a str>, Vec<&'a str>),
) {
    let rows = left.len().max(right.len());
    let word = |side: &[&'a str], n: usize| side.get(n).copied().unwrap_or_default();
    pairs.extend((0..rows).map(|n| (word(left, n), word(right, n))));
    left.clear();
    right.clear();
}

#[cfg(test)]
mod tests {
    use super::side_by_side;

    #[test]
    fn what_differs_is_marked() {
        let expected = "1.0.0.1 > 2.0.0.2 udp ttl 9 len 28 ; paint 3";
        let got = "1.0.0.1 > 2.0.0.2 udp ttl 64 tos 4 len 28 ; paint 0";
        let shown = "  expected 1.0.0.1 > 2.0.0.2 udp ttl 9        len 28 ; paint 3
  got      1.0.0.1 > 2.0.0.2 udp ttl 64 tos 4 len 28 ; paint 0
                                     ^^ ^^^ ^                ^";
        assert_eq!(side_by_side(expected, got), shown);
        let (long, longer) = ("00 ".repeat(20_000), "00 ".repeat(20_001));
        assert!(side_by_side(&long, &longer).ends_with("^^"));
        assert_eq!(side_by_side("2", "3"), "  expected 2\n  got      3\n           ^");
        assert_eq!(side_by_side("a", ""), "  expected a\n  got\n           ^");
        assert_eq!(side_by_side("a  b", "a b"), "  expected a  b\n  got      a b\n             ^");
    }
}
