//! Checks that a tenant's configuration stays within its bounds, and finds its devices.

use crate::system::{Tenant, VirtualDevice};
use castanet_element::args::Names;
use castanet_element::class::{Class, Library, Role};
use castanet_element::element::Facts;
use castanet_lang::{Diagnostic, Diagnostics, FlatElement, FlatGraph, args, nearest};

/// Keywords of `FromDevice` and `ToDevice` that are about the physical device alone.
const PHYSICAL_KEYWORDS: &[&str] = &[
    "PROMISC",
    "SNIFFER",
    "METHOD",
    "CAPTURE",
    "BURST",
    "HEADROOM",
    "TIMESTAMP",
    "QUEUE",
    "N_QUEUES",
    "BUSY_POLL",
    "IQUEUE",
    "BLOCKING",
    "BYPASS_QDISC",
    "DEBUG",
    "RX_THREADS",
];

/// The handler that moves tasks to another worker.
const HOME_THREAD: &str = "home_thread";

/// Direction of a device element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Packets enter the tenant.
    Receive,
    /// Packets leave the tenant.
    Send,
}

/// An element of a tenant that is an end of a virtual device.
pub(crate) struct DeviceEnd {
    /// Its index in the tenant's graph.
    pub(crate) element: usize,
    /// Its direction.
    pub(crate) direction: Direction,
    /// Index of the virtual device.
    pub(crate) device: usize,
}

/// The checks of one tenant.
pub(crate) struct Check<'a> {
    pub(crate) tenant: &'a Tenant,
    pub(crate) graph: &'a FlatGraph,
    pub(crate) library: &'a Library,
    /// Another tenant that was promised a delay, with that, if there is one.
    pub(crate) promised: Option<(&'a str, &'a str)>,
    pub(crate) found: &'a mut Diagnostics,
}

impl Check<'_> {
    /// Reports everything by which the tenant reaches beyond its bounds; returns the ends of its
    /// devices.
    pub(crate) fn run(&mut self) -> Vec<DeviceEnd> {
        self.check_allowed_names();
        let mut facts = Facts::default();
        for it in &self.graph.elements {
            let declare = self.library.get(&it.class).and_then(|class| class.factory.declare);
            // The plan reports wrong declarations.
            _ = declare.map(|declare| declare(&it.config, &Names::default(), &mut facts));
        }
        let names = Names::new(&facts.names.visible(), None);
        let mut ends: Vec<DeviceEnd> = Vec::new();
        for (number, it) in self.graph.elements.iter().enumerate() {
            // The plan reports unknown classes.
            let Some(class) = self.library.get(&it.class) else { continue };
            match direction(class.spec.class) {
                Some(direction) => ends.extend(self.device_end(number, direction, &ends)),
                None => self.check_reach(it, class, &names),
            }
        }
        ends
    }

    fn error(&mut self, it: &FlatElement, message: String, help: String) {
        self.found.push(Diagnostic::error(it.span, message).with_help(help));
    }

    /// Reports names in `allow` that are those of no class.
    fn check_allowed_names(&mut self) {
        for name in &self.tenant.allow {
            if self.library.get(&name.value).is_none() {
                let near = nearest(&name.value, self.library.names());
                let message = format!("there is no element class `{}`", name.value);
                let help = near.map(|near| format!("did you mean `{near}`?"));
                self.found.push(Diagnostic::error(name.span, message).with_maybe_help(help));
            }
        }
    }

    /// The end of a virtual device that an element is.
    fn device_end(
        &mut self,
        number: usize,
        direction: Direction,
        ends: &[DeviceEnd],
    ) -> Option<DeviceEnd> {
        let it = &self.graph.elements[number];
        let mut arguments = args::split(&it.config).into_iter().map(|arg| arg.text);
        let name = args::unquote(&arguments.next().unwrap_or_default());
        let devices = &self.tenant.devices;
        let Some(device) = devices.iter().position(|device| device.name == name) else {
            if self.tenant.wrong_devices.contains(&name) {
                return None;
            }
            let names = devices.iter().map(|device| device.name.as_str());
            let help = match nearest(&name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if devices.is_empty() => {
                    format!("write a table `[tenant.{}.device.{name}]`", self.tenant.name)
                }
                None => format!("its devices are {}", names.collect::<Vec<_>>().join(", ")),
            };
            let tenant = &self.tenant.name;
            let message = format!("tenant `{tenant}` has no device `{name}`");
            self.error(it, message, help);
            return None;
        };
        for argument in arguments {
            let keyword = argument.split_whitespace().next().unwrap_or_default().to_owned();
            if !PHYSICAL_KEYWORDS.contains(&keyword.as_str()) {
                let message =
                    format!("`{keyword}` of {} has no effect on a virtual device", it.class);
                self.error(it, message, "leave the argument out".to_owned());
            }
        }
        let is_same = |end: &&DeviceEnd| end.device == device && end.direction == direction;
        if let Some(other) = ends.iter().find(is_same).filter(|_| direction == Direction::Receive) {
            let message = format!("a second element receives from device `{name}`");
            let help = "put a Tee behind the first one".to_owned();
            let diagnostic = Diagnostic::error(it.span, message).with_help(help);
            let span = self.graph.elements[other.element].span;
            self.found.push(diagnostic.with_note(span, "the first one is here"));
        }
        let outputs = self.graph.connections.iter().filter(|it| it.from.element == number);
        if direction == Direction::Send && outputs.count() > 0 {
            let message = format!("outputs of {} have no meaning for a virtual device", it.class);
            self.error(it, message, "leave the outputs unconnected".to_owned());
        }
        Some(DeviceEnd { element: number, direction, device })
    }

    /// Reports an element that reaches beyond the tenant and is not allowed.
    fn check_reach(&mut self, it: &FlatElement, class: &'static Class, names: &Names) {
        self.check_calls(it, class, names);
        let allowed = |name: &str| self.tenant.allow.iter().any(|it| it.value == name);
        if allowed(&it.class) || allowed(class.spec.class) {
            return;
        }
        self.check_time(it, class);
        let Some(reach) = reach(it, class, names) else { return };
        let message = format!("{} {reach}, which tenant `{}` may not", it.class, self.tenant.name);
        let help = format!("`allow = [\"{}\"]` of the tenant allows it", it.class);
        self.error(it, message, help);
    }

    /// Reports an element that may keep others waiting for longer than they were promised.
    fn check_time(&mut self, it: &FlatElement, class: &Class) {
        let Some((other, delay)) = self.promised.filter(|_| self.tenant.process.is_none()) else {
            return;
        };
        if class.has_unbounded_time {
            let message = format!(
                "{} may take any time for one packet, and tenant `{other}` was promised a delay of {delay}",
                it.class
            );
            let help = format!(
                "give tenant `{}` a process of its own, `isolation = \"process\"`, or break the promise with `allow = [\"{}\"]`",
                self.tenant.name, it.class
            );
            self.error(it, message, help);
        }
    }

    /// Reports handlers that an element calls outside of the tenant.
    fn check_calls(&mut self, it: &FlatElement, class: &Class, names: &Names) {
        let calls = class.factory.calls.and_then(|find| find(&it.config, names));
        for (_, handler) in calls.unwrap_or_default() {
            let path = handler.split_whitespace().next().unwrap_or_default();
            let message = match path.split_once('.') {
                None => format!("`{path}` is a handler of the whole router"),
                Some((element, _)) if !self.has_element(it, element) => {
                    format!("tenant `{}` has no element `{element}`", self.tenant.name)
                }
                Some((_, HOME_THREAD)) => "a tenant places no tasks on workers".to_owned(),
                Some(_) => continue,
            };
            self.error(it, message, "a tenant calls handlers of its own elements".to_owned());
        }
    }

    /// Whether a name means an element of the tenant where another of its elements stands.
    fn has_element(&self, from: &FlatElement, name: &str) -> bool {
        let mut scope = from.name.as_str();
        loop {
            let outer = scope.rsplit_once('/').map(|(outer, _)| outer);
            let full = outer.map_or(name.to_owned(), |outer| format!("{outer}/{name}"));
            match (self.graph.find(&full), outer) {
                (Some(_), _) => return true,
                (None, None) => return false,
                (None, Some(outer)) => scope = outer,
            }
        }
    }
}

/// How an element reaches beyond its tenant, as the end of a sentence about it; `None` if it does
/// not.
fn reach(it: &FlatElement, class: &'static Class, names: &Names) -> Option<String> {
    let resources = class.factory.resources.map(|find| find(&it.config, names));
    if let Some(resource) = resources.unwrap_or_default().first() {
        return Some(format!("reaches `{}`", resource.name));
    }
    if castanet_io::elements::CLASSES.iter().any(|other| std::ptr::eq(other, class)) {
        return Some("reaches devices, files or sockets of the host".to_owned());
    }
    if class.role == Role::Control {
        return Some("runs on the control thread and can call any handler".to_owned());
    }
    let mut facts = Facts::default();
    let declare = class.factory.declare?;
    _ = declare(&it.config, names, &mut facts);
    if facts.seed.is_some() || facts.balanced {
        return Some("changes the whole router".to_owned());
    }
    let Facts { homes, tickets, accounts, contexts, .. } = facts;
    let chooses =
        !(homes.is_empty() && tickets.is_empty() && accounts.is_empty() && contexts.is_empty());
    chooses.then(|| "chooses workers or shares of their time".to_owned())
}

/// Checks that a tenant may write a value to a handler of one of its elements: it does not reach beyond its bounds
/// by other arguments, and changes nothing of the ends of its devices, which are as the system file says.
///
/// # Errors
/// The reasons why it may not.
pub fn check_write(
    tenant: &Tenant,
    graph: &FlatGraph,
    library: &Library,
    (element, handler): (&str, &str),
    value: &str,
) -> Result<(), String> {
    let own = graph.find(element).filter(|&it| !is_device(&graph.elements[it], library));
    let Some(own) = own else {
        return match handler.starts_with("reset") && !handler.contains('.') {
            true => Ok(()),
            false => Err(format!(
                "`{element}` is as the system file says; `{handler}` is not for its tenant"
            )),
        };
    };
    if handler == HOME_THREAD {
        return Err("a tenant places no tasks on workers".to_owned());
    }
    if handler != "config" {
        return Ok(());
    }
    let mut changed = graph.clone();
    changed.elements[own].config = value.to_owned();
    let mut found = Diagnostics::new();
    // The class was looked at when the configuration was installed.
    Check { tenant, graph: &changed, library, promised: None, found: &mut found }.run();
    let errors: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

/// Whether an element is an end of a device.
fn is_device(it: &FlatElement, library: &Library) -> bool {
    let class = library.get(&it.class).map(|class| class.spec.class);
    class.is_some_and(|class| direction(class).is_some())
}

/// The direction of the end of a device of this class.
fn direction(class: &str) -> Option<Direction> {
    match class {
        "FromDevice" | "PollDevice" => Some(Direction::Receive),
        "ToDevice" => Some(Direction::Send),
        _ => None,
    }
}

/// The virtual device of an end.
pub(crate) fn device_of<'a>(tenant: &'a Tenant, end: &DeviceEnd) -> &'a VirtualDevice {
    &tenant.devices[end.device]
}
