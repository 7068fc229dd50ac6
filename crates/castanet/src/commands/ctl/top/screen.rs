//! The full screen of `castanet top`.

mod element_page;

use super::rows::View;
use super::{snapshot, text};
use crate::commands::CommandResult;
use crate::commands::ctl::format;
use crate::commands::ctl::instances::Attachment;
use crate::load::io_error_text;
use crate::observe::rates::{ElementRates, Rates};
use crate::observe::snapshot::Snapshot;
use element_page::ElementPage;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use std::time::{Duration, Instant};

/// State of the screen.
struct Screen {
    view: View,
    every: Duration,
    last: Snapshot,
    rates: Option<Rates>,
    rows: Vec<ElementRates>,
    selection: TableState,
    /// The page of an element, if the user looks at one.
    page: Option<ElementPage>,
    /// Whether keys edit the filter.
    filters: bool,
    paused: bool,
    /// Why there are no new rates.
    error: Option<String>,
    title: String,
}

/// Shows an instance until the user ends it.
pub(super) fn run(it: &mut Attachment, every: Duration, view: View) -> CommandResult {
    let last = snapshot(it)?;
    let title = it.instance.as_ref().map(|it| format!("{} (process {})", it.name, it.pid));
    let mut screen = Screen {
        view,
        every,
        last,
        rates: None,
        rows: Vec::new(),
        selection: TableState::default().with_selected(0),
        page: None,
        filters: false,
        paused: false,
        error: None,
        title: title.unwrap_or_default(),
    };
    let mut terminal = ratatui::try_init().map_err(|error| io_error_text(&error))?;
    let shown = screen.run(it, &mut terminal);
    ratatui::restore();
    shown.map_err(Into::into)
}

impl Screen {
    fn run(&mut self, it: &mut Attachment, terminal: &mut DefaultTerminal) -> Result<(), String> {
        /// The first rates come sooner.
        const FIRST: Duration = Duration::from_millis(300);
        let failed = |error: std::io::Error| io_error_text(&error);
        let mut next = Instant::now() + FIRST.min(self.every);
        loop {
            terminal.draw(|frame| self.draw(frame)).map_err(failed)?;
            let wait = next.saturating_duration_since(Instant::now());
            if event::poll(wait).map_err(failed)? {
                if let Event::Key(key) = event::read().map_err(failed)?
                    && key.kind == KeyEventKind::Press
                    && !self.press(key, it)
                {
                    return Ok(());
                }
                continue;
            }
            next = Instant::now() + self.every;
            if !self.paused {
                self.look(it);
            }
            if it.client.is_gone() {
                return Err("the router has ended".into());
            }
        }
    }

    /// Takes a snapshot, and shows the rates since the last one.
    fn look(&mut self, it: &mut Attachment) {
        match snapshot(it) {
            Ok(now) => {
                self.rates = Some(Rates::between(&self.last, &now));
                (self.last, self.error) = (now, None);
                self.sort();
            }
            Err(message) => self.error = Some(message),
        }
        if let Some(page) = &mut self.page {
            page.look(it);
        }
    }

    fn sort(&mut self) {
        self.rows = self.rates.as_ref().map(|rates| self.view.rows(rates)).unwrap_or_default();
        let last = self.rows.len().saturating_sub(1);
        self.selection.select(Some(self.selection.selected().unwrap_or(0).min(last)));
    }

    /// Obeys a key; `false` to end.
    fn press(&mut self, key: KeyEvent, it: &mut Attachment) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.filters {
            self.edit_filter(key.code);
        } else if self.page.is_some() {
            return self.press_on_page(key.code);
        } else {
            return self.press_on_table(key.code, it);
        }
        true
    }

    fn edit_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.filters = false,
            KeyCode::Esc => {
                self.filters = false;
                self.view.filter.clear();
            }
            KeyCode::Backspace => _ = self.view.filter.pop(),
            KeyCode::Char(c) => self.view.filter.push(c),
            _ => {}
        }
        self.sort();
    }

    fn press_on_page(&mut self, key: KeyCode) -> bool {
        let Some(page) = &mut self.page else { return true };
        match key {
            KeyCode::Char('q') => return false,
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.page = None,
            KeyCode::Down | KeyCode::Char('j') => page.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => page.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => page.scroll(20),
            KeyCode::PageUp => page.scroll(-20),
            KeyCode::Char('p') => self.paused = !self.paused,
            _ => {}
        }
        true
    }

    fn press_on_table(&mut self, key: KeyCode, it: &mut Attachment) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Down | KeyCode::Char('j') => self.selection.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.selection.select_previous(),
            KeyCode::PageDown => self.selection.scroll_down_by(20),
            KeyCode::PageUp => self.selection.scroll_up_by(20),
            KeyCode::Home => self.selection.select_first(),
            KeyCode::End => self.selection.select_last(),
            KeyCode::Char('s') => self.view.sort = self.view.sort.next(),
            KeyCode::Char('r') => self.view.reverse = !self.view.reverse,
            KeyCode::Char('f') => self.view.fold = !self.view.fold,
            KeyCode::Char('a') => self.view.all = !self.view.all,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('/') => self.filters = true,
            KeyCode::Char('+') => self.every = (self.every * 2).min(Duration::from_secs(60)),
            KeyCode::Char('-') => self.every = (self.every / 2).max(Duration::from_millis(100)),
            KeyCode::Enter | KeyCode::Right => {
                let row = self.selection.selected().and_then(|at| self.rows.get(at));
                // A folded compound has no page: it is unfolded.
                match row.filter(|row| self.last.find(&row.element).is_some()) {
                    Some(row) => self.page = Some(ElementPage::of(&row.element, &row.class, it)),
                    None => self.view.fold = false,
                }
            }
            _ => {}
        }
        self.sort();
        true
    }

    fn draw(&mut self, frame: &mut Frame) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(3), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        match &self.page {
            Some(page) => page.draw(frame, body, self.rates.as_ref()),
            None => self.draw_table(frame, body),
        }
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let interval = format!("every {} s", self.every.as_secs_f64());
        let paused = if self.paused { "   paused" } else { "" };
        let first = Line::from(vec![
            Span::styled(self.title.clone(), bold),
            Span::raw(format!("   {interval}   sorted by {}{paused}", self.view.sort.name())),
        ]);
        let second = match (&self.error, &self.rates) {
            (Some(error), _) => Line::styled(format::printable(error), Style::new().fg(Color::Red)),
            (None, Some(rates)) => Line::raw(text::loads(rates)),
            (None, None) => Line::raw("Measuring..."),
        };
        let filter = match (self.filters, self.view.filter.as_str()) {
            (true, filter) => Line::styled(format!("Filter: {filter}_"), bold),
            (false, "") => Line::raw(""),
            (false, filter) => Line::raw(format!("Filter: {filter}")),
        };
        vec![first, second, filter]
    }

    fn foot(&self) -> Line<'static> {
        let keys = match (self.filters, &self.page) {
            (true, _) => "Enter keeps the filter, Esc removes it",
            (false, Some(_)) => "Esc back   arrows scroll   p pause   q end",
            (false, None) => {
                "Enter element   s sort   r reverse   f fold   / filter   a all   p pause   +/- interval   q end"
            }
        };
        Line::styled(keys, Style::new().add_modifier(Modifier::DIM))
    }

    fn draw_table(&mut self, frame: &mut Frame, area: Rect) {
        let rows: Vec<[String; 10]> = self.rows.iter().map(text::cells).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(text::TITLES[column].len()) as u16
        };
        let widths: Vec<Constraint> = (0..10)
            .map(|column| match column {
                0 => Constraint::Fill(1),
                _ => Constraint::Length(width(column)),
            })
            .collect();
        let cell = |column: usize, text: String| {
            let line = Line::raw(text);
            Cell::from(if column < 2 { line } else { line.right_aligned() })
        };
        let title = Row::new(text::TITLES.iter().enumerate().map(|(n, it)| cell(n, (*it).into())))
            .style(Style::new().add_modifier(Modifier::BOLD));
        let shown = rows.into_iter().zip(&self.rows).map(|(cells, row)| {
            let cells = cells.into_iter().enumerate().map(|(n, it)| cell(n, it));
            Row::new(cells).style(match () {
                () if row.drops_per_second > 0.0 => Style::new().fg(Color::Red),
                () if row.drops > 0 => Style::new().fg(Color::Yellow),
                () => Style::new(),
            })
        });
        let table = Table::new(shown, widths)
            .header(title)
            .column_spacing(2)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut self.selection);
    }
}
