//! Tests of the site as a reader uses it: search, keys, dark and light, a phone. They need root.

use castanet_lab::{Browser, ColorScheme, Lab, keys};
use xtask::files::root;

/// The site in the folder of a lab, opened from its files.
struct OpenSite {
    browser: Browser,
    lab: Lab,
}

impl OpenSite {
    fn new() -> OpenSite {
        std::env::set_current_dir(root()).expect("is there");
        let lab = Lab::new("site").expect("a folder");
        xtask::site::write(&lab.directory().join("site")).unwrap_or_else(|e| panic!("{e}"));
        let browser = Browser::on_host().unwrap_or_else(|e| panic!("{e}"));
        OpenSite { browser, lab }
    }

    fn open(&self, page: &str) {
        let url = format!("file://{}/site/{page}", self.lab.directory().display());
        self.browser.open(&url).unwrap_or_else(|e| panic!("{e}"));
    }

    /// The titles that the search shows for some words, the best first.
    fn search(&self, words: &str) -> Vec<String> {
        self.browser.execute("document.activeElement.blur()", &[]).expect("leaves the field");
        self.browser.press(&format!("/{words}")).expect("is typed");
        let done = format!("return document.getElementById('found').dataset.words === '{words}'");
        self.browser.wait_for(&done).unwrap_or_else(|e| panic!("{words}: {e}"));
        let titles = self.browser.find_all("#found strong").expect("a list");
        titles.iter().map(|it| it.text().expect("a title")).collect()
    }

    fn assert_no_faults(&self, what: &str) {
        for scheme in [ColorScheme::Light, ColorScheme::Dark] {
            self.browser.set_color_scheme(scheme).expect("is set");
            let faults = self.browser.accessibility_violations().unwrap_or_else(|e| panic!("{e}"));
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            assert!(faults.is_empty(), "{what}, {scheme:?}:\n{}", faults.join("\n"));
        }
        let errors = self.browser.console_errors().expect("a console");
        assert!(errors.is_empty(), "{what}: {errors:?}");
    }
}

#[test]
fn search_finds_elements_by_purpose_and_by_name() {
    let site = OpenSite::new();
    site.open("index.html");
    let found = site.search("rate limit");
    for shaper in ["Shaper", "RatedUnqueue", "BandwidthShaper", "BandwidthRatedUnqueue"] {
        assert!(found.iter().any(|it| it == shaper), "{shaper} is not in {found:?}");
    }
    for (words, first) in [
        ("ipfilter", "IPFilter"),
        ("Queue", "Queue"),
        ("queue", "Queue"),
        ("decipttl", "DecIPTTL"),
        ("reassemble fragments", "IPReassembler"),
        ("random early detection", "RED"),
        ("which queue", "Which queue?"),
        ("port lists of ports", "Lists of ports"),
        ("glossary", "Glossary: the terms that are ours"),
    ] {
        let found = site.search(words);
        assert_eq!(found.first().map(String::as_str), Some(first), "{words}: {found:?}");
    }
    // A slip of a letter, and words that no page has together.
    assert!(site.search("clasifier").contains(&"Classifier".to_owned()));
    assert!(!site.search("shaper xylophone").is_empty());
    assert!(site.search("xylophone").is_empty());
    assert_eq!(
        site.browser.find("#found p").expect("a line").text().expect("text"),
        "Nothing found"
    );
    site.assert_no_faults("search");
}

#[test]
fn search_works_with_keys_from_every_folder() {
    let site = OpenSite::new();
    site.open("docs/design/walk.html");
    assert_eq!(site.search("prioritysched priosched").first().expect("one"), "PrioSched");
    site.assert_no_faults("open search");
    site.browser.press(keys::DOWN).expect("goes to the first");
    site.browser.press(keys::DOWN).expect("goes on");
    site.browser.press(keys::UP).expect("goes back");
    site.browser.press(keys::ENTER).expect("opens");
    site.browser.wait_for("return document.title === 'PrioSched – Castanet'").expect("is open");
    assert!(site.browser.url().expect("one").ends_with("/docs/elements/PrioSched.html"));
    // Enter in the field opens the best page.
    site.search("DRRSched");
    site.browser.press(keys::ENTER).expect("opens");
    site.browser.wait_for("return document.title === 'DRRSched – Castanet'").expect("is open");
    // Escape closes, and `/` in the field is a letter.
    site.search("a/b");
    site.browser.press(keys::ESCAPE).expect("closes");
    site.browser.wait_for("return document.getElementById('found').hidden").expect("is closed");
}

#[test]
fn pages_have_no_faults_in_dark_and_light() {
    let site = OpenSite::new();
    let pages = [
        "index.html",
        "docs/elements/IPFilter.html",
        "docs/elements/index.html",
        "docs/debugging.html",
        "docs/middlebox.html",
        "docs/elements/which-shaper.html",
        "docs/language.html",
        "docs/handlers.html",
        "docs/tutorial.html",
        "conf/router.click.html",
    ];
    for page in pages {
        site.open(page);
        site.assert_no_faults(page);
        let page_color = "return getComputedStyle(document.body).backgroundColor";
        assert_eq!(site.browser.execute(page_color, &[]).expect("a color"), "rgb(20, 24, 28)");
    }
}

#[test]
fn pages_fit_on_a_phone() {
    let site = OpenSite::new();
    site.browser.set_size(360, 740).expect("a phone");
    for page in ["index.html", "docs/elements/IPFilter.html", "docs/measurements.html"] {
        site.open(page);
        let fits =
            "const page = document.documentElement; return page.scrollWidth <= page.clientWidth";
        let fits = site.browser.execute(fits, &[]).expect("widths");
        assert_eq!(fits, true, "{page} is wider than the screen");
        site.browser.click(".to-menu").expect("the menu is reached");
        let menu =
            "return document.getElementById('menu').getBoundingClientRect().top < innerHeight";
        site.browser.wait_for(menu).expect("the menu is shown");
        site.assert_no_faults(page);
    }
}
