//! Huge pages: processes that share them, are in each other's way, or find none.

use super::{number, require_dpdk};
use crate::program::{RunResult, castanet};
use castanet_lab::{Command, Process};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Directory in which DPDK looks for them.
const MOUNT: &str = "/dev/hugepages";
const COUNT: &str = "/proc/sys/vm/nr_hugepages";

/// Tests that need huge pages, or need that there are none, run one by one.
static ONE: Mutex<()> = Mutex::new(());

/// The machine's huge pages as a test needs them, until dropped.
struct HugePages {
    /// Number of pages before the test.
    before: String,
    /// Whether they were mounted by us, and where.
    mounted: bool,
    made: bool,
    /// DPDK's file prefix of the test's processes.
    prefix: String,
    _alone: MutexGuard<'static, ()>,
}

impl HugePages {
    /// Reserves `count` pages of 2 MB, and mounts them where DPDK looks for them.
    fn new(name: &str, count: usize) -> HugePages {
        require_dpdk();
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::fs::read_to_string(COUNT).unwrap();
        let prefix = format!("castanet-{name}-{}", std::process::id());
        let mut pages = HugePages { before, mounted: false, made: false, prefix, _alone: alone };
        std::fs::write(COUNT, count.to_string()).unwrap();
        let there: usize = std::fs::read_to_string(COUNT).unwrap().trim().parse().unwrap();
        assert_eq!(there, count, "these tests need huge pages that nobody else uses");
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        if !mounts.lines().any(|line| line.split(' ').nth(2) == Some("hugetlbfs")) {
            pages.made = std::fs::create_dir(MOUNT).is_ok();
            let mount = Command::on_host("mount").args(["-t", "hugetlbfs", "nodev", MOUNT]);
            mount.check().unwrap_or_else(|error| panic!("{error}"));
            pages.mounted = true;
        }
        pages
    }

    /// Options of DPDK for a process with huge pages that others may share.
    fn options(&self, more: &str) -> String {
        format!("--no-pci --no-telemetry --log-level=3 --file-prefix={} {more}", self.prefix)
    }

    /// Starts `castanet run`.
    fn start(&self, more: &str, config: &str, handlers: &[&str]) -> Process {
        let options = self.options(more);
        let shown = handlers.iter().flat_map(|handler| ["--handler", *handler]);
        let command = Command::on_host(env!("CARGO_BIN_EXE_castanet"))
            .args(["run", "--dpdk", &options, "-e", config])
            .args(shown);
        let mut process = command.spawn().unwrap();
        process.wait_for("castanet: running", PATIENCE).unwrap();
        process
    }

    /// Error message of a `castanet run` that cannot start.
    fn refused(&self, more: &str) -> String {
        let words = ["run", "--dpdk", &self.options(more), "-e", "Idle -> Discard"];
        let RunResult { status, err, .. } = castanet(&words, b"");
        assert_eq!(status, Some(1), "{err}");
        err.lines().find(|line| line.starts_with("castanet: ")).unwrap_or_default().to_owned()
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let ours = |folder: &str| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.prefix))
        };
        ours(MOUNT).for_each(|entry| drop(std::fs::remove_file(entry.path())));
        _ = std::fs::remove_dir_all(Path::new("/var/run/dpdk").join(&self.prefix));
        if self.mounted {
            _ = Command::on_host("umount").args([MOUNT]).check();
        }
        if self.made {
            _ = std::fs::remove_dir(MOUNT);
        }
        _ = std::fs::write(COUNT, &self.before);
    }
}

#[test]
fn a_file_prefix_belongs_to_one_process_until_it_ends() {
    let pages = HugePages::new("prefix", 128);
    let config = "DPDKInfo(4096); f :: FromDPDKDevice(0) -> Discard";
    let devices = "-m 64 --vdev net_null0";
    let mut first = pages.start(devices, config, &[]);
    let output = pages.refused(devices);
    let prefix = &pages.prefix;
    assert_eq!(
        output,
        format!(
            "castanet: cannot start DPDK: process {} has the --file-prefix `{prefix}`; give this one \
             another (--file-prefix NAME), or attach it to that (--proc-type=secondary)",
            first.id()
        )
    );
    // The process has no rings, so its threads have registered, which excludes other processes.
    let output = pages.refused("--proc-type=secondary");
    assert!(
        output.contains("lets nobody attach; its configuration must have a FromDPDKRing"),
        "{output}"
    );
    first.kill();
    first.wait(PATIENCE).unwrap();
    // Not orderly at all; and the next has its huge pages, and packets.
    let config = format!(
        "{config}; Script(label again, wait 10ms, goto again $(lt $(f.count) 100000), stop)"
    );
    let next = pages.start(devices, &config, &["f.count"]);
    let output = next.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    assert!(output.stdout.trim().parse::<u64>().unwrap() >= 100_000);
    let output = pages.refused("--file-prefix=castanet-nobody --proc-type=secondary");
    assert!(output.contains("there is no primary process whose --file-prefix is"), "{output}");
}

#[test]
fn without_huge_pages_the_error_names_a_remedy() {
    let pages = HugePages::new("none", 0);
    assert_eq!(
        pages.refused("--vdev net_null0"),
        "castanet: cannot start DPDK: there are no huge pages; have some \
         (echo 512 > /proc/sys/vm/nr_hugepages), or do without (--no-huge -m 512)"
    );
}

#[test]
fn rings_join_a_primary_and_a_secondary_process() {
    let pages = HugePages::new("rings", 128);
    // Short packets and long ones, there and back; what the secondary adds in front is there when
    // they come back, in the primary's own mbufs.
    let primary = "i :: DPDKInfo(4096);
         s :: RatedSource(RATE 20000, LIMIT 2000, LENGTH 60, ACTIVE false)
             -> t :: ToDPDKRing(1, one, two, IQUEUE 4000);
         l :: RatedSource(RATE 1000, LIMIT 100, LENGTH 5000, ACTIVE false) -> t;
         f :: FromDPDKRing(1, one_back, two_back)
             -> k :: Classifier(0/020000000008020000000009 12/88b6, -) -> c :: Counter -> Discard;
         k[1] -> bad :: Counter -> Discard;
         Script(label there, wait 10ms, goto there $(eq $(t.length) 0), wait 1ms,
                label gone, wait 10ms, goto gone $(gt $(t.length) 0),
                write s.active true, write l.active true,
                label again, wait 10ms, goto again $(lt $(c.count) 2101), wait 50ms, stop);
         InfiniteSource(LIMIT 1, LENGTH 60) -> t;";
    let handlers = ["c.count", "c.byte_count", "bad.count", "t.n_sent", "f.no_frame_drops"];
    let primary = pages.start("-m 64", primary, &[&handlers[..], &["i.pool_count"]].concat());
    let secondary = pages.start(
        "--proc-type=secondary",
        "DPDKInfo(4096);
         f :: FromDPDKRing(1, two, one) -> EtherEncap(0x88b6, 2:0:0:0:0:9, 2:0:0:0:0:8)
             -> t :: ToDPDKRing(1, two_back, one_back)",
        &["f.count", "t.n_sent"],
    );
    let output = primary.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    let counts = handlers.map(|handler| number(&output.stdout, handler));
    assert_eq!(counts, [2101, 2001 * 74 + 100 * 5014, 0, 2101, 0], "{}", output.stdout);
    secondary.interrupt();
    let output = secondary.finish(PATIENCE).unwrap();
    assert!(output.success(), "{}", output.printed());
    let counts = ["f.count", "t.n_sent"].map(|handler| number(&output.stdout, handler));
    assert_eq!(counts, [2101, 2101]);
}
