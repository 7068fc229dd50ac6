//! `castanet bench firewall`: rules by the thousand, beside those that Linux has for them.

mod packets;
mod rules;
mod transfer;

use super::io::cores::Cores;
use super::measure::is_selected;
use castanet_lab::{Lab, require};
use rules::Backend;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Names of the packet filters, in the order of `Backend`; the last has no rules.
pub const PEERS: [&str; 6] =
    ["castanet", "nft-set", "nft", "iptables-nft", "iptables-legacy", "forwarding"];

/// Default numbers of rules.
pub const RULES: [usize; 4] = [10, 1000, 10_000, 100_000];

/// Extent of the measurement.
pub struct Plan {
    /// Packet filters to measure; all of them if it is empty.
    pub peers: Vec<String>,
    /// Numbers of rules.
    pub rules: Vec<usize>,
    /// Runs of each.
    pub rounds: usize,
    /// Length of one run.
    pub time: Duration,
    /// Length of an `iperf3` run in seconds; 0 for no such run.
    pub seconds: u64,
    /// Time limit for loading rules.
    pub patience: Duration,
}

/// Result for one packet filter with one number of rules.
#[derive(Serialize)]
pub struct Record {
    /// Name of the packet filter.
    pub peer: &'static str,
    /// Number of rules.
    pub rules: usize,
    /// Time to load the rules in seconds; for Castanet with the start of the process.
    pub load_seconds: Option<f64>,
    /// Million packets of 64 bytes a second of the core's time.
    pub mpps: Option<f64>,
    /// Throughput of `iperf3` in gigabits a second.
    pub gbits: Option<f64>,
    /// Why something is missing.
    pub missing: Option<String>,
    /// Runs of small packets.
    pub rounds: usize,
    /// Number of runs whose cores had no other load.
    pub undisturbed: usize,
}

/// Measures every packet filter of the plan with each number of rules.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Record>, String> {
    require(&["ethtool", "ip", "iperf3"]).map_err(|error| error.to_string())?;
    let cores = Cores::choose();
    let feed = cores.feed()?;
    let mut records = Vec::new();
    for &rules in &plan.rules {
        for peer in Backend::ALL {
            if is_selected(&plan.peers, peer.name())
                && (rules == plan.rules[0] || peer != Backend::Forwarding)
            {
                progress(&format!("{} with {rules} rules", peer.name()));
                records.push(measure(plan, (cores.forward, feed), peer, rules));
            }
        }
    }
    Ok(records)
}

/// Measures one packet filter with one number of rules.
fn measure(plan: &Plan, cores: (usize, usize), peer: Backend, rules: usize) -> Record {
    let mut record = Record {
        peer: peer.name(),
        rules,
        load_seconds: None,
        mpps: None,
        gbits: None,
        missing: None,
        rounds: plan.rounds,
        undisturbed: 0,
    };
    if let Err(why) = fill(plan, cores, peer, &mut record) {
        record.missing = Some(why);
    }
    record
}

fn fill(
    plan: &Plan,
    cores: (usize, usize),
    peer: Backend,
    record: &mut Record,
) -> Result<(), String> {
    if let Some(program) = peer.program() {
        require(&[program]).map_err(|error| error.to_string())?;
    }
    let lab = Lab::new("rules").map_err(|error| error.to_string())?;
    let file = lab.directory().join("rules");
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    std::fs::write(&file, peer.text(record.rules)).map_err(failed)?;
    let (samples, load) = packets::run(plan, cores, peer, &file)?;
    record.load_seconds = load;
    let (mpps, undisturbed) = super::io::meter::middle(&samples);
    (record.mpps, record.undisturbed) = (Some(mpps), undisturbed);
    if plan.seconds > 0 {
        record.gbits = Some(transfer::run(plan, cores, peer, &file)?);
    }
    Ok(())
}

/// Loads the rules of a file into Linux in a namespace; returns the seconds that it took.
fn load(
    plan: &Plan,
    peer: Backend,
    namespace: &castanet_lab::Namespace,
    file: &Path,
) -> Result<Option<f64>, String> {
    let Some(words) = peer.loader(file) else { return Ok(None) };
    let began = Instant::now();
    let (program, rest) = words.split_first().ok_or("nobody loads it")?;
    match namespace.command(program).args(rest).timeout(plan.patience).check() {
        Ok(_) => Ok(Some(began.elapsed().as_secs_f64())),
        Err(castanet_lab::Error::TimedOut { after, .. }) => {
            Err(format!("not loaded in {} s", after.as_secs()))
        }
        Err(castanet_lab::Error::Failed { printed, .. }) => {
            let reason = printed.lines().next().unwrap_or_default().to_owned();
            Err(format!("not on this kernel: {reason}"))
        }
        Err(error) => Err(error.to_string()),
    }
}
