//! `castanet drops`: why packets were dropped.

use super::commands::interval;
use super::format;
use super::instances::Attachment;
use crate::commands::line_editor::pause;
use crate::commands::{CommandResult, write_json, write_out};
use crate::observe::drops::DropCount;
use crate::terminal::{bold, colours_on_stdout};
use clap::Args;
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Arguments of `castanet drops`.
#[derive(Args, Clone)]
pub(crate) struct DropsArguments {
    /// The instance, by its name or the path of its control socket, where there are several
    #[arg(value_name = "NAME|PATH")]
    pub(super) instance: Option<String>,
    /// Seconds over which rates are measured; 0 for counts only
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
    /// Only drops of this element, or for this reason
    #[arg(long, value_name = "ELEMENT|REASON")]
    only: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Drops of an element for a reason, with their rate.
#[derive(Serialize)]
struct DropRow {
    #[serde(flatten)]
    count: DropCount,
    packets_per_second: Option<f64>,
}

/// Prints the drops of an instance, the most frequent of late first.
pub(super) fn run(
    it: &mut Attachment,
    arguments: &DropsArguments,
    json: bool,
    stop: &AtomicBool,
) -> CommandResult {
    let time = interval(arguments.interval, 0.0)?;
    let before: Vec<DropCount> = it.read_json("drop_report")?;
    // Answers may take different times.
    let counted = Instant::now();
    let (mut after, mut seconds) = (before.clone(), None);
    if !time.is_zero() {
        pause(time, stop);
        after = it.read_json("drop_report")?;
        seconds = Some(counted.elapsed().as_secs_f64());
    }
    let mut rows: Vec<DropRow> = after
        .into_iter()
        .filter(|count| match &arguments.only {
            Some(only) => count.element == *only || count.reason == *only,
            None => true,
        })
        .map(|count| row(count, &before, seconds))
        .collect();
    let order = |row: &DropRow| (row.packets_per_second.unwrap_or(0.0), row.count.packets as f64);
    rows.sort_by(|a, b| order(b).partial_cmp(&order(a)).unwrap_or(std::cmp::Ordering::Equal));
    match json || arguments.json {
        true => write_json(&rows),
        false => write_out(None, &text(&rows)),
    }
}

fn row(count: DropCount, before: &[DropCount], seconds: Option<f64>) -> DropRow {
    let is_same = |it: &&DropCount| it.element == count.element && it.reason == count.reason;
    let then = before.iter().find(is_same).map_or(0, |it| it.packets);
    let change = count.packets.checked_sub(then).unwrap_or(count.packets);
    let packets_per_second = seconds.map(|seconds| change as f64 / seconds);
    DropRow { count, packets_per_second }
}

fn text(rows: &[DropRow]) -> String {
    if rows.is_empty() {
        return "No packet was dropped.\n".to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
    let colours = colours_on_stdout();
    let mut text = String::new();
    for DropRow { count, packets_per_second } in rows {
        let title = format!("{} :: {}: {}", count.element, count.class, count.reason);
        let packets = if count.packets == 1 { "packet" } else { "packets" };
        let rate = packets_per_second.map(|rate| format!(", {}/s", format::si(rate)));
        text += &format!(
            "{}  {} {packets}{}\n",
            bold(&format::printable(&title), colours),
            count.packets,
            rate.unwrap_or_default()
        );
        if !count.meaning.is_empty() {
            text += &format!("    {}\n", format::printable(&count.meaning.replace('\n', " ")));
        }
        if let Some(example) = &count.example {
            let ago = format::duration(now.saturating_sub(example.time).max(0) as f64 / 1e9);
            let (packet, length) = (format::printable(&example.text), example.length);
            text += &format!("    {packet}   ({length} bytes, {ago} ago)\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(packets: u64) -> DropCount {
        DropCount {
            element: "ttl".into(),
            class: "DecIPTTL".into(),
            reason: "expired".into(),
            packets,
            meaning: "Packets at their last hop.".into(),
            example: None,
        }
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let row = row(count(30), &[count(10)], Some(2.0));
        assert_eq!(row.packets_per_second, Some(10.0));
        let text = text(&[row]);
        let expected =
            "ttl :: DecIPTTL: expired  30 packets, 10/s\n    Packets at their last hop.\n";
        assert_eq!(text, expected);
        assert_eq!(super::row(count(3), &[count(10)], Some(1.0)).packets_per_second, Some(3.0));
        assert_eq!(super::row(count(3), &[], None).packets_per_second, None);
    }
}
