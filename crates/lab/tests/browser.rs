//! Tests that a browser opens pages, reports their faults, and leaves nothing behind.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use castanet_lab::{Browser, ColorScheme, Lab, Port, keys, require};
use serde_json::json;

/// A page with a form, whose paragraph is dark on light or light on dark, and has too little
/// contrast in the dark scheme only.
const PAGE: &str = "<!DOCTYPE html><html lang=en><title>Form</title>
<style>
  p { color: #222; background: #fff; margin: 0 }
  @media (prefers-color-scheme: dark) { p { color: #333; background: #222 } }
</style>
<main><h1>Form</h1>
<p>A sentence of the form.</p>
<label>Name <input></label> <button onclick='setTimeout(greet, 100)'>Greet</button>
<output></output></main>
<script>
  function greet() {
    document.querySelector('output').innerHTML =
      `<b id=hello>Hello ${document.querySelector('input').value}</b>`;
  }
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter') greet();
    if (event.key === 'Escape') missing.call();
  });
</script></html>";

fn page(lab: &Lab) -> String {
    let file = lab.directory().join("page.html");
    fs::write(&file, PAGE).unwrap();
    format!("file://{}", file.display())
}

#[test]
fn a_page_is_used_and_its_faults_are_found() {
    let lab = Lab::new("page").unwrap();
    let browser = Browser::on_host().unwrap();
    browser.open(&page(&lab)).unwrap();
    assert_eq!(browser.find("h1").unwrap().text().unwrap(), "Form");
    browser.find("input").unwrap().send_keys("Ada").unwrap();
    browser.click("button").unwrap();
    assert_eq!(browser.find("#hello").unwrap().text().unwrap(), "Hello Ada");
    browser.find("input").unwrap().clear().unwrap();
    browser.click("input").unwrap();
    browser.press(&format!("Grace{}", keys::ENTER)).unwrap();
    browser
        .wait_for("return document.querySelector('#hello').innerText === 'Hello Grace'")
        .unwrap();
    let sum = browser.execute("return arguments[0] + arguments[1]", &[json!(2), json!(3)]).unwrap();
    assert_eq!(sum, 5);
    assert!(browser.find_all(".none").unwrap().is_empty());

    assert_eq!(browser.console_errors().unwrap(), Vec::<String>::new());
    browser.press(keys::ESCAPE).unwrap();
    let errors = browser.console_errors().unwrap();
    assert!(errors.len() == 1 && errors[0].contains("missing is not defined"), "{errors:?}");
    let error = browser.execute("return absent()", &[]).unwrap_err().to_string();
    assert!(error.contains("absent is not defined"), "{error}");

    browser.set_color_scheme(ColorScheme::Light).unwrap();
    assert_eq!(browser.accessibility_violations().unwrap(), []);
    browser.set_color_scheme(ColorScheme::Dark).unwrap();
    let found = browser.accessibility_violations().unwrap();
    assert_eq!(found.iter().map(|it| it.rule.as_str()).collect::<Vec<_>>(), ["color-contrast"]);
    let node = &found[0].nodes[0];
    assert!(node.starts_with("p  <p>A sentence") && node.contains("contrast of 1.2"), "{node}");

    browser.set_size(412, 600).unwrap();
    assert_eq!(browser.execute("return innerWidth", &[]).unwrap(), 412);
    let image = lab.directory().join("page.png");
    browser.screenshot(&image).unwrap();
    let image = fs::read(image).unwrap();
    // The header of a PNG file: its magic number, and width and height in the first chunk.
    assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&image[16..24], [0, 0, 1, 156, 0, 0, 2, 88]);
}

#[test]
fn a_browser_in_a_namespace_reaches_its_hosts() {
    require(&["ip", "python3"]).unwrap();
    let lab = Lab::new("web").unwrap();
    let (server, client) = (lab.namespace("s").unwrap(), lab.namespace("c").unwrap());
    lab.link(
        Port::new(&server, "eth0").address("10.9.0.1/24"),
        Port::new(&client, "eth0").address("10.9.0.2/24"),
    )
    .unwrap();
    page(&lab);
    let _server = server.serve("10.9.0.1", 8000).unwrap();
    let browser = Browser::in_namespace(&client).unwrap();
    browser.open("http://10.9.0.1:8000/page.html").unwrap();
    assert_eq!(browser.find("h1").unwrap().text().unwrap(), "Form");
    let error = browser.open("http://10.9.0.1:8001/").unwrap_err().to_string();
    assert!(error.contains("failed to open http://10.9.0.1:8001/"), "{error}");
    assert!(error.contains("ERR_CONNECTION_REFUSED"), "{error}");
}

#[test]
fn a_panic_ends_the_browser_and_removes_its_files() {
    let mut profile = PathBuf::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let browser = Browser::on_host().unwrap();
        browser.open("chrome://version").unwrap();
        profile = PathBuf::from(browser.find("#profile_path").unwrap().text().unwrap());
        assert!(!profile.exists(), "as meant");
    }));
    assert!(panicked.is_err());
    // The path is that of the profile's folder `Default`, in a folder of the lab.
    let directory = profile.ancestors().nth(2).unwrap().to_owned();
    assert!(directory.file_name().unwrap().to_str().unwrap().starts_with("cst-"), "{profile:?}");
    assert!(!directory.exists(), "{} remains", directory.display());
    let left = |process: &PathBuf| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(directory.to_str().unwrap())
    };
    // Processes that the browser's has started end a moment after it.
    let began = Instant::now();
    loop {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let processes: Vec<PathBuf> = processes.filter(left).collect();
        if processes.is_empty() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{processes:?} remain");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn axe_core_is_the_version_that_its_note_names() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/axe-core");
    let sum = Command::new("sha256sum").arg(format!("{folder}/axe.min.js")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let note = fs::read_to_string(format!("{folder}/README.md")).unwrap();
    assert!(sum.len() > 64 && note.contains(&sum[..64]), "{sum}");
}
