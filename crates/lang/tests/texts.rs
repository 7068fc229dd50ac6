//! Golden tests of texts: errors in Castanet's form, formatted source, drawings, arguments.

use castanet_lang::print::{self, ConnectionKind, DrawingInfo, NoDrawingInfo};
use castanet_lang::{AnyClass, FlatGraph, SourceMap, args, expand, nearest, parse};

fn rich(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("config", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let known = |class: &str| ["Idle", "Counter", "Discard", "Queue"].contains(&class);
    let (_, more) = expand(&tree, &KnownClasses(&known), &[]);
    diagnostics.append(more);
    diagnostics.render_rich(&sources, false)
}

/// Known classes: a predicate, and names for suggestions.
struct KnownClasses<'a>(&'a dyn Fn(&str) -> bool);

impl castanet_lang::ClassInfo for KnownClasses<'_> {
    fn knows(&self, class: &str) -> bool {
        (self.0)(class)
    }

    fn names(&self) -> Vec<&str> {
        vec!["Idle", "Counter", "Discard", "Queue"]
    }
}

fn graph(text: &str) -> FlatGraph {
    let mut sources = SourceMap::new();
    let file = sources.add("config", text);
    let (tree, _) = parse(&mut sources, file);
    expand(&tree, &AnyClass, &[]).0
}

#[test]
fn errors_show_the_line_and_the_nearest_name() {
    assert_eq!(
        rich("# 100 \"foo.click\"\nIdle -> c :: Coutner -> Discard;\n"),
        "\
error: unknown element class 'Coutner'
   --> foo.click:100:14
    |
100 | Idle -> c :: Coutner -> Discard;
    |              ^^^^^^^
    |
    = help: did you mean 'Counter'?
"
    );
    assert_eq!(
        rich("que :: Queue;\nque :: Idle; Idle -> qeu -> Discard"),
        "\
error: redeclaration of element 'que'
 --> config:2:1
  |
2 | que :: Idle; Idle -> qeu -> Discard
  | ^^^^^^^^^^^
  |
note: element 'que' previously declared here
 --> config:1:1
  |
1 | que :: Queue;
  | ^^^^^^^^^^^^

error: undeclared element 'qeu'
 --> config:2:22
  |
2 | que :: Idle; Idle -> qeu -> Discard
  |                      ^^^
  |
  = help: did you mean 'que'?
"
    );
}

#[test]
fn errors_in_long_lines_show_a_part() {
    let text = format!("{}x -> Discard; {}", "Idle; ".repeat(100), "Idle; ".repeat(100));
    let shown = rich(&text);
    assert!(shown.contains("--> config:1:601"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() < 200), "{shown}");
}

#[test]
fn formatting() {
    let pretty = |text: &str| {
        let mut sources = SourceMap::new();
        let file = sources.add("config", text);
        let (tree, _) = parse(&mut sources, file);
        print::pretty(&tree)
    };
    let text = "elementclass E{$a|input->X($a)->output||\n$a,$b|\ninput->Y($a,$b)->output // y\n}\
                a::A->E(1)[0]->[1,2]{input->Z->output}->B;;\n\n\n\n// b\nb::B;{A} c::C /* c */ d::D";
    let formatted = "\
elementclass E { $a |
    input -> X($a) -> output;
|| $a, $b |
    input -> Y($a,$b) -> output; // y
}
a :: A -> E(1) [0] -> [1, 2] { input -> Z -> output } -> B;;

// b
b :: B;
{ A };
c :: C; /* c */
d :: D;
";
    assert_eq!(pretty(text), formatted);
    assert_eq!(pretty(formatted), formatted, "formatting twice changes nothing");
}

#[test]
fn spans_of_configuration_strings_map_to_the_source() {
    let text = "define($v 12 34) a :: A(/* c */ one, $v,\n# 7 \"x\"\n three // t\n, \"$v\")";
    let element = &graph(text).elements[0];
    let config = &element.config;
    let source = |part: &str| {
        let at = config.find(part).expect("a part of the configuration string");
        let span = element.span_of(at..at + part.len());
        &text[span.range()]
    };
    assert_eq!(source("one"), "one");
    assert_eq!(source("three"), "three");
    assert_eq!(source("12 34,"), "$v,");
    assert_eq!(source("34"), "$v");
    let quoted = config.rfind("34").expect("the second one");
    assert_eq!(&text[element.span_of(quoted..quoted + 2).range()], "$v");
}

#[test]
fn arguments() {
    let split = |text: &str| -> Vec<(String, usize)> {
        args::split(text).into_iter().map(|arg| (arg.text, arg.offset)).collect()
    };
    let owned = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
        all.iter().map(|(text, at)| (text.to_string(), *at)).collect()
    };
    assert_eq!(
        split("a, b /* , */ c , \"x, y\""),
        owned(&[("a", 0), ("b c", 3), ("\"x, y\"", 17)])
    );
    assert_eq!(split("a,,b,"), owned(&[("a", 0), ("", 2), ("b", 3)]));
    assert_eq!(split("\\<2c , 2c>, 'it,s' // ,\n"), owned(&[("\\<2c , 2c>", 0), ("'it,s'", 12)]));
    assert_eq!(split("  "), owned(&[]));
    assert_eq!(args::split_words(" a 'b c'd  \"e f\"/* */g"), ["a", "'b c'd", "\"e f\"", "g"]);
    assert_eq!(args::unquote("\"\\n\\x4142\\101\\\"\" '\\n' \\<6 8 /*x*/ 65>"), "\nBA\" \\n he");
    assert_eq!(args::unquote_bytes("\\<ff 00>\"\\<c3>\\377\""), [0xff, 0, 0xc3, 0xff]);
    assert_eq!(args::quote("a\"$\\\n\té"), "\"a\\\"\\$\\\\\\n\\t\\303\\251\"");
    assert_eq!(args::quote_if_needed("eth0:1"), "eth0:1");
    assert_eq!(args::quote_if_needed("a b"), "\"a b\"");
    assert_eq!(args::normalize("a,b // c\n,  d"), "a, b, d");
}

#[test]
fn nearest_names() {
    assert_eq!(nearest("Coutner", ["Queue", "Counter"]), Some("Counter"));
    assert_eq!(nearest("queue", ["Quine", "Queue"]), Some("Queue"));
    assert_eq!(nearest("x", ["y"]), None);
    assert_eq!(nearest("Foo", ["Queue", "Counter"]), None);
}

/// Marks the first connection as pull and the others as push.
struct FirstConnectionPull;

impl DrawingInfo for FirstConnectionPull {
    fn connection(&self, at: usize) -> ConnectionKind {
        if at == 0 { ConnectionKind::Pull } else { ConnectionKind::Push }
    }

    fn color(&self, element: usize) -> Option<String> {
        (element == 0).then(|| "#ffeecc".to_string())
    }

    fn note(&self, element: usize) -> Option<String> {
        (element == 1).then(|| "12 ns".to_string())
    }
}

#[test]
fn drawings_show_edges_ports_and_notes() {
    let flat = graph("a :: A(\"<&>\") [1] -> b :: B -> a; b -> b");
    let svg = print::svg(&flat, &FirstConnectionPull);
    assert_eq!(svg.matches("rx=\"4\"").count(), 2, "a box an element");
    assert_eq!(svg.matches("stroke-dasharray").count(), 2, "one pulled edge, and the legend");
    assert!(svg.contains("&quot;&lt;&amp;&gt;&quot;") && svg.contains("12 ns"));
    assert!(svg.contains("fill=\"#ffeecc\""));
    let dot = print::dot(&flat, &NoDrawingInfo);
    assert!(dot.contains("n0:o1:s -> n1:i0:n"), "{dot}");
    assert!(dot.contains("label=\"{{<i0> 0}|a\\nA|{<o0> 0|<o1> 1}}\""), "{dot}");
}

#[test]
fn boxes_of_a_drawing_do_not_overlap() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/router40.click");
    let text = std::fs::read_to_string(path).expect("the corpus");
    let svg = print::svg(&graph(&text), &NoDrawingInfo);
    let number = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!("{name}=\"")).expect("an attribute");
        rest.split('"').next().expect("a value").parse().expect("a number")
    };
    let boxes: Vec<[f64; 4]> = svg
        .lines()
        .filter_map(|line| line.split_once("<rect x").filter(|_| line.contains("rx=\"4\"")))
        .map(|(_, rest)| {
            let rest = format!("x{rest}");
            [" y", " width", " height"]
                .iter()
                .fold(vec![number(&rest, "x")], |mut all, name| {
                    all.push(number(&rest, name));
                    all
                })
                .try_into()
                .expect("four numbers")
        })
        .collect();
    assert!(boxes.len() >= 40, "{}", boxes.len());
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            let apart = a[0] + a[2] <= b[0]
                || b[0] + b[2] <= a[0]
                || a[1] + a[3] <= b[1]
                || b[1] + b[3] <= a[1];
            assert!(apart, "{a:?} and {b:?}");
        }
    }
}
