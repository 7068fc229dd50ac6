//! The nearest name, for suggestions.

/// Words longer than this are not worth a comparison.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if one is near enough to have been meant.
///
/// Names that differ in case only come first, then the smallest Damerau–Levenshtein distance of at
/// most a third of the word; among equals the first candidate wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let farthest = (length / 3).max(1);
    let folded = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = candidate.chars().count();
        if candidate == word || other > LONGEST || other.abs_diff(length) > farthest {
            continue;
        }
        let distance = if candidate.to_lowercase() == folded {
            0
        } else {
            strsim::damerau_levenshtein(word, candidate)
        };
        // A one-letter name is near to every other one-letter name: that helps nobody.
        let near = distance <= farthest && distance < length;
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// ` 'x'` phrased as a question, for a help line.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean '{name}'?"))
}
