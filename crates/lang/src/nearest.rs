//! Finds the nearest known name to a misspelt one, for suggestions.

/// Longer words, in characters, are not compared.
const MAX_LENGTH: usize = 64;

/// Returns the candidate nearest to `word`, if one is near enough for a suggestion.
///
/// A name that differs in case only is nearest; otherwise the smallest Damerau–Levenshtein distance
/// of at most a third of the word's length counts. Among equals the first candidate wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length == 0 || length > MAX_LENGTH {
        return None;
    }
    let farthest = (length / 3).max(1);
    let folded = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = candidate.chars().count();
        if candidate == word || other > MAX_LENGTH || other.abs_diff(length) > farthest {
            continue;
        }
        let distance = if candidate.to_lowercase() == folded {
            0
        } else {
            strsim::damerau_levenshtein(word, candidate)
        };
        // Every one-letter name is near every other one: such a suggestion would be useless.
        let near = distance <= farthest && distance < length;
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the help line that suggests the nearest candidate.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean '{name}'?"))
}
