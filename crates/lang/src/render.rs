//! Renders diagnostics as text, in Click's form and in Castanet's.

use std::fmt::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::source::{SourceMap, Span};

/// A longer source line, in bytes, is shown in part.
const MAX_LINE: usize = 160;

pub(crate) fn click(all: &Diagnostics, sources: &SourceMap) -> String {
    let mut out = String::new();
    for one in all {
        let level = if one.severity == Severity::Warning { "warning: " } else { "" };
        line(&mut out, sources, one.span, level, &one.message);
        for (span, note) in &one.notes {
            line(&mut out, sources, *span, if span.is_none() { "  " } else { "" }, note);
        }
    }
    if all.dropped() > 0 {
        let _ = writeln!(out, "{}", more(all));
    }
    out
}

fn line(out: &mut String, sources: &SourceMap, span: Option<Span>, prefix: &str, text: &str) {
    if let Some(span) = span {
        let _ = write!(out, "{}: ", sources.landmark(span));
    }
    let _ = writeln!(out, "{prefix}{}", text.replace('\n', "\n  "));
}

/// Returns the line that counts the diagnostics that were not kept.
fn more(all: &Diagnostics) -> String {
    let left = all.dropped();
    let s = if left == 1 { "" } else { "s" };
    format!("too many errors: {left} more message{s} not shown")
}

pub(crate) fn rich(all: &Diagnostics, sources: &SourceMap, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for one in all {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&groups(one, sources)));
        out.push('\n');
    }
    if all.dropped() > 0 {
        let _ = writeln!(out, "\n{}", more(all));
    }
    out
}

fn groups<'a>(one: &'a Diagnostic, sources: &'a SourceMap) -> Vec<Group<'a>> {
    let level = match one.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(printable(&one.message));
    let mut first = Group::with_title(match one.lint {
        Some(lint) => title.id(lint),
        None => title,
    });
    if let Some(span) = one.span {
        first = excerpt(first, sources, span);
    }
    let mut groups = Vec::new();
    for (span, note) in &one.notes {
        match span {
            None => first = first.element(Level::NOTE.message(printable(note))),
            Some(span) => {
                let group = Group::with_title(Level::NOTE.secondary_title(printable(note)));
                groups.push(excerpt(group, sources, *span));
            }
        }
    }
    if let Some(help) = &one.help {
        first = first.element(Level::HELP.message(printable(help)));
    }
    groups.insert(0, first);
    groups
}

/// Adds the source line of a span with a mark under it.
fn excerpt<'a>(group: Group<'a>, sources: &'a SourceMap, span: Span) -> Group<'a> {
    let location = sources.location(span);
    let line = sources.line(span);
    // A span over many lines is marked at its first line only: the caret shows the position, not
    // the length.
    let whole = sources.slice(line);
    let first = whole.len();
    let start = ((span.start - line.start) as usize).min(first);
    let end = ((span.end - line.start) as usize).clamp(start, first);
    if first <= MAX_LINE {
        let text = whole.to_string();
        let mark = AnnotationKind::Primary.span(start..end);
        let snippet = Snippet::source(text).line_start(location.line as usize).path(location.name);
        return group.element(snippet.annotation(mark));
    }
    let from = floor(whole, start.saturating_sub(MAX_LINE / 3));
    let to = floor(whole, (from + MAX_LINE).min(first)).max(start);
    let text = whole[from..to].to_string();
    let mark = AnnotationKind::Primary.span(start - from..end.min(to) - from);
    let origin = Origin::path(location.name)
        .line(location.line as usize)
        .char_column(location.column as usize);
    let snippet = Snippet::source(text).line_start(location.line as usize);
    group.element(origin).element(snippet.annotation(mark))
}

/// Returns the character boundary at or before an offset.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Replaces control characters, which would move the terminal's cursor.
fn printable(text: &str) -> String {
    let show = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(show).collect()
}
