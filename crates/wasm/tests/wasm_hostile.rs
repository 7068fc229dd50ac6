//! Hostile modules: each is refused, or costs a batch and nothing else.
#![cfg(feature = "engine")]

use castanet_bench::example;
use castanet_element::class::Library;
use castanet_element::time::Time;
use castanet_packet::Packet;
use castanet_wasm::{CLASSES, Fault, Limits, Meter, Module, ModuleInstance, copy_in, copy_out};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const LIMITS: Limits = Limits { instructions: 100_000, memory: 1 << 20, meter: Meter::Fuel };

/// A module whose description lies at 256: 32 bytes of each of 4 packets, 16 bytes of headroom, annotations.
const GOOD: &str = r#"(module
  (memory (export "memory") 1)
  (data (i32.const 256) "\3c\00\00\00" "\00\00\00\00" "\20\00\00\00" "\10\00\00\00" "\04\00\00\00"
    "\00\10\00\00" "\00\20\00\00" "\00\30\00\00" "\00\04\00\00"
    "\00\08\00\00" "\01\00\00\00" "\10\08\00\00" "\01\00\00\00" "\00\00\00\00" "\00\00\00\00")
  (data (i32.const 2048) "\00\09\00\00" "\10\09\00\00" "\00\00\00\00" "\00\00\00\00"
    "\20\09\00\00" "\30\09\00\00")
  (data (i32.const 2304) "unwanted\00")
  (data (i32.const 2320) "Packets.\00")
  (data (i32.const 2336) "seen\00")
  (func (export "castanet_abi_version") (result i32) (i32.const 1))
  (func (export "castanet_module") (result i32) (i32.const 256))
  (func (export "castanet_init") (param i32) (result i32) INIT)
  (func $process (export "castanet_process") (param i32) PROCESS)
  MORE)"#;

fn wat(init: &str, process: &str, more: &str) -> String {
    GOOD.replace("INIT", init).replace("PROCESS", process).replace("MORE", more)
}

fn bytes(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn made(text: &str) -> Result<ModuleInstance, String> {
    Module::compile(&bytes(text), LIMITS)?.instantiate("", Time::default())
}

fn with_process(process: &str) -> ModuleInstance {
    made(&wat("i32.const 0", process, "")).unwrap_or_else(|error| panic!("{error}\n{process}"))
}

/// Sends packets through an instance; returns them with the indexes of their fates.
fn run(instance: &mut ModuleInstance, lengths: &[usize]) -> Result<Vec<(Packet, u8)>, Fault> {
    let packet =
        |length: &usize| Packet::from_bytes(&(0..*length).map(|n| n as u8).collect::<Vec<_>>());
    let mut packets: Vec<Packet> = lengths.iter().map(packet).collect();
    let mut fates = vec![0; packets.len()];
    let (memory, interface) = instance.memory_mut();
    copy_in(memory, interface, &packets, 0);
    instance.process(packets.len(), Time::default())?;
    let (memory, interface) = instance.memory_mut();
    copy_out(memory, interface, &mut packets, 2, &mut fates)?;
    Ok(packets.into_iter().zip(fates).collect())
}

#[test]
fn a_good_module_forwards_what_it_gets() {
    let done = run(&mut with_process(""), &[0, 1, 31, 32, 1500][..4]).expect("is good");
    assert_eq!(
        done.iter().map(|it| (it.0.len(), it.1)).collect::<Vec<_>>(),
        [(0, 0), (1, 0), (31, 0), (32, 0)]
    );
    // To output 1, painted; then dropped for the module's reason.
    let out = with_process("(i32.store16 (i32.const 4104) (i32.const 1))").and_run(&[60]);
    assert_eq!(out.expect("is good")[0].1, 1);
    let out = with_process("(i32.store16 (i32.const 4104) (i32.const 0x8000))").and_run(&[60]);
    assert_eq!(out.expect("is good")[0].1, 251);
}

trait AndRun {
    fn and_run(self, lengths: &[usize]) -> Result<Vec<(Packet, u8)>, Fault>;
}

impl AndRun for ModuleInstance {
    fn and_run(mut self, lengths: &[usize]) -> Result<Vec<(Packet, u8)>, Fault> {
        run(&mut self, lengths)
    }
}

#[test]
fn malformed_modules_are_refused() {
    let refused = |bytes: &[u8]| match Module::compile(bytes, LIMITS) {
        Ok(module) => module.instantiate("", Time::default()).map(drop).unwrap_err(),
        Err(error) => error,
    };
    let good = wat("i32.const 0", "", "");
    let of = |text: &str| refused(&bytes(text));
    let without = |what: &str| {
        of(&good.replace(
            what,
            &what
                .replace("export", "export \"x\") (export")
                .replace("castanet_", "other_")
                .replace("\"memory\"", "\"other\""),
        ))
    };
    for (said, wanted) in [
        (refused(b""), "is no WebAssembly module: it does not begin with `\\0asm`"),
        (refused(b"not a module"), "is no WebAssembly module: it does not begin with `\\0asm`"),
        (
            refused(b"\0asm\x0d\0\x01\0")[..55].to_owned(),
            "is no WebAssembly module: unknown binary version and en",
        ),
        (refused(&vec![0; 5 << 20]), "has 5.0 MiB; a module can have 4.0 MiB"),
        (without("(export \"memory\")"), "does not export its memory as `memory`"),
        (without("(export \"castanet_init\")"), "does not export the function `castanet_init`"),
        (
            of(&good.replace(
                "(func (export \"castanet_abi_version\") (result i32) (i32.const 1))",
                "(func (export \"castanet_abi_version\") (result i64) (i64.const 1))",
            )),
            "exports `castanet_abi_version` not as (type (func (result i32)))",
        ),
        (
            of(&good.replace("(result i32) (i32.const 1)", "(result i32) (i32.const 9)")),
            "has version 9 of the interface; Castanet has 1",
        ),
        (
            of(&good.replace("\") 1)", "\") 17)")),
            "begins with 1.1 MiB of memory; MEMORY allows 1.0 MiB",
        ),
        (
            of(&good
                .replace("(module\n", "(module (import \"env\" \"open\" (func (param i32)))\n")),
            "imports `open` from `env`; a module can import `log`, `now` and `random` from `castanet`",
        ),
        (
            of(&good.replace(
                "(module\n",
                "(module (import \"castanet\" \"now\" (func (param i32)))\n",
            )),
            "imports `now` with other types than (type (func (result i64)))",
        ),
        (
            of(&wat("i32.const 0", "", "(func $loop (loop (br 0))) (start $loop)")),
            "cannot be started: the module reached a limit: 50000000 instructions in one call",
        ),
        (
            of(&wat("(loop (br 0)) (unreachable)", "", "")),
            "cannot be started: the module reached a limit: 50000000 instructions in one call",
        ),
        (
            of(&wat("i32.const -3", "", "(data (i32.const 12288) \"bad\")")),
            "refuses its configuration: bad",
        ),
        (
            of(&good.replace("\\3c", "\\3b")),
            "the module's description has 59 bytes; it should have 60",
        ),
        (
            of(&good.replace("\"\\20\\00\\00\\00\"", "\"\\00\\00\\00\\01\"")),
            "`snap` of the module is 16777216; it can be 0 to 16384",
        ),
        (
            of(&good.replace("\\00\\20\\00\\00", "\\00\\ff\\ff\\00")),
            "`annotations` of the module lies at 16776960 with 64 bytes; its memory has 65536",
        ),
        (
            of(&good.replace("unwanted", "un wante")),
            "the reason \"un wante\" of the module is no name: lower-case letters, digits and `_`",
        ),
        (
            of(&good.replace("unwanted\\00", "trap\\00")),
            "two reasons of the module are called `trap`",
        ),
        (
            of(&good.replace("(result i32) (i32.const 256)", "(result i32) (i32.const -4)")),
            "the module's description lies at 4294967292, outside of the module's memory",
        ),
        (
            of(&wat("i32.const 0", "(memory.fill (i32.const 0) (i32.const 0) (local.get 0))", "")),
            "function 3 has `memory.fill` without a constant length of at most 1024 before it, which LIMIT \
             cannot bound; compile without bulk memory operations (docs/wasm.md says how)",
        ),
    ] {
        assert_eq!(said, wanted);
    }
}

#[test]
fn faults_end_the_call() {
    let fault = |process: &str| with_process(process).and_run(&[60]).map(drop).unwrap_err();
    let limit = |why: &str| Fault::Limit(why.into());
    let instructions = limit("100000 instructions in one call");
    assert_eq!(fault("(loop (br 0))"), instructions);
    assert_eq!(fault("(call $process (local.get 0))"), limit("its stack is full"));
    assert_eq!(
        fault("(loop (drop (memory.grow (i32.const 1))) (br 0))"),
        limit("forcing trap when growing memory to 1114112 bytes; MEMORY allows 1.0 MiB")
    );
    assert_eq!(fault("unreachable"), Fault::Trap("wasm `unreachable` instruction executed".into()));
    assert_eq!(
        fault("(i32.store (i32.const -8) (i32.const 0))"),
        Fault::Trap("out of bounds memory access".into())
    );
    assert_eq!(
        fault("(drop (i32.div_s (i32.const 1) (i32.const 0)))"),
        Fault::Trap("integer divide by zero".into())
    );
}

#[test]
fn malformed_answers_are_faults() {
    let answer = |store: &str| with_process(store).and_run(&[60]).map(drop).unwrap_err();
    let outside = Fault::Answer("a packet outside of its slot");
    let bytes = Fault::Answer("changed bytes outside of the packet or its slot");
    let (port, reason) = (
        Fault::Answer("an output that is not connected"),
        Fault::Answer("a reason to drop that the module does not declare"),
    );
    // The slot lies at 4096, its packet at 4128.
    assert_eq!(answer("(i32.store16 (i32.const 4104) (i32.const 2))"), port);
    assert_eq!(answer("(i32.store16 (i32.const 4104) (i32.const 0x7fff))"), port);
    assert_eq!(answer("(i32.store16 (i32.const 4104) (i32.const 0x8001))"), reason);
    assert_eq!(answer("(i32.store16 (i32.const 4100) (i32.const 15))"), outside);
    assert_eq!(answer("(i32.store16 (i32.const 4100) (i32.const 65))"), outside);
    assert_eq!(answer("(i32.store16 (i32.const 4100) (i32.const 0))"), outside);
    assert_eq!(answer("(i32.store (i32.const 4096) (i32.const 61))"), outside);
    assert_eq!(answer("(i32.store (i32.const 4096) (i32.const -1))"), outside);
    assert_eq!(answer("(i32.store (i32.const 4106) (i32.const 0x00210000))"), bytes);
    assert_eq!(answer("(i32.store (i32.const 4106) (i32.const 0xffff0000))"), bytes);
    // A module that writes over all of its memory breaks only its own answers.
    let wipes = "(local $at i32) (loop (i32.store (local.get $at) (i32.const -1))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if 0 (i32.lt_u (local.get $at) (i32.const 65536))))";
    let limits = Limits { instructions: 1_000_000, ..LIMITS };
    let module =
        Module::compile(&self::bytes(&wat("i32.const 0", wipes, "")), limits).expect("is good");
    let mut instance = module.instantiate("", Time::default()).expect("is good");
    assert_eq!(run(&mut instance, &[60]).map(drop).unwrap_err(), reason);
}

#[test]
fn bounds_move_within_the_slot() {
    let moved = |store: &str, length| with_process(store).and_run(&[length]).expect("is right");
    // Pulled by four bytes, and cut to ten.
    let pulled =
        "(i32.store16 (i32.const 4100) (i32.const 36)) (i32.store (i32.const 4096) (i32.const 10))";
    assert_eq!(moved(pulled, 60)[0].0.bytes(), [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    // Two bytes in front; one of them is written.
    let pushed = "(i32.store16 (i32.const 4100) (i32.const 30)) (i32.store (i32.const 4096) (i32.const 62))
        (i32.store8 (i32.const 4127) (i32.const 99)) (i32.store (i32.const 4106) (i32.const 0x00020000))";
    assert_eq!(moved(pushed, 60)[0].0.bytes()[..4], [0, 99, 0, 1]);
    // One byte more at the end of a packet that the module sees whole.
    let longer =
        "(i32.store (i32.const 4096) (i32.const 4)) (i32.store8 (i32.const 4131) (i32.const 7))
        (i32.store (i32.const 4106) (i32.const 0x00040003))";
    assert_eq!(moved(longer, 3)[0].0.bytes(), [0, 1, 2, 7]);
}

#[test]
fn imports_have_bounds_and_castanets_clock() {
    let imports = r#"(module (import "castanet" "now" (func $now (result i64)))
        (import "castanet" "random" (func $random (result i64)))
        (import "castanet" "log" (func $log (param i32 i32)))
"#;
    let with = |process: &str| {
        let text = wat("i32.const 0", process, "").replace("(module\n", imports);
        made(&text).unwrap_or_else(|error| panic!("{error}"))
    };
    let mut clock =
        with("(i64.store (i32.const 0) (call $now)) (i64.store (i32.const 8) (call $random))");
    clock.seed(7);
    clock.process(1, Time(1_000_000_000_000_000_000)).expect("is good");
    assert_eq!(clock.memory()[..8], 1_000_000_000_000_000_000u64.to_le_bytes());
    let first = clock.memory()[8..16].to_vec();
    clock.seed(7);
    clock.process(1, Time(5)).expect("is good");
    assert_eq!(clock.memory()[8..16], first, "the seed decides");
    let mut chatty = with("(loop (call $log (i32.const 2304) (i32.const 8)) (br 0))");
    assert!(matches!(chatty.process(1, Time(0)), Err(Fault::Limit(_))));
    assert_eq!(chatty.take_log(), ["unwanted"; 8]);
    let mut outside = with("(call $log (i32.const -1) (i32.const -1))");
    assert!(matches!(outside.process(1, Time(0)), Err(Fault::Trap(_))));
}

/// The classes, with hostile modules in the current folder.
fn library() -> (Library, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm-hostile");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    (library, folder)
}

#[test]
fn a_neighbour_is_not_touched() {
    let (library, folder) = library();
    for (name, process, reason) in [
        ("loop", "(loop (br 0))", "limit"),
        ("bomb", "(loop (drop (memory.grow (i32.const 1))) (br 0))", "limit"),
        ("deep", "(call $process (local.get 0))", "limit"),
        ("trap", "unreachable", "trap"),
        ("liar", "(i32.store16 (i32.const 4104) (i32.const 99))", "bad_answer"),
    ] {
        let file = folder.join(format!("{name}.wasm"));
        std::fs::write(&file, bytes(&wat("i32.const 0", process, ""))).expect("can be written");
        let file = file.display();
        let mut text = format!(
            "bad -> w :: WasmElement({file}, LIMIT 10000, MEMORY 1024) -> out\ngood -> c :: Counter -> neighbour\n"
        );
        for n in 0..8 {
            text += "> bad 1.0.0.1 > 2.0.0.2 udp\n> good 1.0.0.1 > 2.0.0.2 udp\n";
            text += "< neighbour 1.0.0.1 > 2.0.0.2 udp\n";
            // Three faults, and one more after each pause.
            text += if n < 3 { "" } else { "+ 60s\n" };
        }
        // The fourth packet came while the module was cut off.
        text += "= c.count 8\n= w.faults 7\n= w.drops.cut_off 1\n";
        text += &format!("= w.drops.{reason} 7\n");
        example::run(&text, &library, 1, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any bytes are refused with a message, or make a module that runs within its limits.
    #[test]
    fn changed_bytes_of_a_module_harm_nobody(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        lengths in prop::collection::vec(0usize..100, 1..=4),
    ) {
        let process = "(i32.store16 (i32.const 4104) (i32.const 1)) (i32.store8 (i32.const 4128) (i32.const 5))
            (i32.store (i32.const 4106) (i32.const 0x00010000))";
        let mut module = bytes(&wat("i32.const 0", process, ""));
        for (place, byte) in changes {
            let place = place.index(module.len());
            module[place] = byte;
        }
        match Module::compile(&module, LIMITS).and_then(|it| it.instantiate("a", Time::default())) {
            Err(message) => prop_assert!(!message.trim().is_empty()),
            Ok(mut instance) => _ = (0..3).all(|_| {
                let fits = instance.interface() == with_process("").interface();
                fits && run(&mut instance, &lengths).is_ok()
            }),
        }
    }

    /// Any answers lead to packets whose bounds hold, or to a fault.
    #[test]
    fn any_answer_is_taken_or_refused(
        words in prop::collection::vec(any::<u64>(), 6),
        near in prop::collection::vec((0u16..80, 0u32..80, 0u16..60, 0u16..80, 0u16..3), 3),
        is_near in any::<bool>(),
        lengths in prop::collection::vec(0usize..100, 3),
    ) {
        let mut instance = with_process("");
        let packets: Vec<Packet> = lengths.iter().map(|n| Packet::from_bytes(&vec![7; *n])).collect();
        let mut packets = packets;
        let (memory, interface) = instance.memory_mut();
        copy_in(memory, interface, &packets, 0);
        for n in 0..3 {
            let place = 4096 + 64 * n;
            let (data, length, from, to, verdict) = near[n];
            if is_near {
                memory[place..place + 4].copy_from_slice(&length.to_le_bytes());
                memory[place + 4..place + 6].copy_from_slice(&data.to_le_bytes());
                memory[place + 8..place + 10].copy_from_slice(&verdict.to_le_bytes());
                memory[place + 10..place + 12].copy_from_slice(&from.to_le_bytes());
                memory[place + 12..place + 14].copy_from_slice(&to.to_le_bytes());
            } else {
                for (at, word) in words[2 * n..2 * n + 2].iter().enumerate() {
                    memory[place + 8 * at..place + 8 * at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        let mut fates = vec![0; 3];
        let done = copy_out(memory, interface, &mut packets, 2, &mut fates);
        for packet in &packets {
            prop_assert!(packet.check_bounds().is_ok() && packet.len() <= 100 + 16);
        }
        if done.is_ok() {
            prop_assert!(fates.iter().all(|fate| *fate < 2 || *fate == 251));
        }
    }
}
