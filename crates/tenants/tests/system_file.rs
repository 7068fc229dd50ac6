//! System files: what they mean, and every error at its place.

mod common;

use castanet_lang::{Diagnostics, print};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use common::{library, system};
use std::sync::Arc;

/// One tenant with the device `eth1` behind VXLAN.
const ONE: &str = "\
[device.wan]
address = \"10.9.0.1/24\"
[tenant.a]
file = \"a.click\"
[tenant.a.device.eth1]
on = \"wan\"
vxlan = { vni = 7, remote = \"10.9.0.2\" }
";

#[test]
fn all_errors_of_a_system_file_come_at_once() {
    let text = "\
[device.wan]
adress = \"10.9.0.1/24\"
mac = \"02:00\"
gateway = \"10.8.0.1\"
[tenant.a]
file = 7
memory = { heap = 12, packets = 0 }
table_entries = 5
[tenant.a.device.eth1]
on = \"wann\"
vlan = 5000
[tenant.a.device.eth2]
on = \"wan\"
vxlan = { vni = 7, remote = \"10.9.0.2\" }
[tenant.a.device.eth3]
on = \"wan\"
vlan = 7
gre = { remote = \"10.9.0.2\" }
[tenant.wan]
[extra]
";
    let (_, errors) = system(text, &[]);
    assert_eq!(
        errors,
        "\
system.toml:20: the system file has no key `extra`
system.toml:2: device `wan` has no key `adress`
system.toml:3: `mac` of device `wan` is not an Ethernet address such as \"02:00:00:00:00:01\"
system.toml:4: the gateway of device `wan` is not in the network of its address
system.toml:8: `table_entries` of tenant `a` is not supported yet: `memory = { heap = … }` limits tables
system.toml:7: `heap` of `memory` of tenant `a` is a number, and has to be a size such as \"64M\", at least 64K
system.toml:7: `packets` of `memory` of tenant `a` is not a number from 1 to 1073741824
system.toml:10: there is no physical device `wann`
system.toml:11: `vlan` of device `eth1` of tenant `a` is not a number from 1 to 4094
system.toml:12: device `eth2` of tenant `a` is a tunnel on `wan`, which has no address
system.toml:15: device `eth3` of tenant `a` has gre, vlan, which exclude each other
system.toml:6: `file` of tenant `a` is a number, and has to be a path in quotation marks, and not empty
system.toml:19: a tenant and a device are both called `wan`
system.toml:19: tenant `wan` has no configuration
"
    );
}

#[test]
fn devices_that_the_wire_cannot_tell_apart_are_errors() {
    let two =
        ONE.to_owned() + &ONE[ONE.find("[tenant").unwrap_or(0)..].replace("tenant.a", "tenant.b");
    let (_, errors) = system(&two, &["", ""]);
    let wrong =
        "device `eth1` of tenant `b` cannot be told from device `eth1` of tenant `a` on `wan`";
    assert!(errors.contains(wrong), "{errors}");
    let (_, errors) = system(&two.replacen("vni = 7", "vni = 8", 1), &["", ""]);
    assert_eq!(errors, "");
}

#[test]
fn devices_of_one_interface_are_an_error() {
    let text = ONE.to_owned() + "[device.lan]\ninterface = \"wan\"\n";
    let (_, errors) = system(&text, &[""]);
    let wanted = "system.toml:8: `wan` is the interface of another device, too\n\
                  system.toml:1: device `wan` is here\n";
    assert_eq!(errors, wanted);
}

#[test]
fn an_installed_configuration_takes_no_place_of_a_file() {
    for store in [".", "./", "./.", "x/.."] {
        let text = format!("store = \"{store}\"\n{ONE}");
        let (_, errors) = system(&text, &[""]);
        let wanted = "system.toml:5: `a.click` is the place of installed configurations of tenant `a`, too\n";
        assert_eq!(errors, wanted, "{store}");
    }
    let (_, errors) = system(&format!("store = \"installed\"\n{ONE}"), &[""]);
    assert_eq!(errors, "");
    // One of both is absolute.
    let folder = std::env::current_dir().unwrap_or_default().display().to_string();
    let absolute = ONE.replace("a.click", &format!("{folder}/a.click"));
    for (store, text, file) in
        [(&*folder, ONE, "a.click"), ("x/..", &*absolute, &*format!("{folder}/a.click"))]
    {
        let (_, errors) = system(&format!("store = \"{store}\"\n{text}"), &[""]);
        let wanted = format!(
            "system.toml:5: `{file}` is the place of installed configurations of tenant `a`, too\n"
        );
        assert_eq!(errors, wanted, "{store}");
    }
    // Another tenant's.
    let text = format!(
        "store = \".\"\n{}[tenant.b]\nstandby = true\n",
        ONE.replace("a.click", "x/../b.click")
    );
    let (_, errors) = system(&text, &["", ""]);
    let wanted = "system.toml:5: `x/../b.click` is the place of installed configurations of tenant `b`, too\n";
    assert!(errors.contains(wanted), "{errors}");
}

#[test]
fn a_bandwidth_lets_something_pass() {
    for (bandwidth, is_right) in [
        ("0", false),
        ("0bps", false),
        ("7bps", false),
        ("fast", false),
        ("8bps", true),
        ("1Gbps", true),
    ] {
        let (_, errors) = system(&format!("{ONE}bandwidth_in = \"{bandwidth}\"\n"), &[""]);
        let wanted = "system.toml:8: `bandwidth_in` of device `eth1` of tenant `a` is not a bandwidth such as \
                      \"100Mbps\", at least 8 bits a second\n";
        assert_eq!(errors, if is_right { "" } else { wanted }, "{bandwidth}");
    }
}

#[test]
fn a_limit_leaves_something() {
    let part = "a part of a processor such as \"30%\", at least 0.01%";
    let time = "a time such as \"100us\", at least 1 us";
    let size = "a size such as \"64M\", at least 64K";
    for (table, key, wants, wrong, right) in [
        ("cpu", "limit", part, &["0%", "1e-9%", "0", "2", "all"][..], "0.01%"),
        ("cpu", "guarantee", part, &["1e-9%", "-1%"], "20%"),
        ("cpu", "delay", time, &["0us", "0.4us", "0", "soon"], "1us"),
        ("memory", "heap", size, &["1", "0", "63K", "much"], "64K"),
    ] {
        for value in wrong.iter().chain([&right]) {
            let keys = format!("{table} = {{ {key} = \"{value}\" }}\nfile =");
            let (_, errors) = system(&ONE.replace("file =", &keys), &[""]);
            let wanted =
                format!("system.toml:4: `{key}` of `{table}` of tenant `a` is not {wants}\n");
            assert_eq!(errors, if *value == right { "" } else { &wanted }, "{key} {value}");
        }
    }
}

#[test]
fn a_device_and_the_end_of_a_tunnel_have_addresses_of_their_own() {
    for (mac, is_right) in [
        ("ff:ff:ff:ff:ff:ff", false),
        ("01:00:5e:00:00:01", false),
        ("00:00:00:00:00:00", false),
        ("02:00:00:00:00:01", true),
    ] {
        let (_, errors) =
            system(&ONE.replace("address", &format!("mac = \"{mac}\"\naddress")), &[""]);
        let wanted =
            format!("system.toml:2: `mac` of device `wan`: {mac} is the address of no device\n");
        assert_eq!(errors, if is_right { "" } else { &wanted });
    }
    let (_, errors) = system(&ONE.replace("10.9.0.2", "10.9.0.1"), &[""]);
    let wanted =
        "system.toml:5: device `eth1` of tenant `a` is a tunnel from `wan` to its own address\n";
    assert_eq!(errors, wanted);
}

/// The tenant uses the device, and none of its errors is about that.
#[test]
fn a_mistake_is_one_error() {
    let tenant = "FromDevice(eth1) -> ToDevice(eth1);";
    for (before, after, wanted) in [
        (
            "vni = 7",
            "vni = \"7\"",
            "7: `vni` of `vxlan` of device `eth1` of tenant `a` is a text, and has to be a number from 0 to 16777215",
        ),
        (
            "vni = 7",
            "vni = -7",
            "7: `vni` of `vxlan` of device `eth1` of tenant `a` is not a number from 0 to 16777215",
        ),
        (
            "on = \"wan\"",
            "on = 5",
            "6: `on` of device `eth1` of tenant `a` is a number, and has to be a text in quotation marks",
        ),
        ("on = \"wan\"", "on = \"wna\"", "6: there is no physical device `wna`"),
        (
            "10.9.0.1/24",
            "10.9.0.1/33",
            "2: `address` of device `wan` is not an address such as \"10.0.0.1/24\"",
        ),
        (
            "address = \"10.9.0.1/24\"",
            "address = 10",
            "2: `address` of device `wan` is a number, and has to be an address such as \"10.0.0.1/24\"",
        ),
        (
            "address =",
            "mtu = 9\naddress =",
            "2: `mtu` of device `wan` is not a number from 68 to 65535",
        ),
        (
            "\"a.click\"",
            "\"\"",
            "4: `file` of tenant `a` is not a path in quotation marks, and not empty",
        ),
        (
            "[device.wan]",
            "store = \"\"\n[device.wan]",
            "1: `store` of the system file is not a path in quotation marks, and not empty",
        ),
        (
            "file =",
            "control = { socket = \"\" }\nfile =",
            "4: `socket` of `control` of tenant `a` is not a path in quotation marks, and not empty",
        ),
    ] {
        let (_, errors) = system(&ONE.replace(before, after), &[tenant]);
        assert_eq!(errors, format!("system.toml:{wanted}\n"), "{after}");
    }
}

#[test]
fn a_tenant_keeps_to_its_bounds() {
    let text = "\
FromDevice(eth2) -> ToDump(/tmp/x);
FromDump(-) -> Discard;
Script(read b/c.count);
Idle -> Counter(COUNT_CALL 5 stop) -> Counter(COUNT_CALL 5 b/c.reset) -> Discard;
FromDevice(eth1, FORCE_IP true) -> ToDevice(eth1);
FromDevice(eth1) -> Discard;
StaticThreadSched(c 0);
RandomSeed(4);
c :: Counter; Idle -> Counter(COUNT_CALL 5 c.reset) -> c -> Discard;
CPUAccount(c, GUARANTEE 50%);
VStaticThreadSched(0 b);
Idle -> Counter(COUNT_CALL 5 c.home_thread 1) -> Discard;
";
    let (_, errors) = system(ONE, &[text]);
    assert_eq!(
        errors,
        "\
a.click:1: tenant `a` has no device `eth2`
a.click:1: ToDump reaches `/tmp/x`, which tenant `a` may not
a.click:2: FromDump reaches devices, files or sockets of the host, which tenant `a` may not
a.click:3: Script runs on the control thread and can call any handler, which tenant `a` may not
a.click:4: `stop` is a handler of the whole router
a.click:4: tenant `a` has no element `b/c`
a.click:5: `FORCE_IP` of FromDevice has no effect on a virtual device
a.click:6: a second element receives from device `eth1`
a.click:5: the first one is here
a.click:7: StaticThreadSched chooses workers or shares of their time, which tenant `a` may not
a.click:8: RandomSeed changes the whole router, which tenant `a` may not
a.click:10: CPUAccount chooses workers or shares of their time, which tenant `a` may not
a.click:11: VStaticThreadSched chooses workers or shares of their time, which tenant `a` may not
a.click:12: a tenant places no tasks on workers
"
    );
    let allowed = ONE.replace("file =", "allow = [\"ToDump\"]\nfile =");
    let (_, errors) = system(&allowed, &["Idle -> ToDump(/tmp/x);"]);
    assert_eq!(errors, "");
}

#[test]
fn tenants_have_accounts_of_processor_time() {
    let cpu = "cpu = { guarantee = \"20%\", limit = \"30%\", delay = \"100us\" }\nfile =";
    for (text, wanted) in [
        (ONE.to_owned(), "a_account :: CPUAccount(a);"),
        (
            ONE.replace("file =", cpu),
            "a_account :: CPUAccount(a, GUARANTEE 20%, LIMIT 30%, DELAY 100us);",
        ),
    ] {
        let (master, errors) = system(&text, &["FromDevice(eth1) -> ToDevice(eth1);"]);
        assert_eq!(errors, "");
        let shown = print::flat(&master.graph);
        assert!(shown.contains(wanted), "{shown}");
    }
}

#[test]
fn tenants_have_limits_of_memory_and_bandwidth() {
    let limits = "memory = { heap = \"64M\", packets = 4096 }\nfile =";
    let text =
        ONE.replace("file =", limits) + "bandwidth_in = \"10Mbps\"\nbandwidth_out = \"2MBps\"\n";
    let (master, errors) = system(&text, &["FromDevice(eth1) -> Queue -> ToDevice(eth1);"]);
    assert_eq!(errors, "");
    let shown = print::flat(&master.graph);
    for wanted in [
        "a_memory :: MemoryAccount(a, HEAP 64M, PACKETS 4096);",
        "wan/a/eth1/bandwidth_in :: BandwidthRatedSplitter(10Mbps, BURST_DURATION 20ms);",
        "wan/a/eth1/bandwidth_out :: BandwidthRatedSplitter(2MBps, BURST_DURATION 20ms);",
        "wan/a/eth1/bandwidth_in [1] -> wan/a/eth1/over_in",
        "wan/a/eth1/bandwidth_out [1] -> wan/a/eth1/over_out",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    // A direction without an end needs no limit.
    let (master, errors) = system(&text, &["FromDevice(eth1) -> Discard;"]);
    assert_eq!(
        (errors.as_str(), print::flat(&master.graph).contains("bandwidth_out")),
        ("", false)
    );
}

/// The lines of a graph that declare elements outside of tenants.
fn shared_part(text: &str, tenant: &str) -> String {
    let (master, errors) = system(text, &[tenant]);
    assert_eq!(errors, "");
    let text = print::flat(&master.graph);
    text.lines()
        .filter(|line| line.starts_with("wan/"))
        .fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

#[test]
fn addresses_are_classified_and_sources_are_checked() {
    let text = ONE.replace("vxlan = { vni = 7, remote = \"10.9.0.2\" }", "address = \"10.9.0.5\"");
    let shown = shared_part(&text, "FromDevice(eth1) -> ToDevice(eth1);");
    for wanted in [
        "wan/frames :: Classifier(12/0806 38/0a090005, 12/0800 30/0a090005, -);",
        "wan/a/eth1/source :: Classifier(12/0806 28/0a090005, 12/0800 26/0a090005, 12/8035 20/0003 28/00000000 38/00000000, -);",
        "wan/a/eth1/source [3] -> wan/a/eth1/spoofed;",
    ] {
        assert!(shown.contains(wanted), "{wanted} not in {shown}");
    }
}

#[test]
fn a_whole_device_goes_straight_to_its_tenant() {
    let text =
        ONE.replace("on = \"wan\"\nvxlan = { vni = 7, remote = \"10.9.0.2\" }", "device = \"wan\"");
    let shown = shared_part(&text, "FromDevice(eth1) -> ToDevice(eth1);");
    assert!(!shown.contains("Classifier"), "{shown}");
    assert!(shown.contains("wan/from -> a/FromDevice@1"), "{shown}");
}

#[test]
fn tunnels_that_cannot_be_told_apart_are_errors() {
    let two = ONE.to_owned()
        + "[tenant.a.device.eth2]\non = \"wan\"\ngeneve = { vni = 7, remote = \"10.9.0.2\", port = 4789 }\n";
    let (_, errors) = system(&two, &[""]);
    assert_eq!(
        errors,
        "system.toml:8: device `eth2` of tenant `a`: UDP port 4789 from 10.9.0.2 is that of VXLAN and of Geneve\n"
    );
    let own = ONE.to_owned() + "[tenant.a.device.eth2]\non = \"wan\"\naddress = \"10.9.0.1\"\n";
    let (_, errors) = system(&own, &[""]);
    assert_eq!(
        errors,
        "system.toml:8: device `eth2` of tenant `a`: 10.9.0.1 is the address of the tunnels on `wan`\n"
    );
    let many: String = (0..252)
        .map(|n| format!("[tenant.a.device.e{n}]\non = \"wan\"\nvxlan = {{ vni = {n}, remote = \"10.9.0.2\" }}\n"))
        .collect();
    let (head, _) = ONE.split_once("[tenant.a.device").unwrap_or_default();
    let head = head.replace("file =", "isolation = \"process\"\nfile =");
    let (_, errors) = system(&(head + &many), &[""]);
    assert_eq!(errors, "system.toml:3: tenant `a` has 252 devices\n");
}

#[test]
fn plain_frames_come_out_of_all_tunnels_in_one_step() {
    let device =
        |name: &str, kind: &str| format!("[tenant.a.device.{name}]\non = \"wan\"\n{kind} }}\n");
    let (head, _) = ONE.split_once("[tenant.a.device").unwrap_or_default();
    let text = [
        head,
        &device("v", "vxlan = { vni = 7, remote = \"10.9.0.2\""),
        &device("n", "geneve = { vni = 8, remote = \"10.9.0.3\", port = 9"),
        &device("k", "gre = { key = 9, remote = \"10.9.0.2\""),
        &device("g", "gre = { remote = \"10.9.0.3\""),
    ];
    let tenant =
        "FromDevice(v) -> ToDevice(v); FromDevice(n) -> ToDevice(n); FromDevice(k) -> ToDevice(k);
        Idle -> ToDevice(g);";
    let shown = shared_part(&text.concat(), tenant);
    for wanted in [
        "wan/plain :: TunnelDecap(wan:eth, 10.9.0.1, gre 10.9.0.3, gre 10.9.0.2 9, geneve 10.9.0.3 8 9, vxlan 10.9.0.2 7 4789);",
        "wan/from :: FromDevice(wan, PROMISC true, BURST 256);",
        "wan/from -> wan/plain",
        "wan/plain [1] -> a/FromDevice@5",
        "wan/plain [4] -> wan/frames",
        "wan/a/g/encap :: TunnelEncap(10.9.0.1, gre 10.9.0.3);",
    ] {
        assert!(shown.contains(wanted), "{wanted} not in {shown}");
    }
    assert_eq!(shown.matches("wan/a/g/unread ::").count(), 1, "{shown}");
    // One element has no more than 200 tunnels; and a promised delay is not used up by long bursts.
    let many: String = (0..250)
        .map(|n| device(&format!("e{n}"), &format!("vxlan = {{ vni = {n}, remote = \"10.9.0.2\"")))
        .collect();
    let head = head.replace("file =", "cpu = { delay = \"100us\" }\nfile =");
    let shown = shared_part(&(head + &many), "FromDevice(e99) -> ToDevice(e99);");
    for wanted in [
        "wan/plain [200] -> wan/plain1",
        "wan/plain1 [49] -> a/FromDevice@1",
        "wan/plain1 [50] -> wan/frames",
        "wan/from :: FromDevice(wan, PROMISC true);",
    ] {
        assert!(shown.contains(wanted), "{wanted} not in {shown}");
    }
}

#[test]
fn neighbours_that_ask_for_their_own_addresses_are_heard() {
    let two =
        ONE.to_owned() + "[tenant.a.device.eth2]\non = \"wan\"\ngre = { remote = \"10.77.0.2\" }\n";
    let two = two.replace("address =", "gateway = \"10.9.0.254\"\naddress =");
    let shown = shared_part(&two, "Idle -> ToDevice(eth1);");
    for wanted in [
        "12/0806 20/0001 38/0a090001, 12/0806 20/0002, 12/0800 30/0a090001, 12/0806 20/0001, -);",
        "wan/announcements :: Classifier(28/0a090002 38/0a090002, 28/0a0900fe 38/0a0900fe, -);",
        "wan/announced :: StoreData(20, \\<0002>);",
        "wan/announcements [2] -> wan/other_frames;",
        "wan/other_frames :: TenantDrop(other_frames);",
    ] {
        assert!(shown.contains(wanted), "{wanted} not in {shown}");
    }
}

#[test]
fn the_gateway_leads_to_ends_behind_it() {
    let text = ONE.replace("remote = \"10.9.0.2\"", "remote = \"10.77.0.2\"");
    let (_, errors) = system(&text, &[""]);
    assert_eq!(errors, "system.toml:5: 10.77.0.2 is not in the network of `wan`\n");
    let text = text.replace("address =", "gateway = \"10.9.0.254\"\naddress =");
    let shown = shared_part(&text, "Idle -> ToDevice(eth1);");
    assert!(shown.contains("wan/a/eth1/next_hop :: SetIPAddress(10.9.0.254);"), "{shown}");
}

#[test]
fn names_lead_to_elements_of_the_same_tenant_only() {
    let other = ONE[ONE.find("[tenant").unwrap_or(0)..].replace("tenant.a", "tenant.b");
    let two = ONE.to_owned() + &other.replace("vni = 7", "vni = 8");
    let check = |table: &str| {
        let querier =
            format!("q :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, TABLE {table}); t :: ARPTable;");
        let a = querier + "FromDevice(eth1) -> q -> ToDevice(eth1); Idle -> [1] q;";
        let (master, errors) = system(&two, &[&a, "t :: ARPTable; u :: ARPTable;"]);
        assert_eq!(errors, "");
        let mut found = Diagnostics::new();
        let options = Options::new(Arc::new(SilentConsole));
        Router::check(&master.graph, &library(), &options, &mut found);
        found.iter().map(|it| it.message.clone()).filter(|it| it.contains("TABLE")).collect()
    };
    let errors: Vec<String> = check("t");
    assert!(errors.is_empty(), "{errors:?}");
    for other in ["b/u", "b/t", "u"] {
        let errors: Vec<String> = check(other);
        assert_eq!(errors.len(), 1, "{other}: {errors:?}");
    }
}

#[test]
fn a_process_of_its_own_has_slot_channels_in_the_place_of_devices() {
    let text = ONE.replace(
        "file = \"a.click\"\n",
        "file = \"a.click\"\nisolation = \"process\"\nmemory = { process = \"64M\" }\npatience = \"2s\"\n\
         require = \"seccomp\"\ncpu = { limit = \"30%\" }\n",
    );
    let tenant = "FromDevice(eth1) -> t :: Tee -> ToDevice(eth1); t[1] -> Queue -> ToDevice(eth1);";
    let (master, errors) = system(&text, &[tenant]);
    assert_eq!(errors, "");
    let [process] = &master.processes[..] else { panic!("{:?}", master.processes) };
    assert_eq!(process.tenant, "a");
    assert_eq!(
        castanet_lang::print::flat(&process.graph),
        "\
FromDevice@1 :: FromSlots(eth1, CLIENT true, PASSED true);
t :: Tee;
ToDevice@3 :: ToVirtualDevice(eth1, MTU 1450);
Queue@4 :: Queue;
ToDevice@5 :: ToVirtualDevice(eth1, MTU 1450);
eth1/to_slots :: ToSlots(eth1, CLIENT true, PASSED true);

FromDevice@1 -> t
    -> ToDevice@3
    -> eth1/to_slots;
t [1] -> Queue@4
    -> ToDevice@5
    -> eth1/to_slots;
"
    );
    let config = |name: &str| {
        let element = master.graph.find(name).map(|it| &master.graph.elements[it]);
        element.map(|it| format!("{}({})", it.class, it.config)).unwrap_or_default()
    };
    assert_eq!(config("a/eth1/received"), "FromVirtualDevice(eth1, CAPACITY 1024)");
    let slots = "(a/eth1, PASSED true, SLOTS 1024, SNAPLEN 2048)";
    assert_eq!(config("a/eth1/to_process"), format!("ToSlots{slots}"));
    assert_eq!(config("a/eth1/from_process"), format!("FromSlots{slots}"));
    assert_eq!(config("a/eth1/sent"), "ToVirtualDevice(eth1, MTU 1450)");
    let process = config("a/process");
    let keywords = "TenantProcess(a, CHANNELS eth1, MEMORY 67108864, LIMIT 30%, REQUIRE seccomp, \
                    PATIENCE 2000ms, GRAPH \"";
    assert!(process.starts_with(keywords), "{process}");
    // Elements of the process are none of the coordinator's.
    assert_eq!(config("a/t"), "");
}

#[test]
fn a_tenant_on_standby_needs_no_file_and_a_migration_needs_a_key() {
    let text = ONE.replace("file = \"a.click\"", "standby = true");
    let migration = "[migration]\nkey = \"move.key\"\nlisten = \"192.0.2.1:4790\"\n";
    let (master, errors) = system(&format!("{migration}{text}"), &[""]);
    assert_eq!(errors, "");
    // The device stays open, and nobody sends.
    assert!(print::flat(&master.graph).contains("wan/to"), "{}", print::flat(&master.graph));
    let wrong = "[migration]\nlisten = \"here\"\nport = 7\n[tenant.b]\nstandby = 1\n";
    let (_, errors) = system(&format!("{wrong}{text}"), &[]);
    assert_eq!(
        errors,
        "\
system.toml:3: `migration` has no key `port`
system.toml:2: `listen` of `migration` is not an address such as \"192.0.2.1:4790\"
system.toml:1: `migration` has no key
system.toml:5: `standby` of tenant `b` is a number, and has to be true or false
system.toml:4: tenant `b` has no configuration
"
    );
}

#[test]
fn a_device_is_open_while_its_only_tenant_runs_nothing() {
    let text = "[device.lan]\n[tenant.a]\nfile = \"a\"\n[tenant.a.device.eth1]\ndevice = \"lan\"\n";
    let (master, errors) = system(text, &[""]);
    assert_eq!(errors, "");
    let flat = print::flat(&master.graph);
    assert!(flat.contains("lan/no_sender :: Idle"), "{flat}");
}

#[test]
fn elements_that_take_any_time_are_refused_where_a_delay_was_promised() {
    let text = "\
[device.lan]
[device.wan]
[tenant.a]
file = \"a.click\"
[tenant.a.device.eth1]
device = \"lan\"
[tenant.b]
file = \"b.click\"
cpu = { delay = \"100us\" }
[tenant.b.device.eth1]
device = \"wan\"
";
    let graphs = ["FromDevice(eth1) -> WorkPackage(1) -> Discard;\nBlockThread;", ""];
    let (_, errors) = system(text, &graphs);
    assert_eq!(
        errors,
        "\
a.click:1: WorkPackage may take any time for one packet, and tenant `b` was promised a delay of 100us
a.click:2: BlockThread may take any time for one packet, and tenant `b` was promised a delay of 100us
"
    );
    let allowed = "file = \"a.click\"\nallow = [\"WorkPackage\", \"BlockThread\"]";
    let process = "file = \"a.click\"\nisolation = \"process\"";
    for other in [allowed, process] {
        let (_, errors) = system(&text.replace("file = \"a.click\"", other), &graphs);
        assert_eq!(errors, "", "{other}");
    }
    // To oneself nothing is promised.
    let (_, errors) = system(&text.replace("cpu = { delay = \"100us\" }", ""), &graphs);
    assert_eq!(errors, "");
    let (_, errors) = system(text, &["", graphs[0]]);
    assert_eq!(errors, "");
}
