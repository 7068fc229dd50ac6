//! Tests hostile inputs: deeply nested, huge, circular, garbage.

use std::time::{Duration, Instant};

use castanet_lang::{
    AnyClass, Diagnostics, FlatGraph, SourceMap, expand, fuzz_entry, fuzz_tools, parse,
};

fn run(bytes: impl AsRef<[u8]>) -> (FlatGraph, Diagnostics, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("config", bytes);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &AnyClass, &[]);
    diagnostics.append(more);
    let text = diagnostics.render_click(&sources);
    diagnostics.render_rich(&sources, true);
    (flat, diagnostics, text)
}

#[test]
fn ten_thousand_brackets_are_parsed() {
    for (open, close) in [("(", ")"), ("{", "}"), ("[", "]"), ("A({", "})"), ("x::{", "}")] {
        let deep = open.repeat(10_000);
        run(&deep);
        run(format!("{deep}{}", close.repeat(10_000)));
        run(format!("a :: A{deep}{}", close.repeat(10_000)));
    }
    let (_, _, text) = run("{".repeat(10_000) + &"}".repeat(10_000));
    assert!(text.contains("maximum compound element nesting depth exceeded"), "{text}");
    let config = format!("a :: A({}{})", "(".repeat(10_000), ")".repeat(10_000));
    let (flat, errors, _) = run(config);
    assert!(errors.is_empty());
    assert_eq!(flat.elements[0].config.len(), 20_000);
}

#[test]
fn cycles_of_classes_are_reported() {
    let mut sources = SourceMap::new();
    let file = sources.add(
        "config",
        "elementclass P { input -> Q -> output }\nelementclass Q { input -> R -> output }\n\
         elementclass R { input -> P -> output }\nelementclass S { input -> S -> output }",
    );
    let (tree, _) = parse(&mut sources, file);
    let (_, errors) = expand(&tree, &|_: &str| false, &[]);
    let help: Vec<_> = errors.iter().filter_map(|e| e.help.as_deref()).collect();
    assert!(
        help.contains(&"a compound element cannot contain itself: P -> Q -> R -> P"),
        "{help:?}"
    );
    assert!(help.contains(&"a compound element cannot contain itself: S -> S"), "{help:?}");
}

#[test]
fn exponential_expansion_is_bounded() {
    let mut text = "elementclass D0 { input -> A -> output }\n".to_string();
    for i in 1..=40 {
        let inner = i - 1;
        text += &format!("elementclass D{i} {{ input -> D{inner} -> D{inner} -> output }}\n");
    }
    text += "A -> D40 -> A";
    let start = Instant::now();
    let (flat, _, errors) = run(&text);
    assert!(errors.contains("elements, the limit is 1000000"), "{errors}");
    assert!(flat.elements.is_empty());
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[test]
fn exponential_substitution_is_bounded() {
    let wide = "$v".repeat(1000);
    let text = format!("define($v {wide}) a :: A($v)");
    let (_, _, errors) = run(text);
    assert!(errors.contains("too long after substitution"), "{errors}");
}

#[test]
fn a_megabyte_of_garbage_is_quick_and_short() {
    let mut seed = 1u32;
    let mut random = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % n
    };
    let bytes: Vec<u8> = (0..1 << 20).map(|_| random(256) as u8).collect();
    let signs = b"aA[]{}()->=:;,|.~$/\\\"'#01 \n";
    let signs: Vec<u8> = (0..1 << 20).map(|_| signs[random(signs.len() as u32) as usize]).collect();
    let words = "foo -> ".repeat(150_000).into_bytes();
    let undeclared: Vec<u8> = (0..100_000).flat_map(|i| format!("name{i};").into_bytes()).collect();
    let groups = "a :: A; a -> ".to_string() + &"( -> A -> ) -> ".repeat(60_000);
    let links = "a::A;".to_string() + &"a[0-65535] => [0-65535]a;".repeat(10_000);
    for text in [bytes, signs, words, undeclared, groups.into_bytes(), links.into_bytes()] {
        let start = Instant::now();
        let (_, _, errors) = run(&text);
        // An idle machine takes a second in a release build.
        let limit = if cfg!(debug_assertions) { 20 } else { 4 };
        assert!(
            start.elapsed() < Duration::from_secs(limit),
            "{:?} for {}",
            start.elapsed(),
            String::from_utf8_lossy(&text[..40])
        );
        assert!(errors.lines().count() < 400, "{}", errors.lines().count());
    }
}

#[test]
fn many_errors_are_counted() {
    let (_, diagnostics, text) = run("=;".repeat(500));
    assert_eq!(diagnostics.errors(), 500);
    assert!(text.ends_with("too many errors: 400 more messages not shown\n"), "{text}");
}

#[test]
fn line_ends_and_odd_bytes() {
    let (_, _, errors) = run("a :: A;\r\n\r\nb\r\nc\rd");
    assert_eq!(
        errors,
        "config:3: undeclared element 'b'\nconfig:4: undeclared element 'c'\n\
         config:5: undeclared element 'd'\n"
    );
    let (flat, errors, _) = run(b"// caf\xe9\na :: A(\0 x)");
    assert!(errors.is_empty(), "bytes in comments do not matter: {errors:?}");
    assert_eq!(flat.elements[0].config, "\0 x");
    let (_, errors, _) = run(b"a :: A(\xff)");
    assert_eq!(errors.warnings(), 1);
}

#[test]
fn an_unclosed_comment_is_a_warning() {
    for (text, warnings) in [("a :: A /* to the end", 1), ("a :: A /*/", 1), ("a :: A /* b */", 0)]
    {
        let (flat, found, errors) = run(text);
        assert_eq!(flat.elements.len(), 1);
        assert_eq!(
            (errors.contains("comment not closed"), found.warnings()),
            (warnings == 1, warnings)
        );
    }
}

#[test]
fn archives() {
    let member = |name: &str, data: &str| {
        let pad = if data.len() % 2 == 1 { "\n" } else { "" };
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{data}{pad}", 0, 0, 0, 644, data.len())
    };
    let archive = format!("!<arch>\n{}{}", member("pkg.uo/", "xyz"), member("config", "a :: A"));
    let mut sources = SourceMap::new();
    let file = sources.add("config", &archive);
    assert_eq!(&*sources.text(file), "a :: A");
    assert_eq!(sources.members(file)[0].name, "pkg.uo");
    assert_eq!(sources.members(file)[0].data, b"xyz");
    let (_, _, errors) = run(format!("!<arch>\n{}", member("x", "y")));
    assert_eq!(errors, "config:1: archive has no 'config' section\n");
    let (_, _, errors) = run(&archive[..archive.len() - 3]);
    assert_eq!(errors, "config:1: truncated archive\n");
}

#[test]
fn directories_and_missing_files() {
    let mut sources = SourceMap::new();
    let here = env!("CARGO_MANIFEST_DIR");
    let error = sources.load(format!("{here}/corpus")).expect_err("a directory");
    assert!(error.message.ends_with("is a directory, not a configuration"), "{}", error.message);
    let error = sources.load(format!("{here}/corpus/router4.click")).expect_err("not there");
    assert!(error.message.ends_with("router4.click: No such file or directory"));
    assert!(error.help.is_some_and(|help| help.contains("router40.click")));
}

/// Fuzzes every file of the corpus, then mutations of them for two seconds, or for
/// `CASTANET_FUZZ_SECONDS`.
#[test]
fn corpus_and_mutations() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let mut seeds: Vec<(String, Vec<u8>)> = std::fs::read_dir(dir)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("a seed")))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 24, "a corpus of {}", seeds.len());
    for (name, seed) in &seeds {
        println!("{name}");
        fuzz_entry(seed);
    }
    let patterns = std::fs::read(format!("{dir}/xform.click")).expect("the patterns");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n.max(1) as u64) as usize
    };
    let start = Instant::now();
    let wanted = std::env::var("CASTANET_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    while start.elapsed() < Duration::from_secs(wanted.unwrap_or(2)) {
        let mut text = seeds[random(seeds.len())].1.clone();
        for _ in 0..=random(6) {
            let other = &seeds[random(seeds.len())].1;
            let (from, to) = (random(other.len()), random(other.len()));
            let insertion = &other[from.min(to)..from.max(to).min(from.min(to) + 40)];
            let at = random(text.len() + 1);
            match random(4) {
                0 => drop(text.splice(at..at, insertion.iter().copied())),
                1 => drop(text.drain(at..(at + random(12)).min(text.len()))),
                2 if at < text.len() => text[at] = b"{}()[]|;,$\"'\\/#->:=\n\xff\0"[random(22)],
                _ => text.truncate(at.max(8)),
            }
        }
        let shown = String::from_utf8_lossy(&text).into_owned();
        let other = &seeds[random(seeds.len())].1;
        let several = [&text, other, &patterns, &b"a.eth1=b.eth0\nb.eth1=a.eth0"[..]].join(&0);
        let result = std::panic::catch_unwind(|| {
            fuzz_entry(&text);
            fuzz_tools(&several);
        });
        assert!(result.is_ok(), "on this text:\n{shown}\n{}", shown.escape_debug());
    }
}
