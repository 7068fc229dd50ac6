//! The rules of the house, as tests: no secret checks.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use xtask::files::{files, root, text};

/// Floor and crate, as ARCHITECTURE.md has them.
const FLOORS: &[(u8, &str)] = &[
    (0, "wire"),
    (1, "packet"),
    (1, "lang"),
    (2, "kit"),
    (2, "macros"),
    (3, "element"),
    (4, "runtime"),
    (5, "elements"),
    (5, "io"),
    (6, "middlebox"),
    (6, "wasm"),
    (6, "tenants"),
    (7, "splitbox"),
    (8, "bench"),
    (9, "castanet"),
    (10, "built"),
    // Beside the house: networks for tests and the demo; imports no room.
    (0, "lab"),
];

/// Modules of the crates that were one engine, from the bottom: each uses those before it only.
const MODULES: &[(&str, &[&str])] = &[
    (
        "element",
        &[
            "error",
            "time",
            "memory",
            "streams",
            "on",
            "bypass",
            "headers",
            "spec",
            "flow",
            "fate",
            "declaration",
            "shared",
            "device",
            "output",
            "files",
            "args",
            "account",
            "resource",
            "frames",
            "handler",
            "control",
            "setup",
            "exec",
            "cx",
            "portable_state",
            "fragment",
            "element",
            "node",
            "class",
            "manual",
            "example",
        ],
    ),
    ("runtime", &["cores", "console", "graph", "worker", "router"]),
];

/// Where `unsafe` may stand.
const UNSAFE_ROOMS: &[&str] = &["crates/packet/", "crates/io/src/sys/"];

/// Every source file: its path from the root, and its text.
fn all_sources() -> Vec<(String, String)> {
    files(&["crates", "xtask"], &["rs"])
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/examples/")
}

#[test]
fn imports_go_down_and_every_crate_has_a_floor() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(&(floor, _)) = FLOORS.iter().find(|f| f.1 == name) else {
            wrong.push(format!("crates/{name} is on no floor: add it here and to ARCHITECTURE.md"));
            continue;
        };
        let manifest = text(&format!("crates/{name}/Cargo.toml"));
        let needs = manifest.split("[dev-dependencies]").next().unwrap_or_default().lines();
        for below in
            needs.filter_map(|l| l.strip_prefix("castanet-")?.split(['.', ' ', '=']).next())
        {
            let other = FLOORS.iter().find(|f| f.1 == below).map_or(u8::MAX, |f| f.0);
            if other >= floor {
                wrong.push(format!("{name} (floor {floor}) imports {below} (floor {other})"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports go down:\n{}", wrong.join("\n"));
}

/// Modules at the top of a crate that the code of module `own` names by `crate::`, or by `super::`
/// where it stands at the top itself.
fn used_modules(code: TokenStream, at_top: bool) -> Vec<String> {
    let (mut used, mut last) = (Vec::new(), [String::new(), String::new(), String::new()]);
    for token in code {
        let word = match &token {
            TokenTree::Ident(word) => word.to_string(),
            TokenTree::Punct(punct) => punct.as_char().to_string(),
            TokenTree::Group(group) => {
                if group.delimiter() == proc_macro2::Delimiter::Brace && starts_path(&last, at_top)
                {
                    used.extend(first_words(group.stream()));
                }
                used.extend(used_modules(group.stream(), at_top));
                String::new()
            }
            TokenTree::Literal(_) => String::new(),
        };
        if matches!(token, TokenTree::Ident(_)) && starts_path(&last, at_top) {
            used.push(word.clone());
        }
        last.rotate_left(1);
        last[2] = word;
    }
    used
}

/// Whether the last three tokens are `crate::`, or `super::` at the top.
fn starts_path(last: &[String; 3], at_top: bool) -> bool {
    let root = last[0] == "crate" || at_top && last[0] == "super";
    root && last[1] == ":" && last[2] == ":"
}

/// The first word of each path in a group of imports.
fn first_words(code: TokenStream) -> Vec<String> {
    let (mut words, mut first) = (Vec::new(), true);
    for token in code {
        match token {
            TokenTree::Ident(word) if first => {
                words.push(word.to_string());
                first = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => first = true,
            _ => {}
        }
    }
    words
}

/// Returns the faults of the arrows of one file, at this path below `src`.
fn wrong_arrows(order: &[&str], path: &str, text: &str) -> Vec<String> {
    let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let at_top = !path.contains('/') || path.ends_with("/mod.rs") && path.matches('/').count() == 1;
    let place = |name: &str| order.iter().position(|it| *it == name);
    let Some(own) = place(module) else {
        return vec![format!("module `{module}` has no place: add it here")];
    };
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let code: TokenStream = code.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
    let used = used_modules(code, at_top);
    let up = used.iter().filter(|used| place(used).is_some_and(|place| place > own));
    up.map(|used| format!("{path}: `{module}` uses `{used}`, which is above it")).collect()
}

#[test]
fn arrows_between_modules_go_down() {
    let mut wrong = Vec::new();
    for (name, order) in MODULES {
        let start = format!("crates/{name}/src/");
        for (path, text) in all_sources() {
            let Some(path) = path.strip_prefix(&start).filter(|it| *it != "lib.rs") else {
                continue;
            };
            wrong.extend(wrong_arrows(order, path, &text));
        }
    }
    assert!(wrong.is_empty(), "arrows go down:\n{}", wrong.join("\n"));
}

#[test]
fn planted_arrows_up_are_found() {
    let order = ["low", "high"];
    let wrong = |path, text| wrong_arrows(&order, path, text).len();
    assert_eq!(wrong("low.rs", "use crate::high::Thing;"), 1);
    assert_eq!(wrong("low/part.rs", "use crate::{high::Thing, low};"), 1);
    assert_eq!(wrong("low/mod.rs", "fn f() { super::high::f() }"), 1);
    assert_eq!(wrong("high.rs", "use crate::low::Thing;"), 0);
    assert_eq!(wrong("other.rs", ""), 1);
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let word = ["unsafe", " {"].concat();
    for (path, text) in all_sources() {
        let allowed = UNSAFE_ROOMS.iter().any(|room| path.starts_with(room));
        assert!(allowed || !text.contains(&word), "{path} has {word}");
    }
    for (_, name) in FLOORS.iter().filter(|f| !matches!(f.1, "packet" | "io" | "macros")) {
        let main = if *name == "built" { "main" } else { "lib" };
        let lib = text(&format!("crates/{name}/src/{main}.rs"));
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}

#[test]
fn every_file_opens_with_a_sentence() {
    for (path, text) in all_sources() {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! "), "{path} opens with `{first}`");
    }
}

#[test]
fn files_and_functions_stay_readable() {
    let mut long = Vec::new();
    for (path, text) in all_sources().into_iter().filter(|(path, _)| !is_test(path)) {
        let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().count() - examples(code);
        let most = if is_element(&path, code) { 150 } else { 600 };
        if lines > most {
            let what = "lines without tests and examples";
            long.push(format!("{path} has {lines} {what}, more than {most}"));
        }
        let file = syn::parse_file(code).unwrap_or_else(|e| panic!("{path}: {e}"));
        Functions { path: &path, long: &mut long }.visit_file(&file);
    }
    assert!(long.is_empty(), "divide these:\n{}", long.join("\n"));
}

/// Whether a file holds an element, rather than what several share.
fn is_element(path: &str, code: &str) -> bool {
    let derives = |line: &str| line.starts_with("#[derive(") && line.contains("Element");
    path.starts_with("crates/elements/src") && code.lines().any(derives)
}

/// Lines of examples in doc comments: they are tests.
fn examples(code: &str) -> usize {
    let mut inside = false;
    let counted = code.lines().filter(|line| {
        let fence = line.trim_start().strip_prefix("/// ```");
        let was = inside;
        inside = fence.map_or(inside, |kind| kind == "click");
        was || inside
    });
    counted.count()
}

struct Functions<'a> {
    path: &'a str,
    long: &'a mut Vec<String>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        if lines > 60 {
            let (path, name) = (self.path, &signature.ident);
            self.long.push(format!("{path}: fn {name} has {lines} lines, more than 60"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.measure(&it.sig, &it.block);
        visit::visit_item_fn(self, it);
    }
    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.measure(&it.sig, &it.block);
        visit::visit_impl_item_fn(self, it);
    }
}

/// Types through which elements could share state, or look at the clock.
const SHARING: &[&str] = &[
    "Cell",
    "Instant",
    "LazyCell",
    "LazyLock",
    "Mutex",
    "OnceCell",
    "OnceLock",
    "RefCell",
    "RwLock",
    "SystemTime",
    "UnsafeCell",
    "thread_local",
];

/// Where elements stand.
const ELEMENTS: &[&str] = &[
    "crates/elements/src",
    "crates/io/src/elements",
    "crates/middlebox/src",
    "crates/splitbox/src",
    "crates/wasm/src",
];

/// Files of elements that need such a type all the same, and why.
const SHARING_ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/io/src/elements/tx_queue.rs",
        "Instant",
        "a sender that blocks waits within its turn, for which the time stands still",
    ),
    (
        "crates/middlebox/src/connections/entry.rs",
        "AtomicU8",
        "marks of a connection in an RwShared table, which packets of all workers set while they read",
    ),
];

/// The elements of a file that have `init` or `start`, and those that have `can_take_state`.
#[derive(Default)]
struct Beginners(Vec<String>);

impl<'ast> Visit<'ast> for Beginners {
    fn visit_item_impl(&mut self, it: &'ast syn::ItemImpl) {
        let name = it.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let kind = name.map(|name| name.ident.to_string()).unwrap_or_default();
        let has = |wanted: &str| {
            let functions = it.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                _ => None,
            });
            functions.into_iter().any(|name| name == wanted)
        };
        if ["PerBatch", "Source"].contains(&kind.as_str())
            && (has("init") || has("start"))
            && !has("can_take_state")
        {
            self.0.push(kind);
        }
    }
}

#[test]
fn who_opens_something_says_when_it_is_the_same() {
    let rooms = ["crates/elements/src", "crates/io/src"];
    for (path, text) in all_sources() {
        if rooms.iter().any(|room| path.starts_with(room)) {
            let mut found = Beginners::default();
            found.visit_file(&syn::parse_file(&text).unwrap_or_else(|e| panic!("{path}: {e}")));
            let wrong = found.0;
            assert!(
                wrong.is_empty(),
                "{path}: {wrong:?} has `init` or `start` without `can_take_state`"
            );
        }
    }
}

#[test]
fn elements_share_nothing() {
    let mut unused: Vec<_> = SHARING_ALLOWED.iter().map(|&(path, word, _)| (path, word)).collect();
    for (path, text) in all_sources() {
        if is_test(&path) || !ELEMENTS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        for word in sharing_words(&text) {
            let allowed = SHARING_ALLOWED.iter().any(|it| (it.0, it.1) == (&path, &word));
            assert!(allowed, "{path} has {word}: state belongs in Local");
            unused.retain(|it| *it != (&path, &word));
        }
    }
    assert!(unused.is_empty(), "these files need no exception any more: {unused:?}");
}

/// The words in a file of an element by which it could share state, or look at the clock.
fn sharing_words(text: &str) -> Vec<String> {
    let code: TokenStream = text.parse().unwrap_or_else(|e| panic!("{e}:\n{text}"));
    let mut words = identifiers(code);
    words.retain(|word| SHARING.contains(&word.as_str()) || word.starts_with("Atomic"));
    words.extend(text.contains("static mut").then(|| "static mut".to_owned()));
    words
}

#[test]
fn planted_sharing_is_found() {
    assert_eq!(sharing_words("struct S(Mutex<u8>, std::sync::atomic::AtomicU8);").len(), 2);
    assert_eq!(sharing_words("static mut COUNT: u8 = 0;"), ["static mut"]);
    assert!(sharing_words("/// A Mutex.\nstruct S(u8);").is_empty());
}

/// Every identifier; what stands in strings and comments is none.
fn identifiers(code: TokenStream) -> Vec<String> {
    code.into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(word) => vec![word.to_string()],
            TokenTree::Group(group) => identifiers(group.stream()),
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn only_the_top_floor_prints() {
    for (path, text) in all_sources().into_iter().filter(|(path, _)| !is_test(path)) {
        // A build script prints what cargo is to know.
        let top = path.ends_with("/build.rs")
            || ["crates/castanet/", "crates/lab/", "xtask/"].iter().any(|it| path.starts_with(it));
        let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
            let prints = line.contains("println!(") || line.contains("eprint!(");
            assert!(top || !prints, "{path}: {line}");
        }
    }
}

#[test]
fn the_manual_is_current() {
    std::env::set_current_dir(root()).expect("is there");
    xtask::docs::check().unwrap_or_else(|e| panic!("{e}"));
}

/// Paths and Rust names, such as `Router::build`, in the pages about the code.
#[test]
fn pages_name_what_exists() {
    let sources = all_sources();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let texts = sources.iter().map(|(_, text)| text.as_str());
    let known: BTreeSet<&str> = texts.flat_map(|text| text.split(|c| !is_name(c))).collect();
    let mut pages = files(&["docs/design"], &["md"]);
    pages.push(("ARCHITECTURE.md".into(), text("ARCHITECTURE.md")));
    let mut wrong = Vec::new();
    for (page, text) in &pages {
        for code in text.split('`').skip(1).step_by(2) {
            let exists = match code.split_once("::") {
                Some(_) if code.chars().all(|c| is_name(c) || c == ':') => {
                    code.split("::").all(|name| known.contains(name))
                }
                None if code.starts_with("crates/") => root().join(code).exists(),
                _ => true,
            };
            if !exists {
                wrong.push(format!("{page}: `{code}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "these do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn every_dependency_has_its_reason() {
    let (manifest, page) = (text("Cargo.toml"), text("ARCHITECTURE.md"));
    let list = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let list = list.split("\n[").next().unwrap_or_default();
    for name in list.lines().filter_map(|l| l.split_once(" = ").map(|(name, _)| name.trim())) {
        let named = name.starts_with("castanet-") || page.contains(&format!("`{name}`"));
        assert!(named, "ARCHITECTURE.md does not say why {name} is used");
    }
}
