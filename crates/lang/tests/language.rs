//! Tests of the language's semantics: names, ports, compounds, variables.

use castanet_lang::{FlatGraph, SourceMap, expand, parse, print};

/// Classes that the tests know.
const KNOWN: &[&str] = &[
    "A",
    "B",
    "C",
    "Idle",
    "Discard",
    "Queue",
    "Print",
    "Counter",
    "Tee",
    "X",
    "Y",
    "Z",
    "InfiniteSource",
    "FlowContextDispatcher",
    "IPIn",
    "IPOut",
];

fn build_with(text: &str, vars: &[(&str, &str)]) -> (FlatGraph, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("config", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let vars: Vec<_> = vars.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let (flat, more) = expand(&tree, &|class: &str| KNOWN.contains(&class), &vars);
    diagnostics.append(more);
    (flat, diagnostics.render_click(&sources))
}

/// Returns the flat form of a configuration without errors.
#[track_caller]
fn flat(text: &str) -> String {
    let (flat, errors) = build_with(text, &[]);
    assert_eq!(errors, "", "in {text}");
    print::flat(&flat)
}

/// Returns the connections of a configuration without errors.
#[track_caller]
fn connections(text: &str) -> String {
    let all = flat(text);
    all.split_once("\n\n").map_or("", |(_, connections)| connections).replace("\n    ->", " ->")
}

/// Returns the errors of a configuration.
fn errors(text: &str) -> String {
    build_with(text, &[]).1
}

#[test]
fn anonymous_names_count_all_elements() {
    assert_eq!(
        flat("Idle -> c :: Counter -> Discard;"),
        "Idle@1 :: Idle;\nc :: Counter;\nDiscard@3 :: Discard;\n\nIdle@1 -> c\n    -> Discard@3;\n"
    );
    assert_eq!(
        flat("Idle@2 :: Idle; Idle -> Discard; Idle@2 -> Discard"),
        "Idle@2 :: Idle;\nIdle@3 :: Idle;\nDiscard@3 :: Discard;\nDiscard@4 :: Discard;\n\n\
         Idle@3 -> Discard@3;\nIdle@2 -> Discard@4;\n"
    );
}

#[test]
fn compounds_come_last_and_nest() {
    let text = "elementclass Foo { input -> Print -> output } Idle -> Foo -> Discard;";
    assert_eq!(
        flat(text),
        "Idle@1 :: Idle;\nDiscard@3 :: Discard;\nFoo@2/Print@1 :: Print;\n\n\
         Idle@1 -> Foo@2/Print@1\n    -> Discard@3;\n"
    );
    assert_eq!(
        connections(
            "a :: Idle -> x :: { input -> { input -> y :: Y -> output } -> output } -> Discard"
        ),
        "a -> x/@1/y -> Discard@3;\n"
    );
}

#[test]
fn ports_in_every_form() {
    assert_eq!(connections("a::A; b::B; a [0] -> [1] b; a[1]->b"), "a [1] -> b;\na -> [1] b;\n");
    assert_eq!(connections("a::A; b::B; a [0, 1] => [1, 0] b"), "a [1] -> b;\na -> [1] b;\n");
    assert_eq!(
        connections("a::A; b::B; a => [0-2] b"),
        "a -> b;\na [1] -> [1] b;\na [2] -> [2] b;\n"
    );
    assert_eq!(
        connections("a::A; b::B; a [0-2] ==> b"),
        "a -> b;\na [1] -> [1] b;\na [2] -> [2] b;\n"
    );
    assert_eq!(connections("a::A; b,c :: B; a -> b, c"), "a -> b;\na -> c;\n");
    assert_eq!(connections("a,b :: A; c :: C; a, b => c"), "a -> c;\nb -> [1] c;\n");
    assert_eq!(connections("a::A; b::B; a [3-] => [0, 1] b"), "a [3] -> b;\na [4] -> [1] b;\n");
    assert_eq!(connections("a::A; b::B; a [0x2] -> b"), "a [2] -> b;\n");
    assert_eq!(connections("a, b :: A; c, d :: B; a, b => c, d"), "a -> c;\nb -> d;\n");
}

#[test]
fn groups() {
    assert_eq!(
        connections("a::A; b::B; a => ( -> X -> ; [1] -> Y -> [1] ) => b"),
        "a -> X@6 -> b;\na [1] -> Y@7 -> [1] b;\n"
    );
    assert_eq!(
        errors("a::A -> ( c :: C, d :: C )"),
        "config:1: '@2' has no input 0\n",
        "a group has the ports that its input and output have"
    );
}

#[test]
fn pass_through_and_implicit_ends() {
    assert_eq!(connections("a::A -> { input -> output } -> b::B"), "a -> b;\n");
    assert_eq!(connections("a::A -> { -> X -> } -> b::B"), "a -> @2/X@1 -> b;\n");
    assert_eq!(
        connections(
            "a::A [0, 1] => [0, 1] { [1] -> X -> [0]; [0] -> Y -> [1] } [0, 1] => [0, 1] b::B"
        ),
        "a [1] -> @2/X@1 -> b;\na -> @2/Y@2 -> [1] b;\n"
    );
}

#[test]
fn overloads() {
    let text = "elementclass F { input -> A -> output || $x | input -> B($x) -> output \
                || input -> C -> output; input [1] -> C -> [1] output || ... }";
    assert!(errors(text).contains("cannot extend unknown element class 'F'"));
    let text = "elementclass Queue { $a, $b | input -> X($a $b) -> output || ... } \
                Idle -> q :: Queue(1, 2) -> Discard; Idle -> r :: Queue(1) -> Discard;";
    let out = flat(text);
    assert!(out.contains("q/X@1 :: X(1 2);"), "{out}");
    assert!(out.contains("r :: Queue(1);"), "{out}");
    let text = "elementclass P { input -> X -> output || \
                input -> Y -> output; input [1] -> Z -> [1] output } \
                a::A => P => b::B; a2::A => [0,1] P [0,1] => b2::B";
    let out = flat(text);
    assert!(out.contains("P@2/X@1") && out.contains("P@5/Z@2"), "{out}");
}

#[test]
fn keywords_and_rest() {
    let text = "elementclass F { $a, KEY $k, __REST__ $r | input -> X($a/$k/$r) -> output } \
                Idle -> f :: F(1, 2, KEY v w, 3) -> Discard";
    assert!(flat(text).contains("f/X@1 :: X(1/v w/2, 3);"));
}

#[test]
fn synonyms_and_scopes() {
    assert!(flat("elementclass Q Queue; q :: Q; Idle -> Q -> Discard").contains("Q@3 :: Queue;"));
    let text = "elementclass M { input -> N :: X -> output } elementclass X Y; a::A -> M -> X";
    assert!(flat(text).contains("M@2/N :: X;"), "the X that was in force when M was declared");
    let text = "a::A -> { elementclass K X; input -> K -> output } -> K";
    assert_eq!(errors(text), "config:1: undeclared element 'K'\n");
}

#[test]
fn variables() {
    let config = |text: &str| build_with(text, &[("V", "over")]).0.elements[0].config.clone();
    assert_eq!(config("define($a 1, $b $a$a) a :: A($b, ${a}x, ${c-def}, $c)"), "11, 1x, def, $c");
    assert_eq!(config("define($l x y z) a :: A(${l[0]} ${l[2]} ${l[9]}.)"), "x z .");
    assert_eq!(config("define($V no) a :: A($V, '$V', \"$V\")"), "over, '$V', \"over\"");
    assert_eq!(config("define($q \"a b\") a :: A($q, \"<$q>\")"), "\"a b\", \"<\\\"a b\\\">\"");
    assert_eq!(config("define($x 1) a :: A(1 /* $x */ 2 // $x\n, \"\\$x\")"), "1 2 , \"\\$x\"");
    assert_eq!(config("define($s $s$s) a :: A($s)").len() % 2, 0, "circles end");
    let text = "define($x out) a :: { $x | define($y in$x) -> X($x $y) -> } (arg); Idle -> a -> A";
    let (flat, _) = build_with(text, &[]);
    assert_eq!(flat.elements[2].config, "arg inarg");
}

#[test]
fn configuration_strings_keep_their_text() {
    let config = |text: &str| build_with(text, &[]).0.elements[0].config.clone();
    assert_eq!(
        config("a :: A( 1,  2 /* c */, (3, ')') \")\" \\<28 /*)*/> )"),
        "1,  2 , (3, ')') \")\" \\<28 /*)*/>"
    );
    assert_eq!(config("a :: A(//)\n1)"), "1");
    assert_eq!(config("a :: A(1\n# 5 \"x\"\n2)"), "1\n\n2");
    assert_eq!(config("a :: A(\u{0})"), "\u{0}");
}

#[test]
fn context_links() {
    let out = flat("a :: A ~> b :: B; a ~IP> c :: C");
    assert!(out.contains("context_flowcontextdispatcher_0 :: FlowContextDispatcher(- 0, - 1);"));
    assert!(out.contains("a -> context_flowcontextdispatcher_0\n    -> b;"), "{out}");
    assert!(out.contains(" :: IPIn;"), "{out}");
}

#[test]
fn errors_have_the_words_of_click() {
    let all = [
        ("Foo -> x", "config:1: undeclared element 'Foo'\nconfig:1: undeclared element 'x'\n"),
        ("x :: Foo; y :: Foo", "config:1: unknown element class 'Foo'\n"),
        (
            "x :: A;\nx :: B;",
            "config:2: redeclaration of element 'x'\n\
             config:1: element 'x' previously declared here\n",
        ),
        ("A :: B", "config:1: class 'A' used as element name\n"),
        ("-> A", "config:1: syntax error near '->'\n"),
        (
            "a::A; b::B; a[0,1] -> [0,1]b",
            "config:1: syntax error: many-to-many connections require '=>'\n",
        ),
        (
            "a::A; b::B;\n# 100 \"foo\"\na[0,1] => [0,1,2]b",
            "foo:100: connection mismatch: 2 outputs connected to 3 inputs\n",
        ),
        (
            "elementclass T { input -> output }\nt :: T; A -> [1] t -> B",
            "config:2: 't' has no input 1\nconfig:2: 't' input 0 unused\n",
        ),
        ("12 :: A", "config:1: element name '12' has all-digit component\n"),
        ("a :: A(1", "config:1: expected ')'\nconfig:1: '(' opened here\n"),
        (
            "elementclass F { $a | input -> A -> output || input -> B -> output }\nA -> F(1, 2) -> B",
            "config:2: no match for 'F[2 arguments, 1 input, 1 output]'\n\
             config:1: candidates are:\nconfig:1:   F(<arg>)[1 input, 1 output]\n\
             config:1:   F[1 input, 1 output]\n",
        ),
    ];
    for (text, expected) in all {
        assert_eq!(errors(text), expected, "in {text}");
    }
}
