//! How the program ends, and how it begins again.

use castanet_lab::{Router, Wiring};

use crate::bed::{Bed, SOON, conf, program, router_config};

fn reached(bed: &Bed) {
    let [h1, h2, _] = bed.hosts();
    let said = bed.ping(h1, &["-c", "3"], &h2.address);
    assert!(said.contains("3 received, 0% packet loss"), "{said}");
}

fn start(bed: &mut Bed) {
    let router = Router::Castanet { program: program(), config: &router_config() };
    bed.process = bed.network.start(router).unwrap();
}

#[test]
fn ctrl_c_ends_it_cleanly_and_it_starts_again() {
    let mut bed = Bed::castanet("interrupt", &Wiring::default());
    for _ in 0..3 {
        reached(&bed);
        let mut process = bed.process.take().unwrap();
        process.interrupt();
        let status = process.wait(SOON).unwrap();
        // 130 is what a shell makes of SIGINT; dying of the signal itself has no code.
        assert!(matches!(status.code(), Some(0 | 130)), "{status}: {}", process.stderr());
        assert!(!process.stderr().contains("panicked"), "{}", process.stderr());
        start(&mut bed);
    }
    reached(&bed);
}

#[test]
fn after_kill_9_it_starts_again() {
    let mut bed = Bed::castanet("kill", &Wiring::default());
    for _ in 0..3 {
        let mut process = bed.process.take().unwrap();
        process.kill();
        assert!(!process.wait(SOON).unwrap().success());
        start(&mut bed);
        reached(&bed);
    }
}

#[test]
fn a_second_one_on_the_same_devices_does_no_harm() {
    let mut bed = Bed::castanet("twice", &Wiring::default());
    reached(&bed);
    let mut second = bed.network.castanet(program(), &router_config()).spawn().unwrap();
    match second.wait_for(Router::READY, SOON) {
        // It may be refused, with the device named.
        Err(_) => {
            let status = second.wait(SOON).unwrap();
            let said = second.stderr();
            assert!(status.code().is_some_and(|code| code != 0), "{status}: {said}");
            assert!(said.contains("lan1"), "{said}");
        }
        // Or run beside the first: each forwards a copy, and hosts see both.
        Ok(()) => {
            let [h1, h2, _] = bed.hosts();
            let said = bed.ping(h1, &["-c", "2"], &h2.address);
            assert!(said.contains("2 received"), "{said}");
            second.interrupt();
            let status = second.wait(SOON).unwrap();
            assert!(matches!(status.code(), Some(0 | 130)), "{status}");
        }
    }
    assert!(bed.process.as_mut().unwrap().is_running());
    reached(&bed);
}

#[test]
fn a_missing_device_is_named() {
    let bed = Bed::castanet("missing", &Wiring::default());
    let wrong = bed.network.router.command(program()).arg("run").arg(conf("router.click"));
    let said = wrong.args(["dev0=lan1", "dev1=no-such0", "dev2=lan3"]).output().unwrap();
    assert!(said.status.code().is_some_and(|code| code != 0), "{}", said.printed());
    assert!(said.stderr.contains("no-such0"), "{}", said.stderr);
    reached(&bed);
}

#[test]
fn the_demo_sees_all_as_it_should_be() {
    castanet_lab::require(&["ip", "ping", "traceroute"]).unwrap();
    let seen = castanet_lab::demo(program()).unwrap();
    assert!(!seen.replayed && seen.all_well(), "{seen:#?}");
}
