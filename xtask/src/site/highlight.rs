//! Code in HTML: the words of the Click language, with links from classes to their pages.

use castanet_lang::print::escape;
use std::fmt::Write;

/// Words of the language.
const KEYWORDS: &[&str] = &["elementclass", "require", "provide", "define", "input", "output"];

/// Marks with which the lines of an example begin, beside its configuration.
const EXAMPLE: &[&str] = &["> ", "< ", "= ", "! ", "~ ", "+ "];

/// Returns commands with their output as HTML: prompts and comments differ from the commands.
pub(super) fn console(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("$ ") {
        Some(command) => format!("<i class=\"mark\">$ </i><b>{}</b>\n", escape(command)),
        None if line.starts_with('#') => format!("<i class=\"comment\">{}</i>\n", escape(line)),
        None => escape(line) + "\n",
    };
    text.lines().map(line).collect()
}

/// Returns a configuration or an example as HTML; `page` gives the link of a class's page.
pub(super) fn highlight(text: &str, page: &dyn Fn(&str) -> Option<String>) -> String {
    let mut html = String::new();
    let mut rest = text;
    let mut at_line_start = true;
    while !rest.is_empty() {
        if at_line_start && EXAMPLE.iter().any(|mark| rest.starts_with(mark)) {
            let end = rest.find('\n').unwrap_or(rest.len());
            let (mark, line) = rest[..end].split_at(2);
            _ = write!(html, "<i class=\"mark\">{}</i>{}", escape(mark), escape(line));
            rest = &rest[end..];
            continue;
        }
        let (kind, len) = token(rest);
        let (token, after) = rest.split_at(len);
        match kind {
            Token::Word => match page(token) {
                Some(link) => _ = write!(html, "<a href=\"{link}\">{token}</a>"),
                None if KEYWORDS.contains(&token) => _ = write!(html, "<b>{token}</b>"),
                None => html += &escape(token),
            },
            Token::Comment => _ = write!(html, "<i class=\"comment\">{}</i>", escape(token)),
            Token::String => _ = write!(html, "<i class=\"string\">{}</i>", escape(token)),
            Token::Arrow => _ = write!(html, "<b>{}</b>", escape(token)),
            Token::Other => html += &escape(token),
        }
        at_line_start = token.ends_with('\n');
        rest = after;
    }
    html
}

/// Kinds of pieces of a configuration.
enum Token {
    Word,
    Comment,
    String,
    Arrow,
    Other,
}

/// Returns the kind and the length in bytes of the first token of a text that is not empty.
fn token(text: &str) -> (Token, usize) {
    let until = |end: &str, from: usize| {
        text.get(from..).and_then(|rest| rest.find(end)).map_or(text.len(), |at| from + at)
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '$' | '/');
    if text.starts_with("//") {
        return (Token::Comment, until("\n", 2));
    }
    if text.starts_with("/*") {
        return (Token::Comment, (until("*/", 2) + 2).min(text.len()));
    }
    if text.starts_with('"') {
        return (Token::String, (until("\"", 1) + 1).min(text.len()));
    }
    if let Some(arrow) = ["->", "=>", "::"].into_iter().find(|it| text.starts_with(it)) {
        return (Token::Arrow, arrow.len());
    }
    // A word ends before a comment: `a//b`.
    let word = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let word = text[..word].find("//").unwrap_or(word);
    if word > 0 {
        return (Token::Word, word);
    }
    (Token::Other, text.chars().next().map_or(1, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_links_and_packets_are_not() {
        let page = |class: &str| (class == "Queue").then(|| "Queue.html".to_owned());
        let html = highlight("in -> Queue(\"<1>\") // Queue\n> in Queue\n", &page);
        assert_eq!(
            html,
            "in <b>-&gt;</b> <a href=\"Queue.html\">Queue</a>\
             (<i class=\"string\">&quot;&lt;1&gt;&quot;</i>) <i class=\"comment\">// Queue</i>\n\
             <i class=\"mark\">&gt; </i>in Queue\n"
        );
    }

    #[test]
    fn open_comments_and_strings_end_with_the_text() {
        for text in ["/* open", "/*", "\"open", "\"", "a//", "é"] {
            assert!(!highlight(text, &|_| None).is_empty());
        }
    }
}
