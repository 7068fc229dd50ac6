//! Property test: a printed configuration reads back as the same graph.

use castanet_lang::print::{flat, pretty};
use castanet_lang::{AnyClass, FlatGraph, SourceMap, expand, parse};
use proptest::prelude::*;

fn read(text: &str) -> (FlatGraph, String, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("config", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let (graph, more) = expand(&tree, &AnyClass, &[]);
    diagnostics.append(more);
    (graph, pretty(&tree), diagnostics.render_click(&sources))
}

/// Generates declarations of `e0`, `e1`, … with configurations, then statements that connect them.
fn configuration() -> impl Strategy<Value = String> {
    let config = prop_oneof![
        Just(String::new()),
        "\\([a-z0-9 ,.]{0,12}\\)",
        Just("(\"a, )\", '\\', \\<29 2c>, /* ) */ x)".to_string()),
        Just("(1 // )\n, 2)".to_string()),
    ];
    let declared =
        prop::collection::vec((prop::sample::select(vec!["A", "Queue", "B"]), config), 1..6);
    let link = (0usize..6, 0u32..4, 0u32..4, 0usize..6, 0u8..6);
    (declared, prop::collection::vec(link, 0..12)).prop_map(|(declared, links)| {
        let mut text = "elementclass P { $x | input -> I($x) -> output }\n".to_string();
        for (i, (class, config)) in declared.iter().enumerate() {
            text += &format!("e{i} :: {class}{config};\n");
        }
        let count = declared.len();
        for (from, output, input, to, form) in links {
            let (from, to) = (from % count, to % count);
            text += &match form {
                0 => format!("e{from} [{output}] -> [{input}] e{to};\n"),
                1 => format!("e{from}[{output}] -> Print(x) -> [{input}]e{to}"),
                2 => format!("e{from} [{output}] -> P(a b) -> e{to} // c\n"),
                3 => format!("e{from} [0-{output}] => [0-{output}] e{to};"),
                4 => format!(
                    "e{from} -> {{ input -> C; input -> D -> output }} -> [{input}] e{to}\n"
                ),
                _ => format!("e{from} [{output}] => ( -> G -> ) -> e{to};\n\n\n"),
            };
            text.push(' ');
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn flat_text_reads_back(text in configuration()) {
        let (graph, formatted, errors) = read(&text);
        prop_assert_eq!(&errors, "", "{}", text);
        let printed = flat(&graph);
        let (again, _, errors) = read(&printed);
        prop_assert_eq!(&errors, "", "{}", printed);
        prop_assert_eq!(&flat(&again), &printed);
        for (a, b) in graph.elements.iter().zip(&again.elements) {
            prop_assert_eq!((&a.name, &a.class, &a.config), (&b.name, &b.class, &b.config));
        }
        let ends = |graph: &FlatGraph| -> Vec<_> {
            graph.connections.iter().map(|c| (c.from, c.to)).collect()
        };
        prop_assert_eq!(ends(&graph), ends(&again));

        let (same, twice, errors) = read(&formatted);
        prop_assert_eq!(&errors, "", "{}", formatted);
        prop_assert_eq!(&flat(&same), &printed, "{}", formatted);
        prop_assert_eq!(twice, formatted, "formatting twice");
    }
}
