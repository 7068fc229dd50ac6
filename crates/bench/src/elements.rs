//! `castanet bench elements`: cost of a packet in each element class.

use crate::example::{CostMeasurement, cost};
use castanet_element::class::{Class, Library};
use castanet_lang::nearest;
use glob::Pattern;
use serde::Serialize;
use std::time::Duration;

/// One line of the table.
#[derive(Serialize)]
pub struct Record {
    /// The class.
    pub class: &'static str,
    /// Its room.
    pub room: &'static str,
    /// Number of the example in its documentation that was played, from 1.
    pub example: Option<usize>,
    /// Packets that came to it, or that it made.
    pub packets: u64,
    /// Mean packets in a burst.
    pub burst: Option<f64>,
    /// Ticks of the time-stamp counter a packet.
    pub cycles: Option<f64>,
    /// Nanoseconds a packet.
    pub ns: Option<f64>,
    /// Whether there was a time at which the core was at full speed; these are of that.
    pub undisturbed: Option<bool>,
    /// Why it was not measured.
    pub reason: Option<String>,
}

/// The classes that one of the patterns fits, or all if there are none, with
/// their rooms; a pattern that fits none is an error.
pub fn select(
    rooms: &[(&'static str, &'static [Class])],
    patterns: &[String],
) -> Result<Vec<RoomClass>, String> {
    let every = || rooms.iter().flat_map(|(room, all)| all.iter().map(move |class| (*room, class)));
    let globs = patterns.iter().map(|text| {
        let glob = Pattern::new(text).map_err(|e| format!("`{text}` is no pattern: {e}"))?;
        match every().any(|(_, class)| glob.matches(class.spec.class)) {
            true => Ok(glob),
            false => {
                let near = nearest(text, every().map(|(_, class)| class.spec.class));
                let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                Err(format!("no element class is called {text}{near}"))
            }
        }
    });
    let globs = globs.collect::<Result<Vec<Pattern>, String>>()?;
    let fits = |name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
    Ok(every().filter(|(_, class)| fits(class.spec.class)).collect())
}

/// A room and a class in it.
pub type RoomClass = (&'static str, &'static Class);

/// Measures a class for about as long as `time`.
pub fn measure((room, class): RoomClass, library: &Library, time: Duration) -> Record {
    let record = Record {
        class: class.spec.class,
        room,
        example: None,
        packets: 0,
        burst: None,
        cycles: None,
        ns: None,
        undisturbed: None,
        reason: None,
    };
    match cost(class, library, time) {
        Ok(CostMeasurement { example, packets, burst, cycles, ns, undisturbed }) => Record {
            example: Some(example),
            packets,
            burst: Some(burst),
            cycles: Some(cycles),
            ns: Some(ns),
            undisturbed: Some(undisturbed),
            ..record
        },
        Err(reason) => Record { reason: Some(first_line(&reason)), ..record },
    }
}

/// The first line of what may have several.
fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
