//! The table of `castanet top --once`.

use super::rows::View;
use crate::commands::ctl::format::{self, printable, si, si_or_blank};
use crate::observe::rates::{ElementRates, Rates};

/// Titles of the columns.
pub(super) const TITLES: [&str; 10] = [
    "ELEMENT",
    "CLASS",
    "PACKETS/S",
    "BITS/S",
    "DROPS/S",
    "DROPS",
    "NS/PACKET",
    "SHARE",
    "BURST",
    "QUEUE",
];

/// The cells of a row.
pub(super) fn cells(row: &ElementRates) -> [String; 10] {
    let name = match row.argument.as_str() {
        argument if !row.is_end || argument.is_empty() || argument.contains(' ') => {
            row.element.clone()
        }
        argument => format!("{} ({argument})", row.element),
    };
    let share = row.share.map(|share| format!("{:.1} %", 100.0 * share));
    let queue = row.queue.map(|it| match it.capacity {
        Some(capacity) => format!("{}/{capacity}", it.length),
        None => it.length.to_string(),
    });
    let dropped = row.drops > 0;
    [
        printable(&name),
        row.class.clone(),
        si(row.packets_per_second),
        si_or_blank(row.bytes_per_second.map(|bytes| bytes * 8.0)),
        if dropped { si(row.drops_per_second) } else { String::new() },
        if dropped { si(row.drops as f64) } else { String::new() },
        row.nanoseconds_per_packet.map(|it| format!("{it:.1}")).unwrap_or_default(),
        share.unwrap_or_default(),
        row.burst.map(|it| format!("{it:.1}")).unwrap_or_default(),
        queue.unwrap_or_default(),
    ]
}

/// The load of each worker in one line.
pub(super) fn loads(rates: &Rates) -> String {
    let loads = rates.workers.iter().map(|it| format!("{:.0} %", 100.0 * it.load));
    format!("Load of workers: {}", loads.collect::<Vec<_>>().join(", "))
}

/// The whole table.
pub(super) fn table_of(rates: &Rates, view: &View) -> Vec<Vec<String>> {
    let mut rows = vec![TITLES.map(str::to_owned).to_vec()];
    rows.extend(view.rows(rates).iter().map(|row| cells(row).to_vec()));
    rows
}

/// The table with reasons for drops behind it.
pub(super) fn table(rates: &Rates, view: &View) -> String {
    let mut right = [true; 10];
    right[..2].fill(false);
    let mut text = loads(rates) + "\n" + &format::table(&table_of(rates, view), &right);
    for row in &view.rows(rates) {
        for (reason, count) in row.reasons.iter().filter(|it| *it.1 > 0) {
            let rate = row.reasons_per_second.get(reason).copied().unwrap_or(0.0);
            let (name, rate) = (printable(&row.element), si(rate));
            text += &format!("{name} dropped {count} packets: {reason}, {rate}/s\n");
        }
        if let Some(count) = row.kernel_drops.filter(|&count| count > 0) {
            text += &format!("{}: the kernel dropped {count} packets\n", printable(&row.element));
        }
    }
    text
}
