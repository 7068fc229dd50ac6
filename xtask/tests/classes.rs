//! Rules for the classes of all rooms together, those that need devices too.

use castanet_element::class::Class;
use castanet_element::manual;
use castanet_elements::families::{FAMILIES, see_also};
use std::collections::BTreeSet;
use xtask::docs::rooms;
use xtask::files::text;

fn classes() -> impl Iterator<Item = &'static Class> {
    rooms().into_iter().flat_map(|(_, classes)| classes)
}

#[test]
fn every_doc_is_a_sentence() {
    let mut wrong = Vec::new();
    for class in classes() {
        let name = class.spec.class;
        let docs = class.args.iter().map(|a| a.doc).chain(class.fates.iter().map(|f| f.doc));
        let handlers = (class.reads)().into_iter().chain((class.writes)()).map(|h| h.doc);
        wrong.extend(
            docs.chain(handlers)
                .filter(|doc| !doc.ends_with('.'))
                .map(|doc| format!("{name}: `{doc}`")),
        );
        let first = class.spec.doc.lines().next().unwrap_or_default();
        if !first.ends_with('.') || first.len() > 100 {
            wrong.push(format!("{name}: first line `{first}`"));
        }
    }
    assert!(wrong.is_empty(), "no sentences:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_is_named_after_its_class() {
    for class in classes() {
        let mut path = class.spec.file.trim_end_matches(".rs").rsplit('/');
        let stem = path.next().unwrap_or_default();
        assert_eq!(stem.replace('_', ""), class.spec.class.to_lowercase(), "{}", class.spec.file);
    }
}

#[test]
fn names_are_unique_over_all_rooms() {
    let mut seen = BTreeSet::new();
    for class in classes() {
        for name in [class.spec.class].iter().chain(class.spec.aliases) {
            assert!(seen.insert(*name), "{name} twice");
        }
    }
}

#[test]
fn handlers_have_one_name_each() {
    for class in classes() {
        for handlers in [(class.reads)(), (class.writes)()] {
            let mut names = BTreeSet::new();
            for handler in handlers {
                assert!(names.insert(handler.name), "{}.{} twice", class.spec.class, handler.name);
            }
        }
    }
}

#[test]
fn every_page_opens_with_the_class_and_its_sentence() {
    for class in classes() {
        let page = manual::page(class, Vec::new());
        let start = format!("# {}\n\n{}", class.spec.class, manual::summary(class));
        assert!(page.starts_with(&start), "{page}");
    }
}

#[test]
fn contributing_has_a_row_for_each_room() {
    let page = text("CONTRIBUTING.md");
    for (room, _) in castanet_elements::ROOMS {
        let module = text(&format!("crates/elements/src/{room}/mod.rs"));
        let sentence = module.lines().next().and_then(|line| line.strip_prefix("//! "));
        let row = format!("| `{room}/` | {} |", sentence.unwrap_or_default());
        assert!(page.contains(&row), "CONTRIBUTING.md, \"Which room\", wants the row {row}");
    }
}

/// The modules in the path of a Rust type that other crates cannot name.
fn private_modules(path: &str) -> Vec<String> {
    let mut private = Vec::new();
    for path in path.split(['<', '>', ',', ' ']).filter(|path| path.contains("::")) {
        let mut segments = path.split("::");
        let name = segments.next().and_then(|name| name.strip_prefix("castanet_"));
        let mut folder = format!("crates/{}/src", name.unwrap_or_default());
        let mut file = format!("{folder}/lib.rs");
        let modules: Vec<&str> = segments.collect();
        for module in &modules[..modules.len() - 1] {
            if !text(&file).lines().any(|line| line == format!("pub mod {module};")) {
                private.push(format!("{file}: `{module}` is no `pub mod`"));
            }
            folder = format!("{folder}/{module}");
            file = match xtask::files::root().join(&folder).is_dir() {
                true => format!("{folder}/mod.rs"),
                false => format!("{folder}.rs"),
            };
        }
    }
    private
}

#[test]
fn programs_that_are_built_can_name_the_classes_of_chains() {
    let types: Vec<&str> =
        classes().filter_map(|class| class.stage).map(|stage| (stage.path)()).collect();
    assert!(types.len() > 80, "{}", types.len());
    let private: BTreeSet<String> = types.iter().flat_map(|path| private_modules(path)).collect();
    assert!(private.is_empty(), "`castanet build` writes these paths: {private:#?}");
    assert_eq!(private_modules("castanet_elements::lookup::route_table::RouteTable").len(), 1);
}

#[test]
fn a_class_that_lets_packets_pass_says_so() {
    for class in classes() {
        let code = text(class.spec.file);
        let says = code.contains("const CAN_PASS: bool = true;");
        assert_eq!(code.contains("fn can_pass("), says, "{}", class.spec.file);
    }
}

#[test]
fn families_name_classes_that_exist_and_compare_them() {
    let names: BTreeSet<&str> = classes().map(|class| class.spec.class).collect();
    let mut files = BTreeSet::new();
    for family in FAMILIES {
        assert!(files.insert(family.file), "{} twice", family.file);
        assert!(
            family.file.starts_with("which-") && family.title.ends_with('?'),
            "{}",
            family.file
        );
        let mut members = BTreeSet::new();
        for (class, when, difference) in family.rows {
            assert!(names.contains(class), "{}: there is no {class}", family.file);
            assert!(members.insert(class), "{}: {class} twice", family.file);
            assert!(!when.is_empty() && !difference.is_empty(), "{}: {class}", family.file);
        }
        // Code of one word that begins with a capital is a class, one of its other names, or an
        // argument.
        let is_class = |word: &str| {
            let by_other_name = classes().any(|class| class.spec.aliases.contains(&word));
            names.contains(word) || by_other_name
        };
        for word in family.page().split('`').skip(1).step_by(2) {
            let is_name = word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(!is_name || is_class(word), "{}: there is no {word}", family.file);
        }
    }
}

#[test]
fn related_classes_name_each_other() {
    let all: Vec<&Class> = classes().collect();
    let name = |class: &Class| format!("[{0}]({0}.md)", class.spec.class);
    let related: Vec<String> = all.iter().map(|class| see_also(class, &all).join("\n")).collect();
    for (class, rows) in all.iter().zip(&related) {
        for (other, theirs) in all.iter().zip(&related) {
            let (ours, back) = (rows.contains(&name(other)), theirs.contains(&name(class)));
            assert_eq!(ours, back, "{} and {}", class.spec.class, other.spec.class);
        }
    }
    let shaper = all.iter().position(|class| class.spec.class == "RatedUnqueue").expect("is there");
    assert!(related[shaper].contains("(which-shaper.md)"));
}

#[test]
fn every_page_has_a_synopsis() {
    let page = |name: &str| {
        let class = classes().find(|class| class.spec.class == name).expect("is there");
        manual::page(class, Vec::new())
    };
    for (class, synopsis) in [
        (
            "RatedUnqueue",
            "RatedUnqueue(RATE, [BURST_DURATION time], [BURST_SIZE number], [BURST 32], \
             [ACTIVE true])\n\
             1 input (pull); 1 output (push)",
        ),
        (
            "IPFilter",
            "IPFilter(RULES..., [CACHING false])\n1 input (push); 0 or more outputs (push)",
        ),
        ("Null", "Null\n1 input (push or pull); 1 output (push or pull)"),
        ("AddressInfo", "no packets\n"),
        ("InfiniteSource", "no input; 1 output (push or pull)"),
        ("CheckPaint", "1 to 2 outputs (0: push or pull; others: push)"),
    ] {
        assert!(page(class).contains(synopsis), "{class}:\n{}", page(class));
    }
}

/// Texts that are Rust's, and that nobody writes in a configuration.
const RUST: &[&str] =
    &["Some(", "None", "::MAX", "u32", "usize", "i64", "Vec<", "&str", "Duration"];

/// Whether a default is a name of the source instead of the word or the number for it.
fn is_rust_value(value: &str, syntax: &str) -> bool {
    let is_word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let known: BTreeSet<&str> = syntax.split(is_word).collect();
    let is_free = ["text", "data", "names of fields"].iter().any(|it| syntax.contains(it));
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let unknown = value.split(is_word).filter(is_name).any(|word| !known.contains(word));
    value.contains("<<") || unknown && !is_free && !syntax.contains("annotation")
}

/// Whether the limits of a number are names.
fn has_named_limit(syntax: &str) -> bool {
    let words: Vec<&str> = syntax.split_whitespace().collect();
    let is_name =
        |word: &str| word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic());
    let is_limit = |pair: &[&str]| ["from", "to"].contains(&pair[0]) && is_name(pair[1]);
    syntax.starts_with("a number") && words.windows(2).any(is_limit)
}

#[test]
fn the_manual_has_values_as_users_write_them() {
    let mut wrong = Vec::new();
    for class in classes() {
        let name = class.spec.class;
        for arg in class.args {
            let default = arg.default.unwrap_or_default();
            if is_rust_value(default, arg.syntax) || has_named_limit(arg.syntax) {
                wrong.push(format!("{name}: {}: `{default}` is no {}", arg.name, arg.syntax));
            }
        }
        let page = manual::page(class, Vec::new());
        let found = RUST.iter().filter(|word| page.contains(**word));
        wrong.extend(found.map(|word| format!("{name}: the page says `{word}`")));
    }
    assert!(wrong.is_empty(), "values of the source:\n{}", wrong.join("\n"));
}

#[test]
fn planted_values_of_the_source_are_found() {
    assert!(is_rust_value("Range", "RANGE, NOW or FIRST"));
    assert!(is_rust_value("DEFAULT_BURST", "an integer") && is_rust_value("1<<20", "a number"));
    assert!(!is_rust_value("RANGE", "RANGE, NOW or FIRST") && !is_rust_value("0x8100", "a number"));
    assert!(
        has_named_limit("a number up to MOST") && has_named_limit("a number from -MOST to MOST")
    );
    assert!(!has_named_limit("a number from 0 to 65535 or ANNO"));
}
