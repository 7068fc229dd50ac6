//! `cargo xtask screenshots`: the pictures of the README, from a router that forwards.

use castanet_lab::{Browser, ColorScheme, Command, Host, NetworkOptions, Process, ThreeHosts};
use castanet_lab::{keys, require};
use std::path::Path;
use std::time::Duration;

/// The folder of the pictures.
const FOLDER: &str = "docs/images";
/// The configuration that is shown.
const CONFIGURATION: &str = "conf/router.click";
/// The address of the web view, in the router's namespace.
const ADDRESS: &str = "127.0.0.1:8080";
/// The name of the instance.
const NAME: &str = "screenshots";
/// Columns and rows of the terminal.
const TERMINAL: (u32, u32) = (124, 36);
/// The name of tmux's server.
const TMUX: &str = "castanet-screenshots";

/// Takes all pictures of this program.
///
/// # Errors
/// A tool is missing, or something does not come in time.
pub(crate) fn screenshots(program: &str) -> Result<(), String> {
    take(program).map_err(|e| e.to_string())
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn take(program: &str) -> Outcome<()> {
    require(&["ip", "ping", "iperf3", "tmux", "aha", "chromedriver"])?;
    std::fs::create_dir_all(FOLDER)?;
    let program = Path::new(program).canonicalize();
    let program = program.map_err(|e| format!("{e}: `cargo build --release` makes the program"))?;
    let network = ThreeHosts::new(NAME, &NetworkOptions::default())?;
    let command = network.castanet(&program, Path::new(CONFIGURATION));
    let mut router = command.args(["--name", NAME, "--web", ADDRESS]).spawn()?;
    router.wait_for("castanet: running", Duration::from_secs(20))?;
    let _load = load(&network)?;
    let browser = Browser::in_namespace(&network.router)?;
    browser.set_size(1400, 860)?;
    browser.open(&format!("http://{ADDRESS}/"))?;
    browser.find(".node .drops")?;
    let devices = "return [...document.querySelectorAll('.node')]
        .filter(it => it.querySelector('.name').textContent.startsWith('FromDevice')).length === 3";
    browser.wait_for(devices)?;
    // The history is a line, and not a dot.
    std::thread::sleep(Duration::from_secs(45));
    show_drops(&browser)?;
    picture(&browser, "web")?;
    browser.set_color_scheme(ColorScheme::Dark)?;
    browser.click("#tab-trace")?;
    browser.find("input[name=pattern]")?.send_keys(&format!("icmp{}", keys::ENTER))?;
    browser.wait_for("return document.querySelectorAll('.traced').length === 3")?;
    std::thread::sleep(Duration::from_secs(6));
    picture(&browser, "web-trace")?;
    let words = |command: &str| format!("{} {command}", program.display());
    terminal(&browser, "top", &words(&format!("top {NAME}")))?;
    let trace = words(&format!("ctl {NAME} trace -n 1 icmp"));
    terminal(&browser, "trace", &format!("{trace}; sleep 60"))?;
    let drops = words(&format!("ctl {NAME} drops"));
    terminal(&browser, "drops", &format!("{drops}; sleep 60"))?;
    Ok(())
}

/// Traffic between the hosts: a transfer, pings, and packets that cannot be forwarded.
fn load(network: &ThreeHosts) -> Outcome<Vec<Process>> {
    let [h1, h2, h3] = &network.hosts;
    let server = h2.command("iperf3").args(["-s", "-1"]).spawn()?;
    let endless = |from: &Host, words: &[&str]| -> castanet_lab::Result<Process> {
        from.command("ping").args(["-n", "-q", "-i", "0.01"]).args(words).spawn()
    };
    std::thread::sleep(Duration::from_millis(500));
    let client =
        h1.command("iperf3").args(["-t", "600", "-b", "200M", "-c", &h2.address]).spawn()?;
    Ok(vec![
        server,
        client,
        endless(h3, &[&h1.address])?,
        endless(h1, &[&h3.address, "-s", "3000"])?,
        endless(h2, &["-t", "1", &h3.address])?,
        endless(h3, &["192.0.2.9"])?,
        // Nobody answers ARP for this address.
        endless(h1, &["10.0.2.77"])?,
    ])
}

/// Selects the first element in the list of drops.
fn show_drops(browser: &Browser) -> Outcome<()> {
    browser.click("#tab-drops")?;
    browser.click(".dropped button")?;
    browser.find(".chart canvas")?;
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

fn picture(browser: &Browser, name: &str) -> Outcome<()> {
    let file = Path::new(FOLDER).join(format!("{name}.png"));
    browser.screenshot(&file)?;
    println!("{}", file.display());
    Ok(())
}

/// Takes a picture of a terminal in which a command runs.
fn terminal(browser: &Browser, name: &str, command: &str) -> Outcome<()> {
    let tmux = |words: &[&str]| Command::on_host("tmux").args(["-L", TMUX]).args(words).check();
    let (columns, rows) = (TERMINAL.0.to_string(), TERMINAL.1.to_string());
    let size = ["new-session", "-d", "-x", &columns, "-y", &rows];
    tmux(&[&size[..], &[&format!("env TERM=xterm-256color {command}")]].concat())?;
    std::thread::sleep(Duration::from_secs(5));
    let screen = tmux(&["capture-pane", "-e", "-p"]);
    _ = tmux(&["kill-server"]);
    let folder = std::env::temp_dir().join(format!("castanet-screenshot-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (text, page) = (folder.join("screen"), folder.join("page.html"));
    std::fs::write(&text, screen?.stdout.trim_end())?;
    let html = Command::on_host("aha").args(["--no-header", "--black", "-f"]).arg(&text).check()?;
    let style = "body { margin: 0; padding: 14px 18px; background: #14191e; color: #e8edf1; width: max-content }
        pre { margin: 0; font: 14px/1.3 'DejaVu Sans Mono', monospace }";
    let document = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Terminal</title><style>{style}</style>\
         <pre>{}</pre></html>",
        html.stdout.trim_end()
    );
    std::fs::write(&page, document)?;
    browser.open(&format!("file://{}", page.display()))?;
    let measure = "const it = document.body.getBoundingClientRect(); return [it.width, it.height]";
    let size = browser.execute(measure, &[])?;
    let pixels = |index: usize| size[index].as_f64().unwrap_or(800.0).ceil() as u32;
    browser.set_size(pixels(0), pixels(1))?;
    let done = picture(browser, name);
    std::fs::remove_dir_all(&folder)?;
    done
}
