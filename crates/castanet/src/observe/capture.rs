//! Captures: packets at places of the graph, as clients get them.

use super::packet::{FilterText, PacketRecord};
use castanet_element::error::ArgError;
use castanet_element::exec::{CapturePlace, CaptureSide, CapturedDrops, CapturedPacket};
use castanet_runtime::router::{CapturePlaceName, CaptureProgress, CaptureRequest, Router};
use serde::{Deserialize, Serialize};

/// A request for a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaptureQuery {
    #[serde(flatten)]
    pub(crate) filter: FilterText,
    /// The places: `ELEMENT`, `ELEMENT[OUTPUT]`, `[INPUT]ELEMENT` or an interface. Where packets enter
    /// and leave the graph if there are none, and no drops.
    #[serde(default)]
    pub(crate) places: Vec<String>,
    /// Whether it is about drops.
    #[serde(default)]
    pub(crate) dropped: bool,
    /// Only drops of these elements; of all if there are none.
    #[serde(default)]
    pub(crate) elements: Vec<String>,
    /// Only drops for this reason.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// Number of packets; no limit if not given.
    #[serde(default)]
    pub(crate) packets: Option<u64>,
    /// Bytes of each packet that are copied.
    pub(crate) snap_len: usize,
}

/// The packets of a capture since it was read last.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CaptureAnswer {
    pub(crate) packets: Vec<CaptureRecord>,
    /// Whether all packets that were asked for are there.
    pub(crate) is_full: bool,
    /// Packets for which workers had no time.
    pub(crate) missed: u64,
    /// Packets for which too many others waited.
    pub(crate) overflowed: u64,
}

/// A captured packet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CaptureRecord {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    pub(crate) worker: usize,
    pub(crate) element: String,
    pub(crate) class: String,
    #[serde(flatten)]
    pub(crate) place: PlaceRecord,
    pub(crate) packet: PacketRecord,
}

/// Place of a captured packet at its element.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "lowercase")]
pub(crate) enum PlaceRecord {
    /// It came in.
    Input { port: usize },
    /// It left.
    Output { port: usize },
    /// It was dropped.
    Dropped { reason: String, meaning: String },
}

/// Starts, reads or stops a capture: `start QUERY`, `next NUMBER`, `stop NUMBER`. The value is JSON. With
/// the word `bytes` behind the number, packets have no text.
///
/// # Errors
/// The words are wrong, there is no such capture, or the router refuses it.
pub(crate) fn command(router: &mut Router, text: &str) -> Result<String, ArgError> {
    super::session_command("capture", text, |verb, rest| match verb {
        "start" => start(router, rest),
        "next" | "stop" => {
            let (number, has_text) = match rest.strip_suffix(" bytes") {
                Some(number) => (super::session(number)?, false),
                None => (super::session(rest)?, true),
            };
            let progress = match verb {
                "next" => router.read_capture(number)?,
                _ => router.end_capture(number)?,
            };
            super::to_json(&answer(&progress, has_text))
        }
        _ => Err(super::unknown_verb("capture")),
    })
}

fn start(router: &mut Router, text: &str) -> Result<String, ArgError> {
    let query: CaptureQuery = super::query(text)?;
    let places = query.places.iter().map(|text| place_name(text)).collect::<Result<_, _>>()?;
    let (elements, reason) = (query.elements, query.reason);
    let request = CaptureRequest {
        filter: query.filter.filter()?,
        places,
        drops: query.dropped.then_some(CapturedDrops { elements, reason }),
        packets: query.packets.unwrap_or(u64::MAX),
        snap_len: query.snap_len.min(super::MAX_SNAP_LEN),
    };
    super::to_json(&super::SessionNumber { session: router.start_capture(request)? })
}

fn answer(progress: &CaptureProgress, has_text: bool) -> CaptureAnswer {
    CaptureAnswer {
        packets: progress.packets.iter().map(|packet| record(packet, has_text)).collect(),
        is_full: progress.is_full,
        missed: progress.missed,
        overflowed: progress.overflowed,
    }
}

fn record(it: &CapturedPacket, has_text: bool) -> CaptureRecord {
    let place = match &it.place {
        CapturePlace::Input(port) => PlaceRecord::Input { port: *port },
        CapturePlace::Output(port) => PlaceRecord::Output { port: *port },
        CapturePlace::Dropped(reason) => {
            PlaceRecord::Dropped { reason: reason.name.clone(), meaning: reason.doc.clone() }
        }
    };
    CaptureRecord {
        time: it.time.0,
        worker: it.worker,
        element: it.element.clone(),
        class: it.class.clone(),
        place,
        packet: match has_text {
            true => PacketRecord::of(&it.packet),
            false => PacketRecord::without_text(&it.packet),
        },
    }
}

/// The place that a person means.
fn place_name(text: &str) -> Result<CapturePlaceName, ArgError> {
    let wrong = || {
        ArgError::new(format!("'{text}' is no place"))
            .help("write ELEMENT, ELEMENT[OUTPUT], [INPUT]ELEMENT or an interface")
    };
    let port = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    let text = text.trim();
    let (name, side, port) = if let Some(rest) = text.strip_prefix('[') {
        let (input, name) = rest.split_once(']').ok_or_else(wrong)?;
        (name.trim(), Some(CaptureSide::Input), Some(port(input)?))
    } else if let Some(rest) = text.strip_suffix(']') {
        let (name, output) = rest.rsplit_once('[').ok_or_else(wrong)?;
        (name.trim(), Some(CaptureSide::Output), Some(port(output)?))
    } else {
        (text, None, None)
    };
    match name.is_empty() || name.contains(['[', ']']) {
        true => Err(wrong()),
        false => Ok(CapturePlaceName { name: name.to_owned(), side, port }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_elements_and_their_ports() {
        let place = |text: &str| place_name(text).map(|it| (it.name, it.side, it.port)).ok();
        let named = |side, port| Some(("q/a".to_owned(), side, port));
        assert_eq!(place("q/a"), named(None, None));
        assert_eq!(place(" q/a [2]"), named(Some(CaptureSide::Output), Some(2)));
        assert_eq!(place("[0] q/a"), named(Some(CaptureSide::Input), Some(0)));
        for wrong in ["", "[0]", "[x]q", "q[", "q]", "q[-1]", "[0]q[1]", "q[99999999999999999999]"]
        {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
