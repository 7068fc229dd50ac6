//! The page in a browser.

use super::View;
use crate::program::wait_until;
use castanet_lab::{Browser, ColorScheme, keys};

/// A shaper in a compound, a filter that drops, and names and texts that mean harm.
const TEXT: &str = "
    elementclass Shaper { $rate | input -> q :: Queue(100) -> BandwidthShaper($rate) -> u :: Unqueue -> output; }
    s :: RatedSource(RATE 2000, LENGTH 60, DATA \"<img src=x onerror=alert(1)>\")
      -> e :: UDPIPEncap(10.0.0.1, 7, 10.0.0.2, 9) -> split :: RoundRobinSwitch;
    split[0] -> shaper :: Shaper(20000) -> c :: Counter -> d :: Discard;
    split[1] -> f :: IPFilter(deny all) -> d;
    RatedSource(RATE 1, LIMIT 1) -> Print(\"<b>bold</b>\") -> Discard;";

/// The contrast of texts on elements of the graph, at least; also where all are as hot as can be.
const CONTRAST: &str = "
    const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const light = (color) => {
      paint.fillStyle = color;
      paint.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((it) => it / 255)
        .map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let least = 21;
    for (const part of document.querySelectorAll('.node, .drops')) {
      const fill = (selector) => getComputedStyle(part.querySelector(selector)).fill;
      const [back, front] = [light(fill('rect:not(.behind)')), light(fill('text'))];
      least = Math.min(least, (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05));
    }
    return least;";

/// Keys that choose the text of a field and delete it: Ctrl and A, and the key for a step back.
const ALL_AND_DELETE: &str = "\u{E009}a\u{E009}\u{E003}";

struct Page {
    view: View,
    browser: Browser,
}

impl Page {
    fn open(name: &str, options: &[&str]) -> Page {
        let view = View::new(name, TEXT, options);
        let browser = Browser::on_host().unwrap();
        browser.set_size(1300, 850).unwrap();
        browser.open(&view.url()).unwrap();
        browser.find("[data-node=s] .figures").unwrap();
        Page { view, browser }
    }

    /// Waits until a script returns a true value.
    fn wait(&self, script: &str) {
        self.browser.wait_for(&format!("return {script}")).unwrap();
    }

    fn text(&self, selector: &str) -> String {
        self.browser.find(selector).unwrap().text().unwrap()
    }

    /// Types a text in the place of the one that a field has.
    fn fill(&self, selector: &str, text: &str) {
        let field = self.browser.find(selector).unwrap();
        field.send_keys(ALL_AND_DELETE).unwrap();
        if !text.is_empty() {
            field.send_keys(text).unwrap();
        }
    }

    /// Insists that the page, as it is now, has no fault that axe-core finds, in either scheme.
    #[track_caller]
    fn is_accessible(&self, what: &str) {
        for scheme in [ColorScheme::Light, ColorScheme::Dark] {
            self.browser.set_color_scheme(scheme).unwrap();
            // Colours change slowly.
            let dark = if scheme == ColorScheme::Dark { "dark" } else { "light" };
            self.wait(&format!("document.documentElement.dataset.theme === '{dark}'"));
            self.wait("document.getAnimations().length === 0");
            let violations = self.browser.accessibility_violations().unwrap();
            let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
            assert!(told.is_empty(), "{what}, {scheme:?}: {}", told.join("\n"));
        }
    }

    /// Insists that no script has failed.
    fn expect_no_errors(self) {
        assert_eq!(self.browser.console_errors().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn the_graph_shows_rates_drops_and_elements() {
    let page = Page::open("p-graph", &[]);
    page.wait("document.querySelector('[data-node=c] .figures')?.textContent.includes('/s')");
    page.wait("document.querySelector('[data-node=f] .drops.now')");
    page.wait(
        "[...document.querySelectorAll('.edge text')].some(it => it.textContent.startsWith('1.0'))",
    );
    // Texts of the configuration are texts.
    let images = page.browser.execute("return document.querySelectorAll('img, b b').length", &[]);
    assert_eq!(images.unwrap(), 0);
    page.browser.click("[data-node=s]").unwrap();
    page.wait("document.querySelector('.element pre')?.textContent.includes('<img src=x')");
    page.browser.click("[data-node=f]").unwrap();
    page.wait("document.querySelector('.element h2')?.textContent === 'f'");
    page.wait("document.querySelector('.element table td')?.textContent === 'unmatched'");
    page.wait("document.querySelectorAll('.chart canvas').length >= 2");
    page.wait("document.querySelector('.handlers code')");
    assert!(page.browser.find_all(".write").unwrap().is_empty(), "nothing is to be written");
    page.is_accessible("an element");
    page.browser.click(".manual summary").unwrap();
    page.wait("document.querySelector('.manual h1')?.textContent === 'IPFilter'");
    page.is_accessible("a manual page");
    // The address names the element, so that it can be linked to.
    assert!(page.browser.url().unwrap().contains("element=f"));
    page.browser.open(&page.browser.url().unwrap()).unwrap();
    page.wait("document.querySelector('.element h2')?.textContent === 'f'");
    page.expect_no_errors();
}

#[test]
fn compounds_fold_and_the_keyboard_reaches_everything() {
    let page = Page::open("p-keys", &[]);
    assert!(!page.browser.find_all("[data-node='shaper/q']").unwrap().is_empty());
    page.browser.find("[data-fold=shaper]").unwrap().send_keys(keys::ENTER).unwrap();
    page.wait("document.querySelector('[data-node=shaper].compound')");
    assert!(page.browser.find_all("[data-node='shaper/q']").unwrap().is_empty());
    // The compound has the rate of its packets, and the drops of its queue.
    page.wait("document.querySelector('[data-node=shaper] .figures')?.textContent.includes('k/s')");
    page.wait("document.querySelector('[data-node=shaper] .drops')");
    page.browser.find("[data-node=shaper]").unwrap().send_keys(keys::ENTER).unwrap();
    page.wait("document.querySelector(`[data-node='shaper/q']`)");

    // From the source along the arrows, then into the element.
    page.browser.execute("document.querySelector('[data-node=s]').focus()", &[]).unwrap();
    let next = "const [s, e] = ['s', 'e'].map(it => document.querySelector(`[data-node=${it}]`)
        .getBoundingClientRect()); return e.left > s.right ? 'right' : 'down'";
    let is_right = page.browser.execute(next, &[]).unwrap() == "right";
    page.browser.press(if is_right { keys::RIGHT } else { keys::DOWN }).unwrap();
    page.wait("document.activeElement.dataset.node === 'e'");
    page.browser.press(keys::ENTER).unwrap();
    page.wait("document.querySelector('.element h2')?.textContent === 'e'");
    // Tabs go by arrows, too; each control has a name and is reached by the tabulator.
    page.browser.find("#tab-element").unwrap().send_keys(keys::RIGHT).unwrap();
    page.wait("document.activeElement.id === 'tab-trace'");
    page.wait("!document.querySelector('.trace').closest('[hidden]')");
    let mut reached = Vec::new();
    for _ in 0..6 {
        page.browser.press(keys::TAB).unwrap();
        let name = "const it = document.activeElement; return it.name || it.textContent || it.id";
        reached.push(page.browser.execute(name, &[]).unwrap().as_str().unwrap().to_owned());
    }
    for name in ["pattern", "tcpdump", "from", "count", "Trace"] {
        assert!(reached.iter().any(|it| it == name), "{name}: {reached:?}");
    }
    page.expect_no_errors();
}

#[test]
fn a_packet_is_traced_and_its_way_lights_up() {
    let page = Page::open("p-trace", &[]);
    page.browser.click("#tab-trace").unwrap();
    page.fill("input[name=pattern]", "udp && dts port 9");
    page.browser.click(".trace button.main").unwrap();
    page.wait("document.querySelector('.trace .error')?.textContent.includes('dts')");
    let errors = page.browser.console_errors().unwrap();
    assert!(errors.len() == 1 && errors[0].contains("status of 400"), "{errors:?}");
    page.fill("input[name=pattern]", "");
    page.fill("input[name=tcpdump]", "udp port 9");
    page.browser.click(".trace button.main").unwrap();
    // The source makes frames without an IP header, of which none is this one.
    page.wait("document.querySelector('.trace p')?.textContent.includes('Waiting')");
    page.fill("input[name=tcpdump]", "");
    page.browser.click(".trace button.main").unwrap();
    page.wait("document.querySelectorAll('.traced').length === 3");
    for element in ["s", "e", "split"] {
        page.wait(&format!("document.querySelector('[data-node={element}].lit .order')"));
    }
    page.wait("document.querySelectorAll('.edge.lit').length >= 2");
    // One of the packets goes to the filter, which drops it.
    let filtered = "return [...document.querySelectorAll('.traced > button')]
        .findIndex(it => it.textContent.includes('dropped: unmatched'))";
    page.wait("[...document.querySelectorAll('.traced > button')].some(it => it.textContent.includes('dropped: unmatched'))");
    let index = page.browser.execute(filtered, &[]).unwrap().as_u64().unwrap();
    page.browser.click(&format!(".traced:nth-child({}) > button", index + 1)).unwrap();
    page.wait("document.querySelector('[data-node=f].lit.dropped')");
    let shown = page.text(".traced.shown .steps");
    assert!(shown.contains("10.0.0.1:7 > 10.0.0.2:9 udp"), "{shown}");
    assert!(shown.contains("dropped: unmatched"), "{shown}");
    page.is_accessible("a trace");
    // A look at another panel does not end it.
    page.browser.click("#tab-drops").unwrap();
    page.wait(
        "[...document.querySelectorAll('.dropped b')].some(it => it.textContent === 'unmatched')",
    );
    page.is_accessible("the drops");
    page.browser.click("#tab-trace").unwrap();
    assert_eq!(page.browser.find_all(".traced").unwrap().len(), 3);
    page.expect_no_errors();
}

#[test]
fn a_new_trace_takes_the_place_of_one_that_waits() {
    let page = Page::open("p-traces", &[]);
    page.browser.click("#tab-trace").unwrap();
    page.fill("input[name=pattern]", "tcp");
    page.browser.click(".trace button.main").unwrap();
    page.wait("document.querySelector('.trace p')?.textContent.includes('Waiting')");
    page.fill("input[name=pattern]", "");
    page.browser.click(".trace button.main").unwrap();
    page.wait("document.querySelectorAll('.traced').length === 3");
    page.expect_no_errors();
}

#[test]
fn names_that_scripts_know_are_names_of_elements() {
    let text = "constructor :: RatedSource(RATE 100) -> a :: Counter -> a/b :: Counter -> toString :: Discard;";
    let view = View::new("p-names", text, &[]);
    let browser = Browser::on_host().unwrap();
    browser.open(&format!("{}#panel=constructor", view.url())).unwrap();
    browser.click("[data-node=constructor]").unwrap();
    browser.find(".element h2").unwrap();
    browser.click(".tools button:nth-child(4)").unwrap();
    browser.wait_for("return document.querySelector('.node.compound[data-node=a]')").unwrap();
    browser.wait_for("return document.querySelectorAll('[data-node=a]').length === 2").unwrap();
    assert_eq!(browser.console_errors().unwrap(), Vec::<String>::new());
}

#[test]
fn another_instance_at_the_same_address_is_shown_anew() {
    let page = Page::open("p-restart", &[]);
    page.browser.click("#tab-log").unwrap();
    page.wait("document.querySelector('.log')?.textContent.includes('running')");
    let address = page.view.address;
    let Page { view, browser } = page;
    view.it.output(&["ctl", "one", "stop"]);
    crate::ctl::ends_well(view.process);
    view.it.write("one.click", "other :: RatedSource(RATE 100) -> Print(hello) -> Discard;");
    let port = address.port().to_string();
    let _process = view.it.run(&["one.click", "--web", &port]);
    browser.find("[data-node=other] .figures").unwrap();
    browser.wait_for("return document.querySelectorAll('.node').length === 3").unwrap();
    // The log is that of the new instance.
    let hello = "return document.querySelector('.log')?.textContent.includes('hello')";
    browser.wait_for(hello).unwrap();
    assert!(!browser.find(".log").unwrap().text().unwrap().contains("<b>bold</b>"));
}

#[test]
fn handlers_are_written_from_the_page() {
    let page = Page::open("p-write", &["--web-write"]);
    let url = page.browser.url().unwrap();
    assert!(!url.contains("token"), "the token stays in the address: {url}");
    page.browser.click("[data-node=s]").unwrap();
    let form = "[...document.querySelectorAll('.handlers li')].find(it => it.querySelector('code').textContent === 'active')";
    page.wait(&format!("{form}?.querySelector('form')"));
    let mark = format!("{form}.querySelector('form').id = 'form-of-active'");
    page.browser.execute(&mark, &[]).unwrap();
    page.fill("#form-of-active input", "perhaps");
    page.browser.click("#form-of-active button").unwrap();
    page.wait("document.querySelector('#form-of-active output')?.textContent.includes('perhaps')");
    page.fill("#form-of-active input", "");
    page.fill("#form-of-active input", "false");
    page.browser.click("#form-of-active button").unwrap();
    wait_until("the source stops", || page.view.it.read("one", "s.active") == "false");
    page.wait(&format!("{form}.querySelector('.value')?.textContent === 'false'"));
    page.is_accessible("forms");
}

#[test]
fn the_table_and_the_log_show_all() {
    let page = Page::open("p-table", &[]);
    page.browser.click("#tab-table").unwrap();
    page.wait("document.querySelectorAll('.elements tbody tr').length >= 9");
    page.fill(".elements input", "queue");
    page.wait("document.querySelectorAll('.elements tbody tr').length === 2");
    page.fill(".elements input", "");
    page.browser.click("thead th:first-child button").unwrap();
    page.wait("document.querySelector('tbody td')?.textContent.startsWith('c')");
    page.browser.click("tbody tr:first-child button").unwrap();
    page.wait("document.querySelector('.element h2')");
    page.is_accessible("the table");
    page.browser.click("#tab-log").unwrap();
    page.wait("document.querySelector('.log')?.textContent.includes('<b>bold</b>')");
    page.is_accessible("the log");
    page.expect_no_errors();
}

#[test]
fn it_works_in_the_width_of_a_phone_and_in_both_schemes() {
    let page = Page::open("p-phone", &[]);
    page.browser.set_size(360, 740).unwrap();
    for tab in ["element", "trace", "drops", "log", "table"] {
        page.browser.click(&format!("#tab-{tab}")).unwrap();
        page.wait("document.documentElement.scrollWidth <= innerWidth");
    }
    page.browser.click("#tab-graph").unwrap();
    page.wait("document.querySelector('.graph svg').getBoundingClientRect().height > 300");
    page.is_accessible("a phone");
    for scheme in [ColorScheme::Light, ColorScheme::Dark] {
        page.browser.set_color_scheme(scheme).unwrap();
        for heat in ["0%", "100%"] {
            let heated = format!(
                "document.querySelectorAll('.node').forEach(it => it.style.setProperty('--heat', '{heat}'))"
            );
            page.browser.execute(&heated, &[]).unwrap();
            page.wait("document.getAnimations().length === 0");
            let least = page.browser.execute(CONTRAST, &[]).unwrap().as_f64().unwrap();
            assert!(least >= 4.5, "{scheme:?}, {heat}: {least}");
        }
    }
    page.expect_no_errors();
}

#[test]
fn it_says_that_the_instance_has_gone_and_asks_for_a_token() {
    let page = Page::open("p-gone", &["--web-write"]);
    let url = format!("http://{}/", page.view.address);
    page.browser.execute("sessionStorage.clear()", &[]).unwrap();
    page.browser.open("about:blank").unwrap();
    page.browser.open(&url).unwrap();
    page.fill(".token input", "a wrong one");
    page.is_accessible("the question for the token");
    page.browser.click(".token button").unwrap();
    page.wait("document.querySelector('.token [role=alert]')");
    page.fill(".token input", "");
    let token = page.view.token.clone().unwrap();
    page.fill(".token input", &token);
    page.browser.click(".token button").unwrap();
    page.browser.find("[data-node=s] .figures").unwrap();
    // The address that the instance has printed opens the page where the question is.
    page.browser.execute("sessionStorage.setItem('castanet-token', 'old')", &[]).unwrap();
    page.browser.open("about:blank").unwrap();
    page.browser.open(&url).unwrap();
    page.browser.find(".token input").unwrap();
    let opened = format!("location.hash = 'token={token}'");
    page.browser.execute(&opened, &[]).unwrap();
    page.browser.find("[data-node=s] .figures").unwrap();
    page.wait("!location.href.includes('token')");
    page.view.it.output(&["ctl", "one", "stop"]);
    page.wait("document.querySelector('[role=alert]')?.textContent.includes('does not answer')");
    page.wait("document.querySelector('.state')?.textContent === 'not connected'");
}
