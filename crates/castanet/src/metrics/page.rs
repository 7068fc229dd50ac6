//! Tables of all metrics, from their declarations.

use super::collection::is_of_device;
use super::names::{INSTANCE_INFO, OF_ELEMENTS, OF_INSTANCE};
use crate::library::rooms;
use castanet_element::handler::{Metric, MetricKind};
use std::collections::BTreeMap;

/// Metrics of classes by name, each with the classes that have it.
fn of_classes() -> BTreeMap<&'static str, (&'static Metric, Vec<&'static str>)> {
    let mut found: BTreeMap<_, (&Metric, Vec<_>)> = BTreeMap::new();
    for class in rooms().into_iter().flat_map(|(_, classes)| classes) {
        for it in (class.metrics)() {
            let entry = found.entry(it.metric.name).or_insert((it.metric, Vec::new()));
            if !entry.1.contains(&class.spec.class) {
                entry.1.push(class.spec.class);
            }
        }
    }
    found
}

fn row(metric: &Metric, is_of_element: bool, classes: &[&str]) -> String {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    };
    let unit = match metric.name.rsplit('_').next() {
        Some("info" | "successful" | "up") => "",
        Some("limited") => "series",
        Some(unit) => unit,
        None => "",
    };
    let mut labels = if is_of_element { vec!["element", "class"] } else { Vec::new() };
    labels.extend(is_of_device(metric).then_some("device"));
    labels.extend(metric.label);
    if metric.name == INSTANCE_INFO.name {
        labels.push("configuration");
    }
    let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
    let help = metric.help.replace('|', "\\|");
    let classes = match classes {
        [] => String::new(),
        classes => format!(" {} |", classes.join(", ")),
    };
    format!("| `{}` | {kind} | {unit} | {labels} | {help} |{classes}\n", metric.full_name())
}

/// The tables, as Markdown.
pub(crate) fn tables() -> String {
    let head = "| name | type | unit | labels | meaning |";
    let line = "|---|---|---|---|---|";
    let mut text = format!("## The instance\n\n{head}\n{line}\n");
    OF_INSTANCE.iter().for_each(|metric| text += &row(metric, false, &[]));
    text += &format!("\n## All elements\n\n{head}\n{line}\n");
    OF_ELEMENTS.iter().for_each(|metric| text += &row(metric, true, &[]));
    text += &format!("\n## Elements of some classes\n\n{head} classes |\n{line}---|\n");
    of_classes().values().for_each(|(metric, classes)| text += &row(metric, true, classes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The lines between which the tables stand.
    const BEGIN: &str = "<!-- castanet elements --metrics: begin -->\n\n";
    const END: &str = "\n<!-- castanet elements --metrics: end -->\n";

    #[test]
    fn the_page_about_metrics_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        let page = std::fs::read_to_string(&path).expect("docs/metrics.md is there");
        let (_, rest) = page.split_once(BEGIN).expect("the tables begin");
        let (found, _) = rest.split_once(END).expect("the tables end");
        let help = "docs/metrics.md is stale: `castanet elements --metrics` prints its tables";
        assert!(found == tables(), "{help}");
    }

    #[test]
    fn names_are_unique_and_those_of_prometheus() {
        for class in rooms().into_iter().flat_map(|(_, classes)| classes) {
            for it in (class.metrics)() {
                let same = of_classes()[it.metric.name].0;
                assert_eq!(same, it.metric, "{}: two metrics of one name", class.spec.class);
            }
        }
        let own = OF_INSTANCE.iter().chain(OF_ELEMENTS).map(|metric| metric.name);
        let mut names: Vec<&str> = own.chain(of_classes().into_keys()).collect();
        let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(names.iter().all(|name| name.bytes().all(is_of_name)), "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
