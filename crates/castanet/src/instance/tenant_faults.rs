//! Tenants whose elements panic are suspended, and start anew after a pause.

use super::tenants::InstanceTenants;
use crate::replace::ReplacementReader;
use crate::tenants::{FaultChange, LoadedSystem};
use crate::terminal::{complain, inform};
use castanet_element::time::Time;
use castanet_runtime::router::Router;

impl InstanceTenants {
    /// Counts the panics in elements of tenants, and makes a change that is due; returns the time of the next one.
    pub(super) fn step_faults(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
    ) -> Option<Time> {
        let now = router.clock().now();
        for (name, panics) in router.take_panics() {
            // Elements of the system file itself have the name of a device before theirs.
            if let Some((tenant, element)) = name.split_once('/')
                && self.configurations.find(tenant).is_some()
            {
                self.faults.count(tenant, element, panics, now);
            }
        }
        // A configuration that is about to run is put in place first.
        if !router.is_replaced()
            && let Some((tenant, change)) = self.faults.due(now)
        {
            self.make_fault_change(router, reader, &tenant, change);
        }
        self.faults.earliest()
    }

    fn make_fault_change(
        &mut self,
        router: &mut Router,
        reader: &ReplacementReader,
        tenant: &str,
        change: FaultChange,
    ) {
        let now = router.clock().now();
        let Some((number, _)) = self.configurations.find(tenant) else {
            return self.faults.started(tenant, now);
        };
        if self.check_stays(tenant).is_err() {
            return self.faults.put_off(tenant, now);
        }
        let is_suspended = change == FaultChange::Suspend;
        let loaded = self.configurations.with_suspension(number, is_suspended, &reader.library);
        let LoadedSystem { configuration, configurations: next, .. } = loaded;
        let prepared = router.replace_with(|build| reader.build(configuration, None, build));
        if let Err(error) = prepared {
            let why = router.words(&error);
            let verb = if is_suspended { "suspended" } else { "started anew" };
            complain(format_args!("castanet: tenant {tenant}: cannot be {verb}: {why}"));
            return self.faults.put_off(tenant, now);
        }
        self.configurations = next;
        match change {
            FaultChange::Suspend => {
                let (element, pause) = self.faults.suspended(tenant, now);
                complain(format_args!(
                    "castanet: tenant {tenant}: suspended for {} ms: its elements panic, `{element}` was the last",
                    pause.as_millis()
                ));
            }
            FaultChange::Resume => {
                self.faults.resumed(tenant, now);
                inform(format_args!("castanet: tenant {tenant}: started anew, without its state"));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::super::service::InstanceService;
    use super::super::{InstanceArguments, tenants::TenantChange};
    use crate::library::tests::faulty_library;
    use crate::load::Origin;
    use crate::replace::{Reloader, ReplacementReader};
    use crate::tenants::load;
    use castanet_runtime::console::SilentConsole;
    use castanet_runtime::router::{ErrorStyle, Options, PeriodicService, Router};
    use castanet_runtime::worker::driver::DriverEvent;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    /// A system of two tenants, in files of its own, and the service that serves them.
    struct System {
        folder: PathBuf,
        router: Router,
        service: InstanceService,
    }

    impl System {
        fn new(name: &str, red: &str, blue: &str) -> System {
            let folder = format!("castanet-faults-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("red.click"), red).unwrap();
            std::fs::write(folder.join("blue.click"), blue).unwrap();
            let file = folder.join("system.toml");
            let tables =
                "[tenant.red]\nfile = \"red.click\"\n[tenant.blue]\nfile = \"blue.click\"\n";
            std::fs::write(&file, tables).unwrap();
            let library = faulty_library();
            let mut loaded = load(&file, &[], &library, None).into_configuration();
            let options = Options::new(Arc::new(SilentConsole));
            let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
            let wrong = loaded.rendered(ErrorStyle::Castanet, false);
            let mut router = built.unwrap_or_else(|| panic!("{wrong}"));
            let reader = Arc::new(ReplacementReader {
                vars: Vec::new(),
                clickpath: None,
                warnings: true,
                add: Box::new(|_| ()),
                library,
                wording: ErrorStyle::Castanet,
            });
            router.set_hot_swap_source(reader.source(&options));
            let arguments = InstanceArguments { no_control: true, ..Default::default() };
            let reloader = Reloader { origin: Origin::System(file), reader };
            let mut service = InstanceService::new(&router, &arguments, reloader).unwrap();
            service.serve_tenants(&router, &mut loaded).unwrap();
            System { folder, router, service }
        }

        /// Runs the router until `is_over`, which is asked every few milliseconds, or for 20 s.
        fn run_until(&mut self, mut is_over: impl FnMut(&mut Router) -> bool) {
            let mut looks = 0;
            let mut look = |router: &mut Router| {
                looks += 1;
                if is_over(router) || looks > 4000 {
                    _ = router.line().send(DriverEvent::Interrupted);
                }
            };
            let mut looker = PeriodicService::new(Duration::from_millis(5), &mut look);
            self.router.run_with(&mut [&mut self.service, &mut looker]);
            assert!(looks <= 4000, "it was not over in 20 s");
        }

        /// State, panics and restarts of a tenant.
        fn report(&mut self, tenant: &str) -> (String, u64, u64) {
            let reports = self.service.tenant_reports(&mut self.router).unwrap();
            let it = reports.into_iter().find(|it| it.tenant == tenant).unwrap();
            (it.state, it.faults.panics, it.faults.restarts)
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn count(router: &mut Router, handler: &str) -> u64 {
        router.read(handler).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    const BLUE: &str = "RatedSource(RATE 1000) -> n :: Counter -> Discard;";

    #[test]
    fn a_tenant_that_panics_is_suspended_alone_and_starts_anew_without_its_state() {
        let red = |panics: bool| {
            format!(
                "RatedSource(RATE 2000) -> n :: Counter -> sieve :: RandomSample(0.5)
                 -> bad :: Fault({panics}) -> Discard; sieve[1] -> Discard;"
            )
        };
        let mut it = System::new("alone", &red(true), BLUE);
        let (mut last, mut suspensions, mut was_there) = (0, 0, true);
        it.run_until(|router| {
            let blue = count(router, "blue/n.count");
            assert!(blue >= last, "the neighbour lost its state");
            last = blue;
            let is_there = router.has_handler("red/n.count", false);
            suspensions += u32::from(was_there && !is_there);
            was_there = is_there;
            // The third pause is 400 ms.
            suspensions == 3 && is_there
        });
        let (_, panics, restarts) = it.report("red");
        assert_eq!(restarts, 3);
        assert!(panics >= 30, "{panics}");
        assert_eq!(it.report("blue"), ("running".into(), 0, 0));
        assert!(last > 0, "the neighbour counted nothing");

        // A configuration without the fault is not held up by the past.
        let text = red(false);
        it.service.change_tenant(&mut it.router, "red", TenantChange::Install(&text)).unwrap();
        it.run_until(|router| count(router, "red/n.count") > 500);
        let (state, _, after) = it.report("red");
        assert_eq!((state.as_str(), after), ("running", restarts));
        assert!(count(&mut it.router, "blue/n.count") > last);
    }

    #[test]
    fn a_suspended_tenant_is_said_to_be_so_and_keeps_its_text() {
        let red = "RatedSource(RATE 2000) -> bad :: Fault(true) -> Discard;";
        let mut it = System::new("state", red, BLUE);
        it.run_until(|router| !router.has_handler("red/bad.class", false));
        let (state, panics, restarts) = it.report("red");
        assert_eq!((state.as_str(), restarts), ("suspended", 0));
        assert!(panics >= 10, "{panics}");
        let reports = it.service.tenant_reports(&mut it.router).unwrap();
        assert_eq!((reports[0].configuration.as_str(), reports[0].elements), ("file", 3));
        it.run_until(|router| router.has_handler("red/bad.class", false));
        assert_eq!(it.report("red").2, 1);
    }

    #[test]
    fn a_few_panics_cost_packets_and_no_state() {
        let red =
            "InfiniteSource(LIMIT 5, BURST 1) -> s :: Switch(0) -> bad :: Fault(true) -> Discard;
                   RatedSource(RATE 1000) -> n :: Counter -> Discard;";
        let mut it = System::new("few", red, BLUE);
        it.run_until(|router| count(router, "red/n.count") > 300);
        let (state, panics, restarts) = it.report("red");
        assert_eq!((state.as_str(), restarts), ("running", 0));
        assert!((1..=5).contains(&panics), "{panics}");
        assert_eq!(count(&mut it.router, "red/bad.drops.panic"), 5);
    }
}
