//! Formats the rates of `castanet run --watch --json` as one line for all devices.

use serde_json::Value;

/// Returns the packets that each device has received and sent in the last second; `None` if the
/// line is no record of rates.
pub(crate) fn device_rates(line: &str) -> Option<String> {
    let record: Value = serde_json::from_str(line).ok()?;
    let seconds = record.get("seconds")?.as_f64()?;
    let rows = record.get("elements")?.as_array()?;
    let mut line_text = format!("{seconds:3.0} s");
    for row in rows.iter().filter(|row| row["class"] == "FromDevice") {
        let device = row["argument"].as_str()?;
        let sender = rows.iter().find(|to| to["class"] == "ToDevice" && to["argument"] == device);
        let rate = |row: &Value| row["packets_per_second"].as_f64().unwrap_or(0.0);
        let sent = sender.map_or(0.0, rate);
        line_text += &format!("   {device} {:>6.0} in {sent:>6.0} out", rate(row));
    }
    let drops: f64 = rows.iter().filter_map(|row| row["drops_per_second"].as_f64()).sum();
    Some(format!("{line_text}   {drops:.0} dropped   packets/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line_and_other_lines_do_not() {
        let record = r#"{"seconds": 2.0, "elements": [
            {"class": "FromDevice", "argument": "lan1", "packets_per_second": 10.4, "drops_per_second": 0.0},
            {"class": "ToDevice", "argument": "lan1", "packets_per_second": 72130.0, "drops_per_second": 3.0}]}"#;
        let line_text = device_rates(record);
        assert_eq!(
            line_text.as_deref(),
            Some("  2 s   lan1     10 in  72130 out   3 dropped   packets/s")
        );
        assert_eq!(device_rates("castanet: running"), None);
        assert_eq!(device_rates("{}"), None);
    }
}
