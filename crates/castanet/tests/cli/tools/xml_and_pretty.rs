//! `click2xml` and `click-pretty`.

use super::{all, complaints, file, out};
use std::process::Command;

const TEXT: &str =
    "elementclass Pair { $cap, BURST $b | input -> Queue($cap) -> Unqueue(BURST $b) -> output }
elementclass Two Pair
i :: InfiniteSource(\"<&>\") -> p :: Pair(5, BURST 1) -> t :: Tee -> d :: Discard; // the <end>
t[1] -> { input -> Counter -> output } -> Queue -> Discard;
";

#[test]
fn connections_are_in_the_order_of_the_text() {
    let text = "z :: Idle -> a :: Null -> d :: Discard; y :: Idle -> b :: Null -> [0] d;
                elementclass O { input -> i :: { j :: { input -> Null -> output } input -> j -> output } -> output }
                Idle -> O -> d;";
    let xml = out("click2xml", &["-e", text], "");
    let ends = |line: &str| {
        let end = |name: &str| line.split(name).nth(1)?.split('"').next();
        Some(format!("{} {}", end("from=\"")?, end("to=\"")?))
    };
    let outer = xml.lines().filter(|line| line.starts_with("<connection"));
    let outer: Vec<String> = outer.filter_map(ends).collect();
    assert_eq!(outer, ["z a", "a d", "y b", "b d", "Idle@6 O@7", "O@7 d"]);
    // Eight columns are a tab.
    assert!(xml.contains("\n\t  <compound"), "{xml}");
    assert!(xml.contains("\n\t    <connection from=\"input\""), "{xml}");
}

#[test]
fn configurations_as_xml() {
    let xml = out("click2xml", &["-e", TEXT], "");
    for line in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n",
        "<configuration xmlns=\"http://www.lcdf.org/click/xml/\">\n",
        "<elementclass classname=\"Pair\" classid=\"c0\" file=\"config\" line=\"1\">\n",
        "  <compound ninputs=\"1\" noutputs=\"1\" nformals=\"2\">\n",
        "    <formal number=\"0\" name=\"cap\" />\n    <formal number=\"1\" name=\"b\" key=\"BURST\" />\n",
        "    <element name=\"Queue@1\" classname=\"Queue\" file=\"config\" line=\"1\" ninputs=\"1\" \
         noutputs=\"1\" processing=\"h/l\" config=\"$cap\" />\n",
        "    <connection from=\"input\" fromport=\"0\" to=\"Queue@1\" toport=\"0\" processing=\"h\" />\n",
        "    <connection from=\"Queue@1\" fromport=\"0\" to=\"Unqueue@2\" toport=\"0\" processing=\"l\" />\n",
        "  <synonym classid=\"c0\" />\n",
        "<element name=\"i\" classname=\"InfiniteSource\" file=\"config\" line=\"3\" ninputs=\"0\" \
         noutputs=\"1\" processing=\"/h\" config=\"&quot;&lt;&amp;&gt;&quot;\" />\n",
        "<element name=\"p\" classid=\"c0\" file=\"config\" line=\"3\" ninputs=\"1\" noutputs=\"1\" \
         processing=\"h/h\" config=\"5, BURST 1\" />\n",
        "    <connection from=\"input\" fromport=\"0\" to=\"Counter@1\" toport=\"0\" processing=\"h\" />\n",
        "<connection from=\"t\" fromport=\"1\" to=\"@5\" toport=\"0\" processing=\"h\" />\n",
    ] {
        assert!(xml.contains(line), "{line}\n{xml}");
    }
    assert!(xml.ends_with("</configuration>\n"));
    assert_eq!(xml.matches("<elementclass ").count(), 3);
    assert_eq!(xml.matches("<elementclass ").count(), xml.matches("</elementclass>").count());
    well_formed(&xml);
    for option in
        ["-b", "-l", "-k", "-u", "--bsdmodule", "--linuxmodule", "--kernel", "--userlevel"]
    {
        assert_eq!(out("click2xml", &[option, "--no-flatten", "-e", TEXT], ""), xml);
    }
    for option in ["-F", "--flatten"] {
        let flat = out("click2xml", &[option, "-e", TEXT], "");
        assert!(!flat.contains("elementclass"), "{flat}");
        let line = "<element name=\"p/Queue@1\" classname=\"Queue\" file=\"config\" line=\"1\" \
                    ninputs=\"1\" noutputs=\"1\" processing=\"h/l\" config=\"5\" />\n";
        assert!(flat.contains(line), "{flat}");
        well_formed(&flat);
    }
    let target = file("out.xml", "");
    assert_eq!(out("click2xml", &["-o", &target], TEXT), "");
    assert!(std::fs::read_to_string(&target).unwrap().contains("file=\"&lt;stdin&gt;\""));
    let (status, out, err) = all("click2xml", &["-e", "Foo -> Discard"], "");
    assert_eq!(status, Some(0));
    assert!(out.contains("classname=\"Foo\""));
    assert_eq!(err, "config:1: warning: unknown element class 'Foo'\n");
    complaints("click2xml", &["-e", "Foo ->"], "");
}

/// Every tag is closed in its turn, every attribute quoted.
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(!text.contains('&') || text.contains(';'), "{text}");
        if tag.starts_with(['?', '!']) {
            continue;
        }
        let name = tag.split([' ', '\n', '/']).find(|part| !part.is_empty()).unwrap();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{xml}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn pages_link_names_to_their_meaning() {
    let page = out("click-pretty", &["-e", TEXT], "");
    for piece in [
        "<span class='c-kw'>elementclass</span> <a name='decl0'><span class='c-cd'>Pair</span></a>",
        "<span class='c-cfg'>$cap</span>",
        "<span class='c-cmt'>// the &lt;end&gt;</span>",
        "<a name='e-p'>p</a> :: <a href='#decl0'>Pair</a>",
        "<span title='t :: Tee'>t</span>[1]",
        "<li><b>d</b> :: Discard <a href='#e-d'><i>text</i></a>, <a href=\"#et-d\"><i>table</i></a></li>",
        "<li><b>Discard</b> (class): <a href='#e-Discard@7'>Discard@7</a>, <a href='#e-d'>d</a></li>",
        "<a name=\"et-i\"><b>i</b></a> :: InfiniteSource <small>(&quot;&lt;&amp;&gt;&quot;)</small>",
        "<tr><td>output</td><td>1</td><td>push</td><td>&rarr; [0] <a href=\"#et-@5\">@5</a></td></tr>",
        "<tr><td>input</td><td>0</td><td>pull</td>",
        "<tr><td colspan=\"4\">no inputs</td></tr>",
    ] {
        assert!(page.contains(piece), "{piece}\n{page}");
    }
    let with_docs = out("click-pretty", &["-u", "http://x/%s.html", "-e", TEXT], "");
    assert!(with_docs.contains("<a href='http://x/Queue.html'>Queue</a>"), "{with_docs}");
    let long = out("click-pretty", &["--class-docs", "http://x/%s.html", "-e", TEXT], "");
    assert_eq!(long, with_docs);
    for option in ["-l", "-k", "-b", "--linuxmodule", "--kernel", "--bsdmodule", "--userlevel"] {
        let words = [option, "--package-docs", "x=y", "-e", TEXT];
        assert_eq!(out("click-pretty", &words, ""), page, "{option}");
    }
    complaints("click-pretty", &["--package-docs", "x", "-e", TEXT], "");
    let target = file("page.html", "");
    assert_eq!(out("click-pretty", &["-o", &target], TEXT), "");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), page);
}

#[test]
fn pages_show_errors_where_they_are() {
    let page = out("click-pretty", &["-T", "<~config>", "-e", "a -> b :: Counter -> Discard"], "");
    assert!(page.contains("<span class='c-err' title='undeclared element &#39;a&#39;'>"), "{page}");
    // Nothing of a broken archive can be shown.
    let err = complaints("click-pretty", &["-"], "!<arch>\n");
    assert_eq!(err, "<stdin>:1: archive has no 'config' section\n");
}

/// A template for elements, filled in for a small configuration.
fn filled(template: &str) -> String {
    let text = "i :: InfiniteSource(DATA <00>, LIMIT 2) -> t :: Tee -> q2 :: Queue -> d :: Discard; t[1] -> q10 :: Queue; q10 -> Discard";
    out("click-pretty", &["--template-text", template, "-e", text], "")
}

#[test]
fn templates_are_filled_in() {
    for (template, want) in [
        ("<~elements entry='<~name>' sep=', '>", "Discard@6, d, i, q2, q10, t"),
        ("<~elements entry='<~name>' sep=', ' column='1/2'>", "Discard@6, d, i"),
        ("<~elements entry='<~name>' sep=', ' column='2/2'>", "q2, q10, t"),
        (
            "<~elements typeentry='<~type>:<~typerefs sep=\"+\"> ' typeref='<~name>'>",
            "Discard:Discard@6+d InfiniteSource:i Queue:q2+q10 Tee:t ",
        ),
        ("<~elements entry='<~config limit=7 parens>'>", "(DATA &lt;0...)"),
        (
            "<~elements entry='<~ninputs>/<~noutputs english> '>",
            "1/0 outputs 1/0 outputs 0/1 output 1/1 output 1/1 output 1/2 outputs ",
        ),
        (
            "<~elements entry='<~if test=\"<~name>\" eq=\"t\" then=\"<~outputs sep=&quot;;&quot;>\">' \
          outputentry='<~port> <~processing> <~outputconnections>' outputconnection='<~name>[<~port>]'>",
            "0 push q2[0];1 push q10[0]",
        ),
        (
            "<~elements entry='<~inputs>' inputentry='<~inputconnections> ' inputconnection='<~name>' noinputentry='none '>",
            "q10 q2 none t t i ",
        ),
        ("<~elements entry='<~if test=\"<~anonymous>\" then=\"@\" else=\".\">'>", "@....."),
        ("<~elements entry='<~if test=\"<~ninputs>\" lt=\"1\" then=\"<~name>\">'>", "i"),
        ("<~elements entry='<~if test=\"<~noutputs>\" ge=\"2\" then=\"<~name>\">'>", "t"),
        ("<~elements entry='<~if test=\"<~noutputs>\" gt=\"1\" then=\"<~name>\">'>", "t"),
        (
            "<~elements entry='<~if test=\"<~noutputs>\" le=\"0\" then=\"<~name> \">'>",
            "Discard@6 d ",
        ),
        (
            "<~elements entry='<~if test=\"<~type>\" ne=\"Queue\" then=\"<~name> \">'>",
            "Discard@6 d i t ",
        ),
        (
            "<~elements entry='<~name link> '>",
            "<a href='#e-Discard@6'>Discard@6</a> <a href='#e-d'>d</a> <a href='#e-i'>i</a> \
          <a href='#e-q2'>q2</a> <a href='#e-q10'>q10</a> <a href='#e-t'>t</a> ",
        ),
        ("<~elements entry='<~processingcode> '>", "l/ l/ /h h/l h/l h/hh "),
        ("a <~nothing> b <~", "a  b "),
    ] {
        assert_eq!(filled(template), want, "{template}");
    }
}

#[test]
fn templates_come_from_anywhere() {
    let tool = "click-pretty";
    let template = file("template.html", "<~title>: <~elements entry='<~mine>'>");
    for words in [
        &["-t", &template, "-d", "title=T", "-d", "mine=<~name>.", "-e", "Idle -> d :: Discard"][..],
        &[
            "--template",
            &template,
            "--define",
            "title=T",
            "--define",
            "mine=<~name>.",
            "-e",
            "Idle -> d :: Discard",
        ],
    ] {
        assert_eq!(out(tool, words, ""), "T: Idle@1.d.");
    }
    let own = out(tool, &["--write-template"], "");
    assert!(own.starts_with("<!DOCTYPE html>\n") && own.contains("<~config>"), "{own}");
    assert_eq!(out(tool, &["-T", &own, "-e", TEXT], ""), out(tool, &["-e", TEXT], ""));
    assert_eq!(out(tool, &["--write-template", "-T", "x <~y>"], ""), "x <~y>");
    let err = complaints(tool, &["-t", "/no/such", "-e", TEXT], "");
    assert_eq!(err, "click-pretty: /no/such: No such file or directory\n");
    // A definition that names itself ends.
    assert!(out(tool, &["-T", "<~a>", "-d", "a=x<~a>", "-e", TEXT], "").starts_with("xxx"));
}

#[test]
fn graphs_for_other_programs() {
    let text = "i :: InfiniteSource -> Queue -> d :: Discard";
    let dot = out("click-pretty", &["--dot", "-e", text], "");
    for line in [
        "digraph clickrouter {\n",
        "  \"i\" [label=\"{i :: InfiniteSource|{<o0>}}\"];\n",
        "  \"Queue@2\" [label=\"{{<i0>}|Queue|{<o0>}}\"];\n",
        "  \"i\":o0 -> \"Queue@2\":i0;\n",
    ] {
        assert!(dot.contains(line), "{line}\n{dot}");
    }
    let named = out("click-pretty", &["--dot", "-T", "<~name>", "-e", text], "");
    assert!(named.contains("{{<i0>}|Queue@2|{<o0>}}"), "{named}");
    let gml = out("click-pretty", &["--gml", "-e", text], "");
    assert!(gml.starts_with("Creator \"click-pretty\"\ngraph\n[ hierarchic 1\n"), "{gml}");
    assert!(gml.contains("  node\n  [ id 1\n    label \"Queue\"\n  ]\n"), "{gml}");
    assert!(gml.contains("[ source 0\n    target 1\n"), "{gml}");
    assert_eq!(gml.matches('[').count(), gml.matches(']').count());
    let graphml = out("click-pretty", &["--graphml", "-e", text], "");
    well_formed(&graphml);
    assert!(graphml.contains("<port name=\"o0\"> <data key=\"kp\">l</data> </port>"), "{graphml}");
    let edge = "<edge id=\"e1\" source=\"n1\" target=\"n2\" sourceport=\"o0\" targetport=\"i0\" />";
    assert!(graphml.contains(edge), "{graphml}");
    let both = ["--dot", "--gml", "-e", text];
    assert!(complaints("click-pretty", &both, "").contains("cannot be used with"));
    // Graphviz itself, where it is installed.
    if Command::new("dot").arg("-V").output().is_ok() {
        let source = file("graph.dot", &dot);
        let drawn = Command::new("dot").args(["-Tsvg", &source]).output().unwrap();
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    }
}

#[test]
fn input_comes_from_files_text_or_standard_input() {
    let (text, odd) = ("i :: InfiniteSource -> d :: Discard;", "i :: NoSuch -> d :: Discard;");
    let source = file("shown.click", text);
    for tool in ["click-pretty", "click2xml"] {
        let want = out(tool, &["-q", "-f", &source], "");
        assert!(want.contains("InfiniteSource"), "{want}");
        for words in [&["--file", &source][..], &[&source], &["--quiet", "-f", &source]] {
            assert_eq!(out(tool, words, ""), want, "{tool} {words:?}");
        }
    }
    // An element that nobody knows is odd, and said unless it is not to be.
    let (status, _, err) = all("click2xml", &["-e", odd], "");
    let output = "config:1: warning: unknown element class 'NoSuch'\n";
    assert_eq!((status, err.as_str()), (Some(0), output));
    assert_eq!(all("click2xml", &["-q", "-e", odd], "").2, "");
}
