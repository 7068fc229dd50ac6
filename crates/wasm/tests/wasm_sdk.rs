//! The modules of `sdk/wasm` in C and in Rust: those in C are the compiled ones, and both do the same.
#![cfg(feature = "engine")]

use castanet_bench::example;
use castanet_element::class::Library;
use castanet_wasm::CLASSES;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wasm")
}

/// Runs a script that compiles modules into a folder of their own.
fn compile(script: &str, language: &str, rustc: Option<&Path>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wasm-sdk-{language}"));
    _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new("sh");
    command.arg(sdk().join("examples").join(script)).arg(&folder);
    rustc.into_iter().for_each(|rustc| _ = command.env("RUSTC", rustc));
    let done = command.output().unwrap_or_else(|error| panic!("sh: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{script}: {said}\n.ci/packages names the compilers");
    folder
}

/// Compilers of Rust with WebAssembly as their target: Debian's, and the one that compiled this.
fn compilers() -> Vec<PathBuf> {
    let has_target = |rustc: &Path| {
        let words = ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"];
        let done = Command::new(rustc).args(words).output().ok();
        let folder = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
        folder.is_some_and(|folder| Path::new(&folder).is_dir())
    };
    let all = ["/usr/bin/rustc", "rustc"].map(PathBuf::from);
    let found: Vec<_> = all.into_iter().filter(|rustc| has_target(rustc)).collect();
    let missing =
        "the packages rustc and libstd-rust-dev-wasm32, or rustup's wasm32-unknown-unknown";
    assert!(!found.is_empty(), "there is no compiler of Rust for WebAssembly: {missing}");
    found
}

fn library() -> Library {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

#[test]
fn the_compiled_modules_are_current() {
    let folder = compile("build.sh", "c", None);
    for entry in std::fs::read_dir(sdk().join("modules")).expect("is there").flatten() {
        let fresh = std::fs::read(folder.join(entry.file_name())).unwrap_or_default();
        let kept = std::fs::read(entry.path()).unwrap_or_default();
        let name = entry.path();
        assert!(
            fresh == kept,
            "{} is not what clang makes of its source: run sdk/wasm/examples/build.sh",
            name.display()
        );
    }
}

/// The same configurations and packets for the modules in C and in Rust.
#[test]
fn modules_in_c_and_in_rust_do_the_same() {
    let library = library();
    let in_rust = compilers()
        .into_iter()
        .enumerate()
        .map(|(n, rustc)| compile("build-rust.sh", &format!("rust-{n}"), Some(&rustc)));
    for folder in [sdk().join("modules")].into_iter().chain(in_rust) {
        let at = |module: &str| folder.join(module).display().to_string();
        for text in EXAMPLES {
            let text = text
                .replace("ttl.wasm", &at("ttl.wasm"))
                .replace("firewall.wasm", &at("firewall.wasm"))
                .replace("scan.wasm", &at("scan.wasm"));
            for (workers, burst) in [(1, 1), (1, 64), (3, 4)] {
                example::run(&text, &library, workers, burst)
                    .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            }
        }
    }
}

#[test]
fn a_tunnel_pushes_and_pulls_headers() {
    let tunnel = sdk().join("modules/tunnel.wasm");
    let text = format!(
        "inside -> t :: WasmElement({}) -> outside; back -> [1]t[1] -> inner
> inside 10.0.0.1:5 > 10.0.0.2:6 udp ttl 9
< outside 192.0.2.1:4000 > 192.0.2.2:4000 udp df nocheck data 4500001c0000000009119dcf0a0000010a000002000500060008ebd0 ; dst 192.0.2.2
> back 192.0.2.2:4000 > 192.0.2.1:4000 udp data 4500001c00000000091198d20a0000020a00000100060005000886b1
< inner hex 4500001c00000000091198d20a0000020a00000100060005000886b1 ; dst 192.0.2.1
> back 192.0.2.2:4001 > 192.0.2.1:4001 udp
= t.drops.not_tunnelled 1
",
        tunnel.display()
    );
    example::run(&text, &library(), 1, 1).unwrap_or_else(|error| panic!("{error}"));
}

const EXAMPLES: [&str; 4] = [
    "in -> CheckIPHeader -> ttl :: WasmElement(ttl.wasm) -> CheckIPHeader -> out; ttl[1] -> expired
> in 1.0.0.1:1 > 2.0.0.2:2 udp ttl 64
> in 1.0.0.1:1 > 2.0.0.2:2 tcp ttl 2 len 1000
> in 1.0.0.1:1 > 2.0.0.2:2 udp ttl 1
> in 1.0.0.1:1 > 2.0.0.2:2 udp ttl 0
< out 1.0.0.1:1 > 2.0.0.2:2 udp ttl 63
< out 1.0.0.1:1 > 2.0.0.2:2 tcp ttl 1 len 1000
< expired 1.0.0.1:1 > 2.0.0.2:2 udp ttl 1
< expired 1.0.0.1:1 > 2.0.0.2:2 udp ttl 0
= ttl.decremented 2
",
    "in -> CheckIPHeader -> f :: WasmElement(firewall.wasm, 22 23, 80) -> out
> in 1.0.0.1:1 > 2.0.0.2:22 tcp
> in 1.0.0.1:1 > 2.0.0.2:23 tcp
> in 1.0.0.1:1 > 2.0.0.2:22 udp
> in 1.0.0.1:1 > 2.0.0.2:81 tcp
< out 1.0.0.1:1 > 2.0.0.2:22 udp
< out 1.0.0.1:1 > 2.0.0.2:81 tcp
= f.denied 2
= f.drops.denied_port 2
= f.denied_ports 22\\n23\\n80
! f.deny 81
> in 1.0.0.1:1 > 2.0.0.2:81 tcp
= f.drops.denied_port 3
! f.reset
= f.denied 0
! f.config firewall.wasm, 443
= f.denied_ports 443
",
    "in -> s :: WasmElement(scan.wasm, needle) -> out; s[1] -> found
> in 1.0.0.1:1 > 2.0.0.2:2 udp \"a needle in hay\"
> in 1.0.0.1:1 > 2.0.0.2:2 udp \"only hay\"
< out 1.0.0.1:1 > 2.0.0.2:2 udp \"only hay\"
< found 1.0.0.1:1 > 2.0.0.2:2 udp \"a needle in hay\" ; paint 1
= s.found 1
",
    "in -> ttl :: WasmElement(ttl.wasm) -> out; ttl[1] -> expired
> in hex 00
< out hex 00
",
];
