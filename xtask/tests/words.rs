//! The words of the house: retired ones stay retired, sentences have subjects, types are nouns.

use syn::visit::{self, Visit};
use xtask::files::{files, text};

/// Words that no longer stand for anything in this project, and the word to use.
const RETIRED: &[(&str, &str)] = &[
    ("bequeath", "move"),
    ("bequeaths", "moves"),
    ("clerk", "name what it does"),
    ("crew", "workers, receiving threads"),
    ("crews", "workers, receiving threads"),
    ("errand", "command"),
    ("errands", "commands"),
    ("heirs", "name what is carried over"),
    ("ledger", "counters"),
    ("ledgers", "counters"),
    ("luggage", "migration"),
    ("mailbox", "inbox"),
    ("mailboxes", "inboxes"),
    ("overhear", "subscribe"),
    ("overheard", "subscriber"),
    ("prodded", "notified"),
    ("whoever", "name the actor"),
];

/// Words with which no sentence begins: they hide the actor.
const BARE: &[&str] = &["Who", "Whoever", "What", "Whatever"];

/// Type names that say nothing: question words, participles of irregular verbs, single prepositions.
const EMPTY: &[&str] = &[
    "Asked", "Between", "By", "Chosen", "Found", "Given", "Had", "Heard", "Held", "Here", "How",
    "Kept", "Known", "Learnt", "Left", "Lent", "Made", "Met", "Of", "Over", "Own", "Said", "Seen",
    "Sent", "Shown", "Taken", "There", "Told", "Turn", "Way", "Ways", "What", "When", "Where",
    "Which", "Who", "Why", "Wish", "Wishes", "Within", "Written",
];

/// Last words of type names that end as participles do and are nouns of the field all the same.
const NOUNS: &[&str] = &[
    "Accounting",
    "Alignment",
    "Encoding",
    "Feed",
    "Forwarding",
    "Listing",
    "Mapping",
    "Padding",
    "Ping",
    "Processing",
    "Red",
    "Ring",
    "Sampling",
    "Sched",
    "Seed",
    "Setting",
    "Shared",
    "Sharing",
    "Speed",
    "String",
    "Timing",
    "Underscoring",
];

/// Files of the project with these endings but this one, in which the retired words stand.
fn others(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut all = files(folders, endings);
    all.retain(|(path, _)| path != "xtask/tests/words.rs");
    all
}

fn sources() -> Vec<(String, String)> {
    others(&["crates", "xtask", "fuzz"], &["rs", "c", "h"])
}

fn pages() -> Vec<(String, String)> {
    let mut all = others(&["docs", "fuzz"], &["md"]);
    for name in ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"] {
        all.push((name.to_owned(), text(name)));
    }
    all
}

/// The text in a line of a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let starts = ["///", "//!", "//", "/*", "* "];
    let text = starts.iter().find_map(|start| line.strip_prefix(start))?;
    Some(text.strip_prefix(' ').unwrap_or(text).trim_end_matches("*/"))
}

/// Paragraphs of the comments of a source file.
fn comments(text: &str) -> Vec<(usize, String)> {
    paragraphs(text.lines().map(comment))
}

/// Paragraphs of a text in Markdown without code and tables, each with the number of its first
/// line. `None` is a line that has no text.
fn paragraphs<'t>(lines: impl Iterator<Item = Option<&'t str>>) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    for (number, line) in lines.enumerate() {
        let line = line.unwrap_or_default();
        let body = line.trim();
        if body.starts_with("```") {
            fenced = !fenced;
        }
        let skipped = fenced || body.is_empty() || body.starts_with(['|', '#']);
        if skipped || body.starts_with("```") || line.starts_with("    ") {
            open = false;
        } else if open && !body.starts_with(['-', '*']) {
            let (_, paragraph) = all.last_mut().expect("has begun");
            *paragraph += " ";
            *paragraph += body;
        } else {
            all.push((number + 1, body.to_owned()));
            open = true;
        }
    }
    all
}

/// The bare word with which a sentence of a paragraph begins; a question may.
fn bare_subject(paragraph: &str) -> Option<&str> {
    let starts = paragraph.match_indices(". ").map(|(at, _)| at + 2);
    for start in std::iter::once(0).chain(starts) {
        let sentence = paragraph[start..].trim_start_matches(['*', '-', '"', '(', ' ']);
        let word = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let end = sentence.find(['.', '?', ';']).unwrap_or(sentence.len());
        let asks = sentence[end..].starts_with('?');
        if BARE.contains(&word) && !asks {
            let cut = sentence.char_indices().nth(60).map_or(sentence.len(), |(at, _)| at);
            return Some(&sentence[..cut]);
        }
    }
    None
}

/// Words of a text in lower case, identifiers taken apart.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for run in text.split(|c: char| !c.is_alphabetic()) {
        let mut word = String::new();
        for c in run.chars() {
            if c.is_uppercase() && word.chars().last().is_some_and(char::is_lowercase) {
                all.push(std::mem::take(&mut word).to_lowercase());
            }
            word.push(c);
        }
        if !word.is_empty() {
            all.push(word.to_lowercase());
        }
    }
    all
}

/// Retired words of a text, a line each.
fn retired(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in words(line) {
            if let Some((_, instead)) = RETIRED.iter().find(|(it, _)| *it == word) {
                found.push(format!("{path}:{}: `{word}`: {instead}", number + 1));
            }
        }
    }
    found
}

/// Types whose names are no nouns.
struct TypeNames<'a> {
    path: &'a str,
    found: Vec<String>,
}

impl TypeNames<'_> {
    fn look(&mut self, name: &syn::Ident) {
        let name = name.to_string();
        let starts: Vec<usize> =
            name.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect();
        let last = starts.last().map_or(name.as_str(), |&at| &name[at..]);
        let participle = last.len() > 3 && (last.ends_with("ed") || last.ends_with("ing"));
        if EMPTY.contains(&name.as_str()) || participle && !NOUNS.contains(&last) {
            self.found.push(format!("{}: `{name}` does not say what it holds", self.path));
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Struct(it) => self.look(&it.ident),
            syn::Item::Enum(it) => self.look(&it.ident),
            syn::Item::Trait(it) => self.look(&it.ident),
            syn::Item::Type(it) => self.look(&it.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

fn type_names(path: &str, text: &str) -> Vec<String> {
    let file = syn::parse_file(text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut names = TypeNames { path, found: Vec::new() };
    names.visit_file(&file);
    names.found
}

#[test]
fn retired_words_stay_retired() {
    let all = sources().into_iter().chain(pages());
    let found: Vec<String> = all.flat_map(|(path, text)| retired(&path, &text)).collect();
    assert!(found.is_empty(), "{} retired words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn sentences_name_their_subjects() {
    let mut found = Vec::new();
    let comments = sources().into_iter().map(|(path, text)| (path, comments(&text)));
    let pages = pages().into_iter().map(|(path, text)| (path, paragraphs(text.lines().map(Some))));
    for (path, paragraphs) in comments.chain(pages) {
        for (line, paragraph) in paragraphs {
            let bare = bare_subject(&paragraph);
            found.extend(bare.map(|sentence| format!("{path}:{line}: {sentence}")));
        }
    }
    assert!(found.is_empty(), "{} bare subjects:\n{}", found.len(), found.join("\n"));
}

#[test]
fn types_are_nouns() {
    let code = sources().into_iter().filter(|(path, _)| path.ends_with(".rs"));
    let found: Vec<String> = code.flat_map(|(path, text)| type_names(&path, &text)).collect();
    assert!(found.is_empty(), "{} type names:\n{}", found.len(), found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    assert_eq!(retired("a.rs", "fn run_errand(mail_box: MyCrew) {}").len(), 2);
    assert_eq!(comments("/// One\n/// two.\nfn f() {}\n// Three.").len(), 2);
    let bare = |text: &str| comments(text).iter().any(|(_, it)| bare_subject(it).is_some());
    assert!(bare("/// What a burst costs."));
    assert!(bare("// The worker runs. Whoever waits\n// is woken."));
    assert!(!bare("/// Whether it runs. What for? Whose it is."));
    assert_eq!(type_names("a.rs", "struct Way; enum RowsCopied {} trait Ring {}").len(), 2);
}
