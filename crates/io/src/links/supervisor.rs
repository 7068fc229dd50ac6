//! The supervisor of interfaces: closes devices of interfaces that are gone, and opens them again.

use super::attachment::Attachment;
use super::registry::{self, SupervisorWaker};
use super::watcher::LinkWatcher;
use super::{LinkState, registry::here};
use crate::device::Device;
use crate::elements::device_selection::SelectedDevice;
use crate::interface::Interface;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time until an interface that could not be opened is tried again, and until changes are looked
/// for where netlink does not report them.
const RETRY: Duration = Duration::from_secs(1);

/// The time for which an interface that is back may be down, and one that is up without a carrier,
/// before that is reported: both are so for a moment when an interface is made.
const GRACE: Duration = Duration::from_millis(500);

/// The time until a worker is asked again that has not executed a command.
const UNSETTLED_RETRY: Duration = Duration::from_millis(200);

/// A change of an interface, for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkNotice {
    /// Whether packets cannot come or go since.
    pub is_outage: bool,
    /// A sentence that begins with the interface's name.
    pub text: String,
}

/// The result of a step.
#[derive(Default, Debug)]
pub struct LinkReport {
    /// Changes since the last step.
    pub notices: Vec<LinkNotice>,
    /// The time until the next step, if it is due without a change.
    pub retry: Option<Duration>,
}

/// Supervises the interfaces of the running elements, on the control thread.
pub struct LinkSupervisor {
    waker: SupervisorWaker,
    /// While there are interfaces, and if the kernel has netlink.
    watcher: Option<LinkWatcher>,
    /// By name, the interfaces of the running elements.
    links: BTreeMap<String, Link>,
    /// Whether an interface, or an attachment, has changed since the last look.
    has_news: Arc<AtomicBool>,
    /// The time of the next look, if it is due without a change.
    next: Option<Instant>,
}

/// An interface, as it was last seen and reported.
struct Link {
    state: LinkState,
    /// The state that was reported last.
    reported: LinkState,
    /// The time of the next step: an attempt to open it, or the end of a grace.
    retry: Option<Instant>,
    /// The last attempt to open it, if that failed.
    failure: Option<OpenFailure>,
}

/// A failed attempt to open an interface.
struct OpenFailure {
    reason: String,
    is_reported: bool,
}

impl LinkSupervisor {
    /// Begins to supervise the interfaces of this network namespace; `wake` has the caller run a step.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> LinkSupervisor {
        let has_news = Arc::new(AtomicBool::new(true));
        let news = Arc::clone(&has_news);
        let waker: SupervisorWaker = Arc::new(move || {
            news.store(true, Ordering::Release);
            wake();
        });
        registry::set_supervisor(Some(Arc::clone(&waker)));
        LinkSupervisor { waker, watcher: None, links: BTreeMap::new(), has_news, next: None }
    }

    /// Looks at all interfaces, if any may have changed. `exchange` has all workers execute the
    /// commands of their attachments, and returns when they have.
    pub fn step(&mut self, exchange: &mut dyn FnMut()) -> LinkReport {
        let is_due = self.next.is_some_and(|at| at <= Instant::now());
        let mut report = LinkReport::default();
        // A step of the control thread is mostly one for others.
        if self.has_news.swap(false, Ordering::Acquire) || is_due {
            report = self.look(exchange);
            self.next = report.retry.map(|time| Instant::now() + time);
        }
        report.retry = self.next.map(|at| at.saturating_duration_since(Instant::now()));
        report
    }

    fn look(&mut self, exchange: &mut dyn FnMut()) -> LinkReport {
        let mut report = LinkReport::default();
        let all = here();
        self.links.retain(|name, _| all.iter().any(|it| it.devname() == name));
        if all.is_empty() {
            self.watcher = None;
            return report;
        }
        let removed = self.removed();
        all.iter().for_each(|it| it.set_watched());
        if all.iter().any(|it| it.is_unsettled()) {
            settle(&all, exchange);
        }
        let mut by_name: BTreeMap<&str, Vec<&Arc<Attachment>>> = BTreeMap::new();
        all.iter().for_each(|it| by_name.entry(it.devname()).or_default().push(it));
        for (name, attachments) in by_name {
            let link = self.links.entry(name.to_owned()).or_insert_with(|| Link::new(name));
            link.step(name, &attachments, &removed, exchange, &mut report.notices);
        }
        let now = Instant::now();
        let retries = self.links.values().filter_map(|it| it.retry);
        let unsettled = all.iter().any(|it| it.is_unsettled()).then_some(UNSETTLED_RETRY);
        let blind = self.watcher.is_none().then_some(RETRY);
        let due = retries.map(|at| at.saturating_duration_since(now)).chain(unsettled).chain(blind);
        report.retry = due.min();
        report
    }

    /// Indices of the interfaces that were removed since the last step; starts to watch at the first.
    fn removed(&mut self) -> Vec<u32> {
        if self.watcher.is_none() {
            let waker = Arc::clone(&self.waker);
            // Without netlink, steps at intervals find what has changed.
            self.watcher = LinkWatcher::new(move || waker()).ok();
        }
        self.watcher.as_ref().map_or_else(Vec::new, LinkWatcher::removed)
    }
}

impl Drop for LinkSupervisor {
    fn drop(&mut self) {
        registry::set_supervisor(None);
    }
}

/// Has workers execute commands, and closes the devices that they have given up.
fn settle<'a>(
    attachments: impl IntoIterator<Item = &'a Arc<Attachment>>,
    exchange: &mut dyn FnMut(),
) {
    exchange();
    attachments.into_iter().for_each(|it| it.close_retired());
    // Frames of the closed devices go back to their pool.
    castanet_packet::Pool::flush_thread();
}

impl Link {
    fn new(name: &str) -> Link {
        // An interface that comes up after the start needs no report.
        Link { state: LinkState::of(name), reported: LinkState::Up, retry: None, failure: None }
    }

    fn step(
        &mut self,
        name: &str,
        attachments: &[&Arc<Attachment>],
        removed: &[u32],
        exchange: &mut dyn FnMut(),
        notices: &mut Vec<LinkNotice>,
    ) {
        let select = |which: &dyn Fn(&Attachment) -> bool| -> Vec<&Arc<Attachment>> {
            attachments.iter().copied().filter(|it| which(it)).collect()
        };
        let lost = select(&|it| it.has_lost(removed));
        if !lost.is_empty() {
            lost.iter().for_each(|it| it.close());
            settle(lost, exchange);
            self.retry = None;
            self.state = LinkState::Gone;
            self.report(notices, || {
                format!(
                    "{name} is gone: removed, or moved to another namespace; packets to it are dropped \
                     until an interface of this name is up"
                )
            });
        }
        let away = select(&|it| it.interface().is_none());
        if away.is_empty() {
            let index = attachments.iter().find_map(|it| it.interface());
            return self.follow(name, index, notices);
        }
        if away.iter().any(|it| it.is_unsettled()) {
            return;
        }
        match LinkState::of(name) {
            LinkState::Gone => {
                self.retry = None;
                self.state = LinkState::Gone;
            }
            LinkState::Down => {
                if self.has_lasted(LinkState::Down) {
                    self.report(notices, || {
                        format!("{name} is back, but down; it is used again when it is up")
                    });
                }
            }
            LinkState::Up | LinkState::NoCarrier => self.attempt(name, &away, exchange, notices),
        }
    }

    /// Notes the state of an interface that is open, and reports it if it is another than before.
    fn follow(&mut self, name: &str, index: Option<u32>, notices: &mut Vec<LinkNotice>) {
        match index.map_or(LinkState::Gone, LinkState::of_index) {
            // It has gone just now: the next look closes it.
            LinkState::Gone => self.retry = Some(Instant::now()),
            LinkState::NoCarrier => {
                if self.has_lasted(LinkState::NoCarrier) {
                    self.report(notices, || {
                        format!("{name} has no carrier; it goes on when it has")
                    });
                }
            }
            state => {
                (self.state, self.retry) = (state, None);
                self.report(notices, || match state {
                    LinkState::Up => format!("{name} is up"),
                    _ => format!("{name} is down; it goes on when it is up"),
                });
            }
        }
    }

    /// Notes a state; returns whether the interface has been in it for longer than a moment.
    fn has_lasted(&mut self, state: LinkState) -> bool {
        let now = Instant::now();
        if self.state != state {
            (self.state, self.retry) = (state, Some(now + GRACE));
        }
        let is_over = self.retry.is_none_or(|at| at <= now);
        if is_over {
            self.retry = None;
        }
        is_over
    }

    /// Reports the state if it is another than was reported last.
    fn report(&mut self, notices: &mut Vec<LinkNotice>, text: impl FnOnce() -> String) {
        if self.reported != self.state {
            self.reported = self.state;
            notices.push(LinkNotice { is_outage: self.state != LinkState::Up, text: text() });
        }
    }

    /// Opens an interface that is back, for all its attachments or for none.
    fn attempt(
        &mut self,
        name: &str,
        away: &[&Arc<Attachment>],
        exchange: &mut dyn FnMut(),
        notices: &mut Vec<LinkNotice>,
    ) {
        let is_retry = self.state == LinkState::Gone;
        if is_retry && self.retry.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let before = (away.iter().find_map(|it| it.ether()), queues(away));
        match reopen(name, away, exchange) {
            Ok(description) => {
                (self.state, self.retry, self.failure) = (LinkState::Up, None, None);
                let now = (away.iter().find_map(|it| it.ether()), queues(away));
                self.report(notices, || {
                    format!("{name} is back: {description}{}", differences(before, now))
                });
            }
            Err(reason) => {
                (self.state, self.retry) = (LinkState::Gone, Some(Instant::now() + RETRY));
                self.note_failure(name, reason, notices);
            }
        }
    }

    /// Reports the error of an attempt at the second time: an interface may be about to go again, or not
    /// be complete.
    fn note_failure(&mut self, name: &str, reason: String, notices: &mut Vec<LinkNotice>) {
        match &mut self.failure {
            Some(failure) if failure.reason == reason => {
                if !std::mem::replace(&mut failure.is_reported, true) {
                    let text = format!("{name} is back, but cannot be used yet: {reason}");
                    notices.push(LinkNotice { is_outage: true, text });
                }
            }
            failure => *failure = Some(OpenFailure { reason, is_reported: false }),
        }
    }
}

/// The Ethernet address and the number of receive queues of a device, as far as they are known.
type Properties = (Option<castanet_wire::MacAddr>, Option<usize>);

/// Number of receive queues that the devices of attachments have had last.
fn queues(attachments: &[&Arc<Attachment>]) -> Option<usize> {
    let receive = attachments.iter().find(|it| it.request().receive.is_some())?;
    Some(receive.forecast()?.queues?.0)
}

/// The differences that a configuration does not follow by itself.
fn differences(before: Properties, now: Properties) -> String {
    let mut text = String::new();
    if let ((Some(then), _), (Some(now), _)) = (before, now)
        && then != now
    {
        let (then, now) = (then.with_colons(), now.with_colons());
        text += &format!(
            "; its address is now {now} and was {then}: reload where the configuration uses it"
        );
    }
    if let ((_, Some(then)), (_, Some(now))) = (before, now)
        && then != now
    {
        text += &format!("; receive queues: {now}, before {then}: reload to distribute them");
    }
    text
}

/// Opens and starts the devices of all attachments, and hands them to the workers; describes one.
fn reopen(
    name: &str,
    away: &[&Arc<Attachment>],
    exchange: &mut dyn FnMut(),
) -> Result<String, String> {
    let mut devices: Vec<Option<SelectedDevice>> = Vec::new();
    for attachment in away {
        devices.push(attachment.open_again().map_err(|error| error.to_string())?);
    }
    for device in devices.iter_mut().flatten() {
        device.start().map_err(|error| error.to_string())?;
    }
    let index = match devices.iter().flatten().next() {
        Some(device) => device.interface().index,
        None => Interface::find(name).map_err(|error| error.to_string())?.index,
    };
    // The line of an element that receives says also how the device sends.
    let lines = devices.iter().flatten().map(Device::describe);
    let line = lines.max_by_key(String::len).unwrap_or_default();
    for (attachment, device) in away.iter().zip(devices) {
        attachment.assign(index, device);
    }
    settle(away.iter().copied(), exchange);
    Ok(line.strip_prefix(&format!("{name}: ")).unwrap_or(&line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::MacAddr;

    #[test]
    fn only_differences_that_a_reload_would_mend_are_reported() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let before = (Some(a), Some(4));
        assert_eq!(differences(before, before), "");
        assert_eq!(differences(before, (None, None)), "");
        assert_eq!(
            differences(before, (Some(b), Some(2))),
            "; its address is now 02:00:00:00:00:02 and was 02:00:00:00:00:01: reload where the \
             configuration uses it; receive queues: 2, before 4: reload to distribute them"
        );
    }
}
