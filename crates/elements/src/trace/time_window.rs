//! The time that `TimeFilter` passes, and its handlers.

use super::time_span::{Span, seconds};
use castanet_engine::prelude::*;

/// When it begins.
#[derive(Clone, Copy)]
pub(super) enum Begin {
    /// At a time.
    At(i64),
    /// So long after the first packet.
    After(i64),
}

/// When it ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// At a time.
    At(i64),
    /// So long after the first packet.
    After(i64),
    /// So long after it began.
    Interval(i64),
}

/// From when to when, in nanoseconds since 1970.
#[derive(Clone, Local)]
#[local(methods)]
pub struct Window {
    /// What is wanted, until the first packet has come.
    wanted: Option<(Begin, End)>,
    /// Whether the wishes were taken over.
    begun: bool,
    first: i64,
    last: i64,
    /// Whether a packet has come that is not before the end.
    over: bool,
    /// The end as it was when that was said, until the next packet is looked at.
    said: Option<i64>,
}

impl Default for Window {
    fn default() -> Self {
        Window { wanted: None, begun: false, first: 0, last: i64::MAX, over: false, said: None }
    }
}

fn time(text: &str) -> Result<i64, ArgError> {
    Ok(Span::from_arg(text.trim(), &Names::default())?.0)
}

#[handlers]
impl Window {
    /// The first time that passes.
    #[read]
    fn start(&self) -> String {
        seconds(self.first)
    }
    /// The end: the first time that passes no more.
    #[read]
    fn end(&self) -> String {
        seconds(self.last)
    }
    /// From the one to the other.
    #[read]
    fn interval(&self) -> String {
        seconds(self.last.saturating_sub(self.first))
    }
    /// Sets the first time.
    #[write(start)]
    fn set_start(&mut self, text: &str) -> Result<(), ArgError> {
        (self.first, self.begun) = (time(text)?, true);
        Ok(())
    }
    /// Sets the last time.
    #[write(end)]
    fn set_end(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (time(text)?, false);
        Ok(())
    }
    /// Sets the last time, from the first on.
    #[write(interval)]
    fn set_interval(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (self.first.saturating_add(time(text)?), false);
        Ok(())
    }
    /// Moves the last time.
    #[write]
    fn extend_interval(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (self.last.saturating_add(time(text)?), false);
        Ok(())
    }
}

impl Window {
    pub(super) fn new(begin: Begin, end: End) -> Window {
        Window { wanted: Some((begin, end)), ..Window::default() }
    }

    /// Takes over the wishes of the configuration.
    pub(super) fn begin(&mut self, wishes: &Window) {
        if !std::mem::replace(&mut self.begun, true) {
            self.wanted = wishes.wanted;
        }
    }

    /// Takes notice of a packet's time; whether it is the first that is not before the end.
    /// When it comes again, it is so only if the end has moved on.
    pub(super) fn is_first_after(&mut self, time: i64) -> bool {
        if let Some((begin, end)) = self.wanted.take() {
            self.first = match begin {
                Begin::At(first) => first,
                Begin::After(after) => time.saturating_add(after),
            };
            self.last = match end {
                End::At(last) => last,
                End::After(after) => time.saturating_add(after),
                End::Interval(interval) => self.first.saturating_add(interval),
            };
        }
        self.over |= self.said.take().is_some_and(|said| self.last <= said);
        let first = time >= self.last && !std::mem::replace(&mut self.over, true);
        self.said = first.then_some(self.last);
        first
    }

    /// Whether a time lies within.
    pub(super) fn has(&self, time: i64) -> bool {
        (self.first..self.last).contains(&time)
    }
}
