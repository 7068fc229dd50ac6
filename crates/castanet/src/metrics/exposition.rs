//! The text of metrics, in the two formats that Prometheus reads.

use super::family::{Family, Series};
use castanet_element::handler::{Metric, MetricKind};
use std::fmt::Write;

/// A text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Prometheus's text format 0.0.4.
    Plain,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The name of OpenMetrics at the control socket.
    pub(crate) const OPEN_METRICS: &str = "openmetrics";

    /// OpenMetrics by its name, and else the other one.
    pub(crate) fn named(name: &str) -> Format {
        if name == Format::OPEN_METRICS { Format::OpenMetrics } else { Format::Plain }
    }

    /// The format that a client accepts, by its header `Accept`. Prometheus names OpenMetrics first.
    pub(crate) fn accepted(header: &str) -> Format {
        let accepts = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_type = parts.next() == Some("application/openmetrics-text");
            let is_refused = |part: &str| {
                part.strip_prefix("q=").is_some_and(|q| q.parse().is_ok_and(|q: f32| q <= 0.0))
            };
            is_type && !parts.any(is_refused)
        };
        match header.split(',').map(str::trim).any(accepts) {
            true => Format::OpenMetrics,
            false => Format::Plain,
        }
    }

    /// The header `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The text of all families.
pub(super) fn text(families: &[Family], format: Format) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.series.is_empty()) {
        head(&mut text, family.metric, format);
        let name = family.metric.full_name();
        family.series.iter().for_each(|series| line(&mut text, &name, series));
    }
    if format == Format::OpenMetrics {
        text += "# EOF\n";
    }
    text
}

/// The lines about a family. OpenMetrics names the family of a counter without `_total`.
fn head(text: &mut String, metric: &Metric, format: Format) {
    let name = match format {
        Format::Plain => metric.full_name(),
        Format::OpenMetrics => format!("castanet_{}", metric.name),
    };
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    };
    _ = writeln!(text, "# TYPE {name} {kind}");
    let unit = ["seconds", "bytes"].into_iter().find(|unit| metric.name.ends_with(unit));
    if let (Some(unit), Format::OpenMetrics) = (unit, format) {
        _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let mut help = String::new();
    escape(&mut help, metric.help, format == Format::OpenMetrics);
    _ = writeln!(text, "# HELP {name} {help}");
}

fn line(text: &mut String, name: &str, Series { labels, value }: &Series) {
    text.push_str(name);
    for (n, (label, value)) in labels.iter().enumerate() {
        _ = write!(text, "{}{label}=\"", if n == 0 { '{' } else { ',' });
        escape(text, value, true);
        text.push('"');
    }
    _ = writeln!(text, "{} {value}", if labels.is_empty() { "" } else { "}" });
}

/// Appends a text in which backslashes, ends of lines and, if they are to be, quotation marks are escaped.
fn escape(to: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '"' if quotes => to.push_str("\\\""),
            _ => to.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Metric = Metric::counter("some_bytes", "Bytes of \"some\" \\ packets.");

    #[test]
    fn both_formats_escape_and_name_counters() {
        let mut family = Family::new(&BYTES);
        family.add(vec![("element", "a\"b\\c\nd".into()), ("class", "Café".into())], 7_u64);
        family.add(Vec::new(), f64::NAN);
        let families = [family, Family::new(&BYTES)];
        let values = "castanet_some_bytes_total{element=\"a\\\"b\\\\c\\nd\",class=\"Café\"} 7\n\
                      castanet_some_bytes_total NaN\n";
        let plain = "# TYPE castanet_some_bytes_total counter\n\
                     # HELP castanet_some_bytes_total Bytes of \"some\" \\\\ packets.\n";
        assert_eq!(text(&families, Format::Plain), format!("{plain}{values}"));
        let open = "# TYPE castanet_some_bytes counter\n\
                    # UNIT castanet_some_bytes bytes\n\
                    # HELP castanet_some_bytes Bytes of \\\"some\\\" \\\\ packets.\n";
        assert_eq!(text(&families, Format::OpenMetrics), format!("{open}{values}# EOF\n"));
    }

    #[test]
    fn the_client_chooses_the_format() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0,\
                             application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5";
        assert_eq!(Format::accepted(of_prometheus), Format::OpenMetrics);
        for plain in ["", "*/*", "text/plain", "application/openmetrics-text; q=0, text/plain"] {
            assert_eq!(Format::accepted(plain), Format::Plain, "{plain}");
        }
    }
}
