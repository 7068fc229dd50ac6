//! The RSS redirection table of a device as text, for handlers.

use castanet_element::device::QueueShare;
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_kit::rss::flow_hash;
use castanet_wire::ether_type;
use castanet_wire::headers::frame_payload;
use std::fmt::Write;

/// The queue of each entry; a space follows each, as in FastClick.
pub(super) fn text(table: &[u16]) -> String {
    table.iter().fold(String::new(), |mut text, queue| {
        _ = write!(text, "{queue} ");
        text
    })
}

/// A table of so many entries, each one of the first `queues` queues.
pub(super) fn parse(text: &str, entries: usize, queues: u16) -> Result<Vec<u16>, ArgError> {
    let table = Vec::<u16>::from_arg(text.trim(), &Names::default())?;
    if table.len() != entries {
        let got = table.len();
        return Err(ArgError::new(format!("expected {entries} queues, one an entry, got {got}")));
    }
    match table.iter().find(|&&queue| queue >= queues) {
        Some(queue) => Err(ArgError::new(format!("there is no queue {queue}"))
            .help(format!("there are {queues}, counted from 0"))),
        None => Ok(table),
    }
}

/// Sets a received packet's aggregate to the hash of its flow.
pub(super) fn set_flow_hash(packet: &mut Packet, is_ethernet: bool) {
    let bytes = packet.bytes();
    // The kernel takes one tag off before it looks for the network header.
    let payload = match is_ethernet {
        true => frame_payload(bytes, 1),
        false if bytes.first().is_some_and(|it| it >> 4 == 6) => Some((ether_type::IPV6, 0)),
        false => Some((ether_type::IPV4, 0)),
    };
    let hash = payload.map_or(0, |(kind, at)| flow_hash(kind, &bytes[at..]));
    packet.set_anno_u32(anno::AGGREGATE, hash);
}

/// The queues of these shares, one a line, each with its worker.
pub(super) fn workers(shares: &[QueueShare]) -> String {
    let queues = shares.iter().flat_map(|it| it.queues.clone().map(|queue| (queue, it.worker)));
    queues.fold(String::new(), |mut text, (queue, worker)| {
        _ = writeln!(text, "{queue} {worker}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_all_its_entries_and_no_other_queues() {
        assert_eq!(parse(" 0 1 1 0 ", 4, 2), Ok(vec![0, 1, 1, 0]));
        assert_eq!(text(&[0, 1, 1, 0]), "0 1 1 0 ");
        let message = |text| parse(text, 4, 2).unwrap_err().to_string();
        assert!(message("0 1 1").contains("expected 4 queues, one an entry, got 3"));
        assert!(message("0 1 2 0").contains("there is no queue 2"));
        assert!(parse("0 1 x 0", 4, 2).is_err());
        assert!(parse("", 4, 2).is_err());
    }

    #[test]
    fn each_queue_has_its_worker() {
        let share = |worker, queues| QueueShare { worker, queues, with: Vec::new() };
        assert_eq!(workers(&[share(1, 0..2), share(0, 2..3)]), "0 1\n1 1\n2 0\n");
    }
}
