//! The page of one element: its rates, its drops, and its handlers with their values.

use crate::commands::ctl::format::{printable, si};
use crate::commands::ctl::instances::Attachment;
use crate::library::library;
use crate::observe::rates::Rates;
use castanet_element::handler::HandlerDoc;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

/// Lines of a value that are shown.
const LINES: usize = 8;

/// A page that shows one element.
pub(super) struct ElementPage {
    name: String,
    class: String,
    /// The first sentence of the class's manual page.
    summary: String,
    /// Handlers to read, with their documentation.
    handlers: Vec<HandlerDoc>,
    /// The values of these handlers, or errors.
    values: Vec<Result<String, String>>,
    /// Lines above the first that is shown.
    offset: u16,
}

impl ElementPage {
    /// The page of an element of an instance.
    pub(super) fn of(name: &str, class: &str, it: &mut Attachment) -> ElementPage {
        let library = library();
        let known = library.get(class);
        let mut handlers: Vec<HandlerDoc> = known.map(|it| (it.reads)()).unwrap_or_default();
        handlers.insert(0, HandlerDoc { name: "config", doc: "The element's arguments." });
        let summary = known.map(|it| it.spec.doc.lines().find(|line| !line.trim().is_empty()));
        let summary = summary.flatten().unwrap_or_default().trim().to_owned();
        let (name, class) = (name.to_owned(), class.to_owned());
        let mut page =
            ElementPage { name, class, summary, handlers, values: Vec::new(), offset: 0 };
        page.look(it);
        page
    }

    /// Reads the handlers.
    pub(super) fn look(&mut self, it: &mut Attachment) {
        let values = self
            .handlers
            .iter()
            .map(|handler| it.client.read(&format!("{}.{}", self.name, handler.name)));
        self.values = values.collect();
    }

    /// Moves by so many lines.
    pub(super) fn scroll(&mut self, lines: i16) {
        self.offset = self.offset.saturating_add_signed(lines);
    }

    /// Draws the page.
    pub(super) fn draw(&self, frame: &mut Frame, area: Rect, rates: Option<&Rates>) {
        let lines = self.lines(rates);
        let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(1);
        let offset = self.offset.min(most);
        let page = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((offset, 0));
        frame.render_widget(page, area);
    }

    fn lines(&self, rates: Option<&Rates>) -> Vec<Line<'static>> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let dim = Style::new().add_modifier(Modifier::DIM);
        let title = format!("{} :: {}", printable(&self.name), self.class);
        let mut lines =
            vec![Line::styled(title, bold), Line::styled(self.summary.clone(), dim), Line::raw("")];
        let row = rates.and_then(|all| all.elements.iter().find(|it| it.element == self.name));
        if let Some(row) = row {
            let packets = format!("{} packets, {}/s", row.packets, si(row.packets_per_second));
            let cost = row.nanoseconds_per_packet.map(|it| format!(", {it:.1} ns a packet"));
            let burst = row.burst.map(|it| format!(", bursts of {it:.1}"));
            lines.push(Line::raw(packets + &cost.unwrap_or_default() + &burst.unwrap_or_default()));
            for (reason, count) in row.reasons.iter().filter(|it| *it.1 > 0) {
                let rate = row.reasons_per_second.get(reason).copied().unwrap_or(0.0);
                lines.push(Line::raw(format!("dropped {count}: {reason}, {}/s", si(rate))));
            }
            lines.push(Line::raw(""));
        }
        for (handler, value) in self.handlers.iter().zip(&self.values) {
            let value = value.as_deref().unwrap_or_else(|error| error);
            let mut shown = value.trim_end().lines();
            let first = printable(shown.next().unwrap_or_default());
            lines.push(Line::from(vec![
                Span::styled(format!("{:<20} ", handler.name), bold),
                Span::raw(format!("{first:<24} ")),
                Span::styled(handler.doc.lines().next().unwrap_or_default().to_owned(), dim),
            ]));
            let rest: Vec<&str> = shown.collect();
            let indented = |text: &str| Line::raw(format!("{:21}{}", "", printable(text)));
            lines.extend(rest.iter().take(LINES).map(|text| indented(text)));
            if rest.len() > LINES {
                lines.push(indented(&format!("... {} more lines", rest.len() - LINES)));
            }
        }
        lines
    }
}
