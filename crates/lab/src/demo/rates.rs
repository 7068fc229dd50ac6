//! The live rates of `castanet run --watch --json`, as one line for all devices.

use serde_json::Value;

/// What each device received and sent in the last second; `None` if the line is something else.
pub(crate) fn of_devices(line: &str) -> Option<String> {
    let look: Value = serde_json::from_str(line).ok()?;
    let seconds = look.get("seconds")?.as_f64()?;
    let rows = look.get("elements")?.as_array()?;
    let mut said = format!("{seconds:3.0} s");
    for row in rows.iter().filter(|row| row["class"] == "FromDevice") {
        let device = row["argument"].as_str()?;
        let sender = rows.iter().find(|to| to["class"] == "ToDevice" && to["argument"] == device);
        let rate = |row: &Value| row["packets_per_second"].as_f64().unwrap_or(0.0);
        let sent = sender.map_or(0.0, rate);
        said += &format!("   {device} {:>6.0} in {sent:>6.0} out", rate(row));
    }
    let drops: f64 = rows.iter().filter_map(|row| row["drops_per_second"].as_f64()).sum();
    Some(format!("{said}   {drops:.0} dropped   packets/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_becomes_a_line_and_other_lines_do_not() {
        let look = r#"{"seconds": 2.0, "elements": [
            {"class": "FromDevice", "argument": "lan1", "packets_per_second": 10.4, "drops_per_second": 0.0},
            {"class": "ToDevice", "argument": "lan1", "packets_per_second": 72130.0, "drops_per_second": 3.0}]}"#;
        let said = of_devices(look);
        assert_eq!(
            said.as_deref(),
            Some("  2 s   lan1     10 in  72130 out   3 dropped   packets/s")
        );
        assert_eq!(of_devices("castanet: running"), None);
        assert_eq!(of_devices("{}"), None);
    }
}
