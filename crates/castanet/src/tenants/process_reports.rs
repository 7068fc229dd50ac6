//! What the processes of tenants report about their elements, for clients that ask about all elements.

use super::configurations::TenantConfigurations;
use super::process_calls::{ProcessReply, call_process};
use crate::observe::drops::DropCount;
use crate::observe::snapshot::{ElementTotals, Snapshot};
use castanet_element::time::Time;
use castanet_io::control::remote::{RemoteReply, read_request};
use castanet_runtime::router::Router;
use castanet_tenants::sandbox::printable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time that processes have to report. Clients that ask about all elements wait no longer for one that does not answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time for which reports serve further clients.
const MAX_AGE: Duration = Duration::from_millis(200);

/// The most reasons to drop packets, of one element.
const MOST_REASONS: usize = 64;
/// The most characters of a name, and of a sentence.
const LONGEST: (usize, usize) = (64, 1000);
/// The largest count: sums of so many do not overflow.
const MOST_COUNT: u64 = 1 << 53;

/// Classes that stand in a process in the place of a device's.
const CHANNEL_CLASSES: [&str; 3] = ["FromSlots", "ToVirtualDevice", "ToSlots"];

/// A record about an element, in which a process that is not trusted has written anything.
pub(crate) trait ElementRecord: Clone + Send + 'static {
    /// The handler of a process's router that has such records.
    const HANDLER: &str;

    /// The records of its value; `None` if it is none.
    fn parse(value: &str) -> Option<Vec<Self>>;

    /// The name of its element, and that of the element's class.
    fn names(&mut self) -> (&mut String, &mut String);

    /// Bounds all else.
    fn bound(&mut self);
}

impl ElementRecord for ElementTotals {
    const HANDLER: &str = "snapshot";

    fn parse(value: &str) -> Option<Vec<ElementTotals>> {
        serde_json::from_str(value).ok().map(|snapshot: Snapshot| snapshot.elements)
    }

    fn names(&mut self) -> (&mut String, &mut String) {
        (&mut self.name, &mut self.class)
    }

    fn bound(&mut self) {
        self.argument = bounded(&self.argument, LONGEST.0);
        let drops = std::mem::take(&mut self.drops).into_iter().take(MOST_REASONS);
        self.drops = drops.map(|(it, count)| (bounded(&it, LONGEST.0), of_count(count))).collect();
        for count in [&mut self.packets, &mut self.input, &mut self.output] {
            *count = of_count(*count);
        }
        self.kernel_drops = self.kernel_drops.map(of_count);
        if let Some(sample) = &mut self.sample {
            for count in [&mut sample.batches, &mut sample.packets, &mut sample.bytes] {
                *count = of_count(*count);
            }
        }
    }
}

impl ElementRecord for DropCount {
    const HANDLER: &str = "drop_report";

    fn parse(value: &str) -> Option<Vec<DropCount>> {
        serde_json::from_str(value).ok()
    }

    fn names(&mut self) -> (&mut String, &mut String) {
        (&mut self.element, &mut self.class)
    }

    fn bound(&mut self) {
        self.reason = bounded(&self.reason, LONGEST.0);
        self.meaning = bounded(&self.meaning, LONGEST.1);
        self.packets = of_count(self.packets);
        if let Some(example) = &mut self.example {
            example.text = bounded(&example.text, LONGEST.1);
            example.time = example.time.max(0);
        }
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

/// The records of one kind that the processes of all tenants have reported, and the clients that wait for them.
pub(crate) struct ProcessReports<T, C> {
    sender: Sender<(u64, String, Option<Vec<T>>)>,
    replies: Receiver<(u64, String, Option<Vec<T>>)>,
    /// The number of the last round of calls.
    round: u64,
    /// The tenants whose processes have not reported in this round.
    missing: BTreeSet<String>,
    /// The end of the round, while it lasts.
    deadline: Option<Time>,
    /// The time at which the last round was over.
    made: Option<Time>,
    /// By tenant, of the last round.
    records: BTreeMap<String, Vec<T>>,
    waiting: Vec<C>,
}

impl<T, C> Default for ProcessReports<T, C> {
    fn default() -> ProcessReports<T, C> {
        let (sender, replies) = channel();
        ProcessReports {
            sender,
            replies,
            round: 0,
            missing: BTreeSet::new(),
            deadline: None,
            made: None,
            records: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }
}

impl<T: ElementRecord, C> ProcessReports<T, C> {
    /// Has a client wait until the processes have reported; returns it if there is nothing to wait for. The handler is
    /// read with this parameter.
    pub(crate) fn wait(
        &mut self,
        router: &mut Router,
        configurations: &TenantConfigurations,
        param: &[u8],
        client: C,
    ) -> Option<C> {
        let now = router.clock().now();
        let is_fresh = self.made.is_some_and(|made| now - made < MAX_AGE);
        if self.deadline.is_none() && !is_fresh {
            self.begin(router, configurations, &read_request(T::HANDLER, param));
        }
        match self.deadline {
            Some(_) => {
                self.waiting.push(client);
                None
            }
            None => Some(client),
        }
    }

    /// Begins a round of calls, of all processes that run.
    fn begin(
        &mut self,
        router: &mut Router,
        configurations: &TenantConfigurations,
        request: &[u8],
    ) {
        self.round += 1;
        self.records.clear();
        self.missing.clear();
        let round = self.round;
        for (number, tenant) in configurations.system().tenants.iter().enumerate() {
            if tenant.process.is_none() || configurations.graph_of(number).elements.is_empty() {
                continue;
            }
            let (sender, name) = (self.sender.clone(), tenant.name.clone());
            // Called by the thread of the process's supervisor, on which long reports cost clients of others nothing.
            let recipient = move |reply: ProcessReply| {
                let text = reply.ok().and_then(|reply| match reply {
                    RemoteReply::Value(text) => Some(text),
                    _ => None,
                });
                let mut records = text.and_then(|text| T::parse(&text));
                records.iter_mut().flatten().for_each(T::bound);
                // The instance may have ended.
                _ = sender.send((round, name, records));
            };
            // Of a process that takes no calls there is nothing to report.
            if call_process(router, &tenant.name, (request, PATIENCE), recipient).is_ok() {
                self.missing.insert(tenant.name.clone());
            }
        }
        let now = router.clock().now();
        match self.missing.is_empty() {
            true => self.made = Some(now),
            false => self.deadline = Some(now + PATIENCE),
        }
    }

    /// Takes reports that have come. Returns the clients that wait no longer, and the time at which the others have
    /// waited for long enough.
    pub(crate) fn step(&mut self, now: Time) -> (Vec<C>, Option<Time>) {
        while let Ok((round, tenant, records)) = self.replies.try_recv() {
            // Late reports are of earlier rounds.
            if round == self.round && self.missing.remove(&tenant) {
                self.records.extend(records.map(|records| (tenant, records)));
            }
        }
        let is_over = |deadline: Time| self.missing.is_empty() || deadline <= now;
        if self.deadline.is_some_and(is_over) {
            (self.deadline, self.made) = (None, Some(now));
            self.missing.clear();
            return (std::mem::take(&mut self.waiting), None);
        }
        (Vec::new(), self.deadline)
    }

    /// The records of the last round about elements that the tenants' configurations have, under the names that these
    /// would have without processes.
    pub(crate) fn records(&self, router: &Router, configurations: &TenantConfigurations) -> Vec<T> {
        let mut all = Vec::new();
        for (tenant, records) in &self.records {
            let Some((number, it)) = configurations.find(tenant) else { continue };
            let graph = configurations.graph_of(number);
            let mut classes: HashMap<String, &str> = HashMap::new();
            for device in &it.devices {
                classes.insert(format!("{}/to_slots", device.name), "ToSlots");
            }
            let own = graph.elements.iter().map(|it| (it.name.clone(), it.class.as_str()));
            classes.extend(own);
            for record in records {
                let mut record = record.clone();
                let (name, class) = record.names();
                let Some(&own) = classes.get(name.as_str()) else { continue };
                if !CHANNEL_CLASSES.contains(&class.as_str()) {
                    own.clone_into(class);
                }
                *name = format!("{tenant}/{name}");
                // The coordinator's own elements of the name, such as `TENANT/process`, come first.
                if router.graph().find(name).is_none() {
                    all.push(record);
                }
            }
        }
        all
    }
}
