//! Records about elements in which a process of a tenant, which is not trusted, may have written anything.

use crate::observe::drops::DropCount;
use crate::observe::snapshot::{ElementTotals, Snapshot};
use castanet_element::class::{Class, Library};
use castanet_element::fate::LossReason;
use castanet_lang::FlatGraph;
use castanet_tenants::Tenant;
use castanet_tenants::sandbox::printable;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most characters of an argument, and of an example packet.
const LONGEST: (usize, usize) = (16, 1000);
/// The largest count: sums over all elements do not overflow.
const MOST_COUNT: u64 = 1 << 40;
/// The longest time of an element in samples, in nanoseconds.
const LONGEST_TIME: f64 = 1e15;

/// Classes that stand in a process in the place of a device's, and behind it.
const CHANNEL_CLASSES: [&str; 3] = ["FromSlots", "ToVirtualDevice", "ToSlots"];

/// The name and the sentence of all reasons to drop that no class declares.
const OTHER: (&str, &str) = (
    "other",
    "Packets dropped for reasons that the process alone knows: read the handler `drops` of the element.",
);

/// The elements that the process of a tenant has by its configuration: only about these it is believed.
pub(crate) struct OwnElements {
    tenant: String,
    /// By name: the class as the configuration names it, and the class.
    classes: HashMap<String, (String, &'static Class)>,
    /// The classes of channels that the library has.
    channels: Vec<&'static Class>,
}

impl OwnElements {
    /// Those of a tenant with this configuration.
    pub(super) fn of(tenant: &Tenant, graph: &FlatGraph, library: &Library) -> OwnElements {
        let own = graph.elements.iter().map(|it| (it.name.clone(), it.class.as_str()));
        let senders =
            tenant.devices.iter().map(|device| (format!("{}/to_slots", device.name), "ToSlots"));
        let known = own.chain(senders).filter_map(|(name, class)| {
            library.get(class).map(|found| (name, (class.to_owned(), found)))
        });
        OwnElements {
            tenant: tenant.name.clone(),
            classes: known.collect(),
            channels: CHANNEL_CLASSES.iter().filter_map(|class| library.get(class)).collect(),
        }
    }

    /// Makes the name of an element in the process that in the coordinator's tables, and gives its class its name; returns
    /// the class, or `None` if there is no such element.
    fn adopt(&self, name: &mut String, class: &mut String) -> Option<&'static Class> {
        let (own_class, own) = self.classes.get(name.as_str())?;
        *name = format!("{}/{name}", self.tenant);
        let channel = self.channels.iter().find(|it| it.spec.class == class.as_str());
        match channel {
            Some(channel) => Some(channel),
            None => {
                own_class.clone_into(class);
                Some(own)
            }
        }
    }
}

/// A reason to drop that elements of a class have by this name: declared, or an output that nothing is connected to.
fn declared(class: &Class, reason: &str) -> Option<LossReason> {
    if let Some(output) = reason.strip_prefix("output_") {
        let output = output.parse().ok().map(|output: u8| class.loss_reason(output));
        return output.filter(|it| it.name == reason);
    }
    class.loss_reasons(0).map(|(_, it)| it).find(|it| it.name == reason)
}

/// A record about an element.
pub(crate) trait ElementRecord: Clone + Send + 'static {
    /// The handler of a process's router that has such records.
    const HANDLER: &str;

    /// The records of its value; `None` if it is none.
    fn parse(value: &str) -> Option<Vec<Self>>;

    /// The records that can be believed: those about own elements, once each, with bounded values.
    fn accept(records: Vec<Self>, own: &OwnElements) -> Vec<Self>;

    /// The name of the element.
    fn element(&self) -> &str;

    /// Notes the time at which the record came, in nanoseconds since the epoch, if it has one.
    fn set_time(&mut self, _: i64) {}
}

impl ElementRecord for ElementTotals {
    const HANDLER: &str = "snapshot";

    fn parse(value: &str) -> Option<Vec<ElementTotals>> {
        serde_json::from_str(value).ok().map(|snapshot: Snapshot| snapshot.elements)
    }

    fn accept(records: Vec<ElementTotals>, own: &OwnElements) -> Vec<ElementTotals> {
        let mut seen = HashSet::new();
        let accepted = records.into_iter().filter_map(|mut it| {
            let class = own.adopt(&mut it.name, &mut it.class)?;
            if !seen.insert(it.name.clone()) {
                return None;
            }
            let mut drops = BTreeMap::new();
            for (reason, count) in std::mem::take(&mut it.drops) {
                let reason = declared(class, &reason).map_or(OTHER.0.to_owned(), |it| it.name);
                let sum: &mut u64 = drops.entry(reason).or_default();
                *sum = of_count(sum.saturating_add(count));
            }
            it.drops = drops;
            bound(&mut it);
            Some(it)
        });
        accepted.collect()
    }

    fn element(&self) -> &str {
        &self.name
    }

    fn set_time(&mut self, time: i64) {
        self.time = Some(time);
    }
}

/// Bounds the values of totals.
fn bound(it: &mut ElementTotals) {
    it.argument = bounded(&it.argument, LONGEST.0);
    for count in [&mut it.packets, &mut it.input, &mut it.output] {
        *count = of_count(*count);
    }
    it.kernel_drops = it.kernel_drops.map(of_count);
    if let Some(sample) = &mut it.sample {
        for count in [&mut sample.batches, &mut sample.packets, &mut sample.bytes] {
            *count = of_count(*count);
        }
        sample.nanoseconds = sample.nanoseconds.clamp(0.0, LONGEST_TIME);
    }
    if let Some(queue) = &mut it.queue {
        let most = MOST_COUNT as usize;
        queue.length = queue.length.min(most);
        queue.capacity = queue.capacity.map(|capacity| capacity.min(most));
    }
}

impl ElementRecord for DropCount {
    const HANDLER: &str = "drop_report";

    fn parse(value: &str) -> Option<Vec<DropCount>> {
        serde_json::from_str(value).ok()
    }

    fn accept(records: Vec<DropCount>, own: &OwnElements) -> Vec<DropCount> {
        let mut accepted: Vec<DropCount> = Vec::new();
        let mut places = HashMap::new();
        for mut it in records {
            let Some(class) = own.adopt(&mut it.element, &mut it.class) else { continue };
            let reason = declared(class, &it.reason);
            (it.reason, it.meaning) = match reason {
                Some(reason) => (reason.name, reason.doc),
                None => (OTHER.0.to_owned(), OTHER.1.to_owned()),
            };
            it.packets = of_count(it.packets);
            if let Some(example) = &mut it.example {
                example.text = bounded(&example.text, LONGEST.1);
                example.time = example.time.max(0);
            }
            let key = (it.element.clone(), it.reason.clone());
            let place = *places.entry(key).or_insert(accepted.len());
            match accepted.get_mut(place) {
                Some(before) => before.packets = of_count(before.packets + it.packets),
                None => accepted.push(it),
            }
        }
        accepted
    }

    fn element(&self) -> &str {
        &self.element
    }
}

fn of_count(count: u64) -> u64 {
    count.min(MOST_COUNT)
}

/// The first characters of a text, without those that could command a terminal.
fn bounded(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    printable(&text[..end])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;
    use crate::library::library;
    use crate::observe::drops::ExamplePacket;
    use crate::observe::snapshot::SampleTotals;

    /// The elements of a tenant `red`.
    fn own() -> OwnElements {
        let class = |name: &str| library().get(name).unwrap();
        let known = [("in", "FromDevice"), ("c", "Counter"), ("ttl", "DecIPTTL")];
        let known = known.map(|(name, it)| (name.to_owned(), (it.to_owned(), class(it))));
        let channels = CHANNEL_CLASSES.map(class).to_vec();
        OwnElements { tenant: "red".into(), classes: known.into(), channels }
    }

    fn totals(name: &str, class: &str, drops: &[(&str, u64)]) -> ElementTotals {
        let drops = drops.iter().map(|&(reason, n)| (reason.to_owned(), n)).collect();
        ElementTotals { name: name.into(), class: class.into(), drops, ..Default::default() }
    }

    #[test]
    fn totals_are_those_of_own_elements_once_each() {
        let records = vec![
            totals("in", "FromSlots", &[]),
            totals("c", "Anything", &[("no_frame", 3), ("x", 1), ("y", 2), ("output_300", 4)]),
            totals("c", "Counter", &[("no_frame", 9)]),
            totals("ttl", "DecIPTTL", &[("output_7", 5), ("output_07", 6)]),
            totals("blue/c", "Counter", &[]),
        ];
        let accepted = ElementTotals::accept(records, &own());
        let names: Vec<_> = accepted.iter().map(|it| (&*it.name, &*it.class)).collect();
        let wanted = [("red/in", "FromSlots"), ("red/c", "Counter"), ("red/ttl", "DecIPTTL")];
        assert_eq!(names, wanted);
        let drops = |at: usize| accepted[at].drops.clone().into_iter().collect::<Vec<_>>();
        assert_eq!(drops(1), [("no_frame".to_owned(), 3), ("other".to_owned(), 7)]);
        assert_eq!(drops(2), [("other".to_owned(), 6), ("output_7".to_owned(), 5)]);
    }

    #[test]
    fn sums_of_bounded_values_do_not_overflow() {
        let sample = SampleTotals { batches: 1, packets: 1, bytes: u64::MAX, nanoseconds: 1e308 };
        let drops = [("x", u64::MAX), ("y", u64::MAX), ("no_frame", u64::MAX)];
        let mut it = totals("c", "Counter", &drops);
        (it.packets, it.sample, it.argument) = (u64::MAX, Some(sample), "\x1b[2J".repeat(99));
        let accepted = ElementTotals::accept(vec![it], &own());
        assert_eq!((accepted[0].packets, accepted[0].dropped()), (MOST_COUNT, 2 * MOST_COUNT));
        assert_eq!(accepted[0].sample.unwrap().nanoseconds, LONGEST_TIME);
        assert_eq!(accepted[0].argument, "?[2J?[2J?[2J?[2J");
    }

    #[test]
    fn drops_have_reasons_and_sentences_of_their_classes() {
        let drop = |element: &str, reason: &str, packets| DropCount {
            element: element.into(),
            class: "Counter".into(),
            reason: reason.into(),
            packets,
            meaning: "call 555-0100".into(),
            example: Some(ExamplePacket { time: i64::MIN, length: 1, text: "\x1b".into() }),
        };
        let records = vec![
            drop("c", "x", 1),
            drop("c", "no_frame", u64::MAX),
            drop("c", "y", 2),
            drop("blue/c", "no_frame", 1),
        ];
        let accepted = DropCount::accept(records, &own());
        let all: Vec<_> =
            accepted.iter().map(|it| (&*it.element, &*it.reason, it.packets)).collect();
        assert_eq!(all, [("red/c", "other", 3), ("red/c", "no_frame", MOST_COUNT)]);
        assert_eq!(accepted[0].meaning, OTHER.1);
        assert!(accepted[1].meaning.starts_with("Packets for which there was no frame"));
        let example = accepted[0].example.as_ref().unwrap();
        assert_eq!((example.time, &*example.text), (0, "?"));
    }
}
