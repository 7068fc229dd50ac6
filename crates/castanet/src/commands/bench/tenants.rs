//! `castanet bench tenants`.

use super::{run_and_print, title};
use crate::commands::CommandResult;
use crate::library::library;
use castanet_bench::tenants::{
    AttackRecord, CASES, Plan, RateRecord, Record, ShareRecord, TargetRecord, run,
};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::time::Duration;

/// Arguments of `castanet bench tenants`.
#[derive(Args)]
#[command(
    long_about = "Virtual routers of four ports that share one worker, replayed from memory: section 6 of
the paper \"Data plane virtualisation\".

  targets    figure 7: routers in this process, in a process each, and in a sandboxed
             process each (docs/tenants.md), over slot channels; rate, and delay of
             a packet that is alone
  container  figure 8: a process and a sandboxed process, polled and sleeping
  overhead   one router without sharing; with a switch and virtual devices; with
             accounts; with a VLAN tag or VXLAN around each frame
  bursts     figure 9: packets that a router takes before the next has its turn
  routers    figure 10: the rate of one to ten routers together
  devices    overhead and routers between two veth pairs by AF_XDP; each run stands
             between two of that with which it is compared; only by name, and needs
             root
  limit      figures 11 and 12: the share of an account that may have 15 % of the
             processor, for loads of 5000 to 100 000 cycles a packet, in windows
             of 100 ms
  hostile    a tenant that uses a quarter of the processor, beside one that loops,
             floods, keeps packets or flows, or is very large: rate, and the delay
             of 99 % of its packets, against the longest run that it was promised",
    after_help = "Examples:
  castanet bench tenants
  castanet bench tenants --case limit --json"
)]
pub(crate) struct Arguments {
    /// Print records as JSON
    #[arg(long)]
    json: bool,
    /// Only these cases
    #[arg(long = "case", value_delimiter = ',', value_parser = PossibleValuesParser::new(CASES))]
    cases: Vec<String>,
    /// Runs of each side
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of one run
    #[arg(long, default_value_t = 200)]
    milliseconds: u64,
}

/// Measures, and prints the figures.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let plan = Plan {
        cases: arguments.cases.clone(),
        rounds: arguments.rounds.max(1),
        time: Duration::from_millis(arguments.milliseconds.max(1)),
    };
    run_and_print(arguments.json, &heading(), row, |on_record| run(&plan, &library(), on_record))
}

fn heading() -> String {
    title(&format!(
        "{:<9} {:>7} {:<42} {:>10} {:>9} {:>7}",
        "case", "figure", "", "ns/packet", "Mpps", "ratio"
    ))
}

fn row(record: &Record) -> String {
    match record {
        Record::Rate(record) => rate_row(record),
        Record::Share(record) => share_row(record),
        Record::Target(record) => target_row(record),
        Record::Attack(record) => attack_row(record),
    }
}

fn rate_row(r: &RateRecord) -> String {
    let figure = r.figure.map_or(String::new(), |figure| figure.to_string());
    let what = format!("{} x {} packets, {}", r.routers, r.burst, r.path);
    format!(
        "{:<9} {figure:>7} {what:<42} {:>10.2} {:>9.3} {:>7.3}\n",
        r.case, r.ns_per_packet, r.mpps, r.ratio
    )
}

fn target_row(r: &TargetRecord) -> String {
    let polls = if r.polls { ", polled" } else { "" };
    let what = format!("{} x {}{polls}", r.routers, r.target);
    format!(
        "{:<9} {:>7} {what:<42} {:>10} {:>9.3} {:>7.3} delay {:.2} us\n",
        r.case, r.figure, "", r.mpps, r.ratio, r.delay_us
    )
}

fn attack_row(r: &AttackRecord) -> String {
    format!(
        "{:<9} {:>7} {:<42} {:>10} {:>9.4} {:>7.3} lost {}, delay of 99 % {:.0} us (alone {:.0}), longest run {:.0} us of {:.0} promised\n",
        r.case,
        "",
        r.attack,
        "",
        r.rate / 1e6,
        r.ratio,
        r.lost,
        r.p99_us,
        r.p99_alone_us,
        r.longest_run_us,
        r.promised_us
    )
}

fn share_row(r: &ShareRecord) -> String {
    let percent = |part: f64| format!("{:.2} %", part * 100.0);
    format!(
        "{:<9} {:>7} {} cycles a packet: {} (by packets {}; windows {} to {}; neighbour {})\n",
        r.case,
        r.figure,
        r.cycles_per_packet,
        percent(r.share),
        percent(r.share_by_packets),
        percent(r.least),
        percent(r.most),
        percent(r.neighbour)
    )
}
