//! `castanet bench firewall`.

use super::show_progress;
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use castanet_bench::firewall::{PEERS, Plan, RULES, Record, run};
use clap::Args;
use std::time::Duration;

/// Arguments of `castanet bench firewall`.
#[derive(Args)]
#[command(
    long_about = "Rules by the thousand: castanet middlebox beside nftables, iptables and Linux forwarding.

Everybody forwards between veth pairs on one core, with the same rules: all but
the last are about senders and ports that do not come, the last accepts. So who
asks rule by rule asks all. Small packets are UDP of 64 bytes in 65536 flows,
made by the kernel on another core; rates are for a second of the core's time,
and of eight parts of a run the second best counts, where there are packets enough.
iperf3 sends TCP from one host to another in packets of 1500 bytes, which Linux
may join (GRO) before it looks at them.

  castanet         castanet middlebox, AF_XDP in copy mode; it bridges
  nft-set          nftables, the senders and ports in one set, a hash table
  nft              nftables, a rule for each
  iptables-nft     iptables, which makes rules of nftables
  iptables-legacy  iptables with its own part of the kernel
  forwarding       Linux without rules; it routes, as for all but Castanet

It takes root, two cores, iperf3, and for its peers nftables and iptables. What
cannot be measured is named, with the reason. The table is Markdown.",
    after_help = "Examples:
  castanet bench firewall
  castanet bench firewall --peer castanet,nft-set --rules 10,100000 --rounds 9
  castanet bench firewall --json > firewall.json

Exit status: 0 something was measured, 1 nothing could be, 2 the command line is
wrong."
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these
    #[arg(long = "peer", value_delimiter = ',', value_parser = PEERS)]
    peers: Vec<String>,
    /// Numbers of rules
    #[arg(long, value_delimiter = ',', default_values_t = RULES)]
    rules: Vec<usize>,
    /// Runs of each
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Milliseconds of one run with small packets
    #[arg(long, default_value_t = 1000)]
    milliseconds: u64,
    /// Seconds of one run of iperf3; 0 for none
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Seconds that rules may take to load
    #[arg(long, default_value_t = 120)]
    patience: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        peers: arguments.peers.clone(),
        rules: arguments.rules.iter().map(|rules| (*rules).max(1)).collect(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(10)),
        seconds: arguments.seconds,
        patience: Duration::from_secs(arguments.patience.max(1)),
    };
    let done = run(&plan, &mut show_progress);
    show_progress("");
    let records = done?;
    match arguments.json {
        true => write_json(&records),
        false => write_out(None, &report(&plan, &records)),
    }?;
    match records.iter().any(|record| record.mpps.is_some()) {
        true => Ok(()),
        false => Err(CommandError::REPORTED),
    }
}

/// A figure of a record.
type Figure = fn(&Record) -> Option<f64>;

/// Small packets, of which it is known whether they were disturbed.
const PACKETS: &str = "Mpps";

/// The records as tables, and what is missing.
fn report(plan: &Plan, records: &[Record]) -> String {
    let mut text = String::new();
    let columns: [(&str, Figure); 3] = [
        (PACKETS, |record| record.mpps),
        ("Gbit/s", |record| record.gbits),
        ("load, s", |record| record.load_seconds),
    ];
    for (title, value) in columns {
        if records.iter().any(|record| value(record).is_some()) {
            text += &table(plan, records, title, value);
        }
    }
    for record in records {
        if let Some(why) = &record.missing {
            let why = why.lines().collect::<Vec<_>>().join("; ");
            text += &format!("* {} with {} rules: {why}\n", record.peer, record.rules);
        }
    }
    if records.iter().any(|record| record.mpps.is_some() && record.undisturbed == 0) {
        text += "* (!) Other programs used the cores during every run.\n";
    }
    text
}

/// One figure of all peers, by the number of rules.
fn table(plan: &Plan, records: &[Record], title: &str, value: Figure) -> String {
    let rules: Vec<String> = plan.rules.iter().map(|rules| format!(" {rules} rules |")).collect();
    let mut text = format!("| {title} |{}\n|---|{}\n", rules.concat(), "---:|".repeat(rules.len()));
    for peer in PEERS.iter().filter(|peer| records.iter().any(|it| it.peer == **peer)) {
        text += &format!("| {peer} |");
        for rules in &plan.rules {
            let record = records.iter().find(|it| it.peer == *peer && it.rules == *rules);
            let disturbed = |it: &Record| title == PACKETS && it.undisturbed == 0;
            let mark = |it: &Record| if disturbed(it) { " (!)" } else { "" };
            let shown = record.and_then(|it| Some(format!("{}{}", figure(value(it)?), mark(it))));
            text += &format!(" {} |", shown.unwrap_or_else(|| "–".into()));
        }
        text.push('\n');
    }
    text + "\n"
}

/// A number with three digits that count.
fn figure(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
