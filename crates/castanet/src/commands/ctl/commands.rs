//! Executes the commands of `castanet ctl`.

use super::instances::Attachment;
use super::line::{ClientCommand, ClientLine};
use super::{capture, drops, format, instances, top, trace};
use crate::commands::line_editor::pause;
use crate::commands::middlebox::obey_on;
use crate::commands::{CommandError, CommandResult, write_json, write_out};
use crate::instance::{INSTANCE, InstanceDescription, METRICS};
use crate::load::Origin;
use crate::metrics::Format;
use crate::observe::log::LogLine;
use crate::tenants::sent_text;
use crate::terminal::say_on;
use castanet_runtime::router::ErrorStyle;
use castanet_wire::Timestamp;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Executes a command. `stop` is set when the user wishes that it ends.
pub(super) fn execute(it: &mut Attachment, line: &ClientLine, stop: &AtomicBool) -> CommandResult {
    let json = line.json;
    match &line.command {
        ClientCommand::List => instances::list(json),
        ClientCommand::Info => info(it, json),
        ClientCommand::Read { handler, parameters } => read(it, handler, parameters, json),
        ClientCommand::Write { handler, value } => {
            Ok(it.client.write_data(handler, &value.join(" "))?)
        }
        ClientCommand::Handlers { element } => handlers(it, element.as_deref(), json),
        ClientCommand::Elements => elements(it, json),
        ClientCommand::Config { flat } => {
            let name = if *flat { "flatconfig" } else { "config" };
            show(&it.client.read(name)?, name, json)
        }
        ClientCommand::Reload { file } => reload(it, file.as_deref()),
        ClientCommand::Top(arguments) => top::run(it, arguments, json, stop),
        ClientCommand::Drops(arguments) => drops::run(it, arguments, json, stop),
        ClientCommand::Trace(arguments) => trace::run(it, arguments, json, stop),
        ClientCommand::Capture(arguments) => capture::run(it, arguments, json, stop),
        ClientCommand::Metrics { openmetrics } => {
            it.check()?;
            let format = if *openmetrics { Format::OPEN_METRICS } else { "" };
            show(&it.client.read(format!("{METRICS} {format}").trim_end())?, METRICS, json)
        }
        ClientCommand::Cycles { interval } => cycles(it, *interval, json, stop),
        ClientCommand::Log { follow, lines } => log(it, *follow, *lines, json, stop),
        ClientCommand::Middlebox { words } => middlebox(it, &words.join(" "), json),
        ClientCommand::Stop => {
            it.check()?;
            Ok(it.client.write("terminate", "")?)
        }
    }
}

/// An interval from the command line.
///
/// # Errors
/// It is no time.
pub(super) fn interval(seconds: f64, least: f64) -> Result<Duration, CommandError> {
    let wrong = || CommandError::usage("an interval is a number of seconds".into());
    match seconds.is_finite() && seconds >= 0.0 {
        true => Duration::try_from_secs_f64(seconds.max(least)).map_err(|_| wrong()),
        false => Err(wrong()),
    }
}

fn info(it: &mut Attachment, json: bool) -> CommandResult {
    let description: InstanceDescription = it.read_json(INSTANCE)?;
    if json {
        return write_json(&description);
    }
    let rows = [
        (if description.tenant.is_some() { "tenant" } else { "name" }, description.name),
        ("process", description.pid.to_string()),
        ("configuration", format::printable(&description.configuration)),
        ("up", format::duration(description.uptime)),
        ("workers", description.workers.to_string()),
        ("elements", description.elements.to_string()),
        ("hot swaps", description.replaced.to_string()),
        ("version", description.version),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    write_out(None, &format::table(&rows, &[]))
}

fn show(text: &str, handler: &str, json: bool) -> CommandResult {
    match json {
        true => write_json(&json!({ "handler": handler, "value": text })),
        false => {
            let text = format::printable_lines(text.trim_end_matches('\n'));
            write_out(None, &(text + "\n"))
        }
    }
}

fn read(it: &mut Attachment, handler: &str, parameters: &[String], json: bool) -> CommandResult {
    let path = [&[handler.to_owned()], parameters].concat().join(" ");
    show(&it.client.read(&path)?, handler, json)
}

fn handlers(it: &mut Attachment, element: Option<&str>, json: bool) -> CommandResult {
    let path = element.map_or("handlers".to_owned(), |element| format!("{element}.handlers"));
    let text = it.client.read(&path)?;
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    if json {
        let all: Vec<_> = rows
            .map(|(name, kind)| {
                json!({ "handler": name, "read": kind.contains('r'), "write": kind.contains('w') })
            })
            .collect();
        return write_json(&all);
    }
    let rows: Vec<Vec<String>> =
        rows.map(|(name, kind)| vec![name.to_owned(), kind.to_owned()]).collect();
    write_out(None, &format::table(&rows, &[]))
}

fn elements(it: &mut Attachment, json: bool) -> CommandResult {
    let list = it.client.read("list")?;
    let mut rows = Vec::new();
    for name in list.lines().skip(1) {
        rows.push(vec![name.to_owned(), it.client.read(&format!("{name}.class"))?]);
    }
    match json {
        true => {
            let all = rows.iter().map(|row| json!({ "element": row[0], "class": row[1] }));
            write_json(&all.collect::<Vec<_>>())
        }
        false => write_out(None, &format::table(&rows, &[])),
    }
}

fn reload(it: &mut Attachment, file: Option<&Path>) -> CommandResult {
    it.check()?;
    if let (Some(_), Some(file)) = (it.tenant(), file) {
        // Clients of a tenant have files that the router does not reach.
        return install(it, file);
    }
    let file = match file {
        // The router has another working directory.
        Some(file) => std::path::absolute(file)
            .map_err(|error| crate::load::io_error_text(&error))?
            .display()
            .to_string(),
        None => String::new(),
    };
    Ok(it.client.write_data("reload", &file)?)
}

/// Installs the configuration of a tenant.
fn install(it: &mut Attachment, file: &Path) -> CommandResult {
    let text = sent_text(&Origin::File(file.to_owned()), &[], None, ErrorStyle::Castanet);
    Ok(it.client.write_data("hotconfig", &text.ok_or(CommandError::REPORTED)?)?)
}

/// Counts the cycles of all elements for an interval.
fn cycles(it: &mut Attachment, seconds: f64, json: bool, stop: &AtomicBool) -> CommandResult {
    let time = interval(seconds, 0.0)?;
    let counted = it.client.read("count_cycles")?.trim() == "true";
    if !counted && it.tenant().is_none() {
        it.client.write("count_cycles", "true")?;
    }
    let before = it.client.read("element_cycles.csv")?;
    pause(time, stop);
    let after = it.client.read("element_cycles.csv")?;
    if !counted && it.tenant().is_none() {
        it.client.write("count_cycles", "false")?;
    }
    let mut rows = cycle_rows(&before, &after);
    rows.sort_by_key(|row| std::cmp::Reverse(row.2));
    let all: u64 = rows.iter().map(|row| row.2).sum();
    if json {
        let each = rows.iter().map(|(name, class, cycles, calls)| {
            json!({ "element": name, "class": class, "cycles": cycles, "calls": calls })
        });
        return write_json(&each.collect::<Vec<_>>());
    }
    let title = ["ELEMENT", "CLASS", "CYCLES", "SHARE", "CALLS", "CYCLES/CALL"];
    let mut table = vec![title.map(str::to_owned).to_vec()];
    table.extend(rows.into_iter().map(|(name, class, cycles, calls)| {
        vec![
            name,
            class,
            format::si(cycles as f64),
            format!("{:.1} %", 100.0 * cycles as f64 / all.max(1) as f64),
            format::si(calls as f64),
            (cycles / calls.max(1)).to_string(),
        ]
    }));
    write_out(None, &format::table(&table, &[false, false, true, true, true, true]))
}

/// Name, class, cycles and calls of the elements that ran between two tables of Click's.
fn cycle_rows(before: &str, after: &str) -> Vec<(String, String, u64, u64)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        // task_calls, timer_calls, xfer_calls; any_cycles.
        let calls = number(2) + number(5) + number(8);
        let (name, class) = (cells.first()?, cells.get(1)?);
        Some(((*name).to_owned(), (*class).to_owned(), number(11), calls))
    };
    let earlier: Vec<_> = before.lines().skip(1).filter_map(row).collect();
    let now = after.lines().skip(1).filter_map(row);
    let change = now.map(|(name, class, cycles, calls)| {
        let then = earlier.iter().find(|it| it.0 == name).map_or((0, 0), |it| (it.2, it.3));
        (name, class, cycles.saturating_sub(then.0), calls.saturating_sub(then.1))
    });
    change.filter(|row| row.2 > 0).collect()
}

/// Prints lines of the log.
fn log(
    it: &mut Attachment,
    follow: bool,
    most: usize,
    json: bool,
    stop: &AtomicBool,
) -> CommandResult {
    /// Interval at which new lines are fetched.
    const EVERY: Duration = Duration::from_millis(250);
    let mut lines: Vec<LogLine> = it.read_json("log")?;
    lines.drain(..lines.len().saturating_sub(most));
    let mut last = 0;
    loop {
        for line in &lines {
            last = line.number;
            let text = match json {
                true => serde_json::to_string(line).unwrap_or_default(),
                false => {
                    format!("{} {}", Timestamp(line.time).rfc3339(), format::printable(&line.text))
                }
            };
            if !say_on(&(text + "\n"))? {
                return Ok(());
            }
        }
        if !follow || !pause(EVERY, stop) {
            return Ok(());
        }
        lines = it.read_json(&format!("log {last}"))?;
    }
}

/// Executes a command of the middlebox language on the element that has rules.
fn middlebox(it: &mut Attachment, line: &str, json: bool) -> CommandResult {
    let list = it.client.read("list")?;
    let mut found = Vec::new();
    for name in list.lines().skip(1) {
        if it.client.read(&format!("{name}.class"))? == "Middlebox" {
            found.push(name.to_owned());
        }
    }
    let answer = match &found[..] {
        [element] => obey_on(&mut it.client, element, line)?,
        [] => return Err("this configuration has no Middlebox".to_owned().into()),
        [..] => {
            let list = found.join(", ");
            return Err(format!(
                "this configuration has several: write ELEMENT.command of one of {list}"
            )
            .into());
        }
    };
    match answer.trim_end() {
        "" if !json => Ok(()),
        _ => show(&answer, line, json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_those_of_the_interval() {
        let title = "name,class,...";
        let row = |name: &str, task: u64, transfers: u64, cycles: u64| {
            format!("{name},Counter,{task},0,0,0,0,0,{transfers},0,0,{cycles},0")
        };
        let before = format!("{title}\n{}\n", row("a", 1, 2, 100));
        let after = format!("{title}\n{}\n{}\n", row("a", 2, 4, 160), row("b", 0, 1, 7));
        let expected = [
            ("a".to_owned(), "Counter".to_owned(), 60, 3),
            ("b".to_owned(), "Counter".to_owned(), 7, 1),
        ];
        assert_eq!(cycle_rows(&before, &after), expected);
    }
}
