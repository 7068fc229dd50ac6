//! `castanet tenants move` and `key`: moves a tenant to another instance.

use super::live::Target;
use crate::commands::ctl::Attachment;
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::migration::{MigrationKey, MovePhase, MoveProgress};
use crate::terminal::inform;
use clap::Args;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two looks at the progress.
const LOOK: Duration = Duration::from_millis(50);
/// Time after which the progress is shown, and between two lines about it.
const SHOWN: Duration = Duration::from_secs(1);

/// Arguments of `castanet tenants move`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The tenant
    tenant: String,
    /// The address at which the other instance takes tenants in: `listen` of its system file
    #[arg(value_name = "ADDRESS:PORT")]
    to: String,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `castanet tenants key`.
#[derive(Args)]
pub(super) struct KeyArguments {
    /// The file for the key, which must not exist yet
    file: PathBuf,
}

/// Moves a tenant, and says how it went.
pub(super) fn main(arguments: &Arguments) -> CommandResult {
    let mut attachment = arguments.target.attach()?;
    let Arguments { tenant, to, .. } = arguments;
    attachment.client.write("tenant_move", &format!("{tenant} {to}"))?;
    let progress = follow(&mut attachment, tenant)?;
    if arguments.json {
        write_json(&progress)?;
    }
    match progress.phase {
        MovePhase::Done if arguments.json => Ok(()),
        MovePhase::Done => write_out(None, &report(&progress)),
        phase => Err(failure(&progress, phase).into()),
    }
}

/// Waits for the end of a move, and shows how far it is.
fn follow(attachment: &mut Attachment, tenant: &str) -> Result<MoveProgress, CommandError> {
    let mut shown = Instant::now();
    loop {
        let all: Vec<MoveProgress> = attachment.read_json("tenant_moves")?;
        let Some(it) = all.into_iter().find(|it| it.tenant == tenant) else {
            return Err("the instance has forgotten the move".to_owned().into());
        };
        if it.is_over() {
            return Ok(it);
        }
        if shown.elapsed() >= SHOWN {
            shown = Instant::now();
            let MoveProgress { rounds, records, .. } = &it;
            let phase = match it.phase {
                MovePhase::Offer => "the other instance prepares the configuration",
                MovePhase::Stop => "the tenant stands still",
                _ => "copying",
            };
            inform(format_args!("{phase}: {records} records in {rounds} rounds"));
        }
        std::thread::sleep(LOOK);
    }
}

fn failure(progress: &MoveProgress, phase: MovePhase) -> String {
    let MoveProgress { tenant, to, error, .. } = progress;
    let reason = error.as_deref().unwrap_or("for a reason that nobody has said");
    match phase {
        MovePhase::Unknown => format!(
            "{tenant} was handed over, but {to} has not said that it runs: {reason}\n\
             It is held here. If it does not run there, `castanet ctl write {tenant}_account.held false` \
             has it go on; if it does, `castanet tenants remove {tenant}` removes it here."
        ),
        _ => format!("{tenant} was not moved and goes on here: {reason}"),
    }
}

/// The end of a move in words.
fn report(progress: &MoveProgress) -> String {
    let MoveProgress { tenant, to, rounds, records, last_records, bytes, seconds, .. } = progress;
    let stop = progress.stop_seconds.unwrap_or_default() * 1e3;
    let mut text = format!(
        "{tenant} runs at {to}: {records} records, {bytes} bytes, {seconds:.2} s, {rounds} rounds of copying\n\
         it stood still for {stop:.1} ms, for {last_records} records\n"
    );
    // Writing to a string cannot fail.
    for (element, class) in &progress.anew {
        _ = writeln!(text, "began anew: {element} :: {class}");
    }
    for (element, reason) in &progress.lost {
        _ = writeln!(text, "lost state of {element}: {reason}");
    }
    if let Some(error) = &progress.error {
        _ = writeln!(text, "it could not be removed here: {error}");
    }
    text
}

/// Makes a key.
pub(super) fn make_key(arguments: &KeyArguments) -> CommandResult {
    Ok(MigrationKey::make(&arguments.file)?)
}
