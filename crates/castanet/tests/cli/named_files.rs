//! Files that clients name by handlers: below the folders that the command line allows, or none.

use crate::control::{PATIENCE, SocketFile, command, socket, talk};
use crate::program::{click, folder, wait_until};
use castanet_lab::Process;
use std::path::PathBuf;

/// A router that counts, and its folder.
struct CountingRouter {
    path: SocketFile,
    folder: PathBuf,
    _process: Process,
}

impl CountingRouter {
    /// With handlers allowed to open files below a folder, or none.
    fn new(name: &str, allowed: bool) -> CountingRouter {
        let (path, folder) = (socket(name), folder("named-files").join(name));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        std::fs::write(folder.join("secret"), "root:x\nadd all drop\n").unwrap();
        std::fs::write(folder.join("public"), "for all\n").unwrap();
        let config = format!(
            "InfiniteSource(LIMIT 5) -> c :: AggregateCounter -> m :: Middlebox -> Discard;
             s :: Script(TYPE PASSIVE, return $(cat $1));
             own :: Script(TYPE PASSIVE, write c.write_ascii_file {0}/own, return $(cat {0}/public));
             ControlSocket(UNIX, {1})",
            folder.display(),
            path.display()
        );
        let mut run = command(&config);
        if allowed {
            run = run
                .args(["--handler-files".to_owned(), folder.join("inner").display().to_string()]);
        }
        let mut process = run.spawn().unwrap();
        process.wait_for("castanet: running", PATIENCE).unwrap();
        wait_until("no packets", || talk(&path, "READ c.count\n").ends_with("\r\n5"));
        CountingRouter { path, folder, _process: process }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Every way to have a file read or written that its name goes with.
    fn refused(&self, file: &str) {
        for ask in [
            format!("WRITE m.load {file}\n"),
            format!("WRITE m.command load {file}\n"),
            format!("WRITE m.save {file}\n"),
            format!("WRITE m.command save {file}\n"),
            format!("WRITE c.write_file {file}\n"),
            format!("WRITE c.write_ascii_file {file}\n"),
            format!("READ s.run {file}\n"),
        ] {
            let answer = talk(&self.path, &ask);
            assert!(answer.starts_with("5"), "{ask}{answer}");
            assert!(!answer.contains("root"), "{ask}{answer}");
        }
    }
}

#[test]
fn handlers_open_no_files_unless_they_may() {
    let it = CountingRouter::new("none", false);
    it.refused("/etc/passwd");
    it.refused(&it.file("secret"));
    it.refused(&it.file("new"));
    assert!(!it.folder.join("new").exists());
    assert!(std::fs::read_to_string(it.file("secret")).unwrap().starts_with("root"));
    let answer = talk(&it.path, &format!("WRITE m.save {}\n", it.file("new")));
    assert!(answer.contains("--handler-files DIR"), "{answer}");
    // Files that the configuration names are allowed.
    let answer = talk(&it.path, "READ own.run\n");
    assert!(answer.contains("for all"), "{answer}");
    assert!(std::fs::read_to_string(it.file("own")).unwrap().contains('5'));
}

#[test]
fn handlers_open_files_below_a_folder_and_follow_no_links() {
    let it = CountingRouter::new("below", true);
    it.refused("/etc/passwd");
    it.refused(&it.file("secret"));
    it.refused(&it.file("inner/../secret"));
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, it.folder.join(name)).unwrap();
    };
    link("../secret", "inner/link");
    link("..", "inner/up");
    link("/dev/zero", "inner/zero");
    it.refused(&it.file("inner/link"));
    it.refused(&it.file("inner/up/secret"));
    it.refused(&it.file("inner/zero"));
    // A FIFO is refused as well: the router would have to wait for it.
    let fifo = it.file("inner/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    it.refused(&fifo);
    it.refused(&it.file("inner"));
    // Files are.
    let saved = it.file("inner/rules.mmb");
    let answer = talk(
        &it.path,
        &format!(
            "WRITE m.add all accept\nWRITE m.save {saved}\nWRITE m.flush\nWRITE m.load {saved}\nREAD m.rules\n"
        ),
    );
    assert!(answer.ends_with("add all accept\n"), "{answer}");
    let counts = it.file("inner/counts");
    let answer =
        talk(&it.path, &format!("WRITE c.write_ascii_file {counts}\nREAD s.run {counts}\n"));
    assert!(answer.contains("0 5"), "{answer}");
}

#[test]
fn click_opens_any_and_says_so_once() {
    let folder = folder("named-files").join("click");
    std::fs::create_dir_all(&folder).unwrap();
    let (one, two) = (folder.join("one"), folder.join("two"));
    [&one, &two].iter().for_each(|file| _ = std::fs::remove_file(file));
    let config = format!(
        "InfiniteSource(LIMIT 5) -> c :: AggregateCounter -> Discard;
         Script(set a {}, set b {}, wait 10ms, write c.write_ascii_file $a,
                write c.write_ascii_file $b, stop)",
        one.display(),
        two.display()
    );
    let result = click(&["-e", &config], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(one.exists() && two.exists(), "{}", result.err);
    let warning = format!("warning: the handler 'write_ascii_file' opens {}", one.display());
    assert_eq!(result.err.matches("warning: ").count(), 1, "{}", result.err);
    assert!(result.err.contains(&warning), "{}", result.err);
}

#[test]
fn a_file_without_an_end_is_refused() {
    let result = click(&["-e", "Script(print $(length $(cat /dev/zero)), stop)"], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(result.err.contains("/dev/zero is longer than 1048576 bytes"), "{}", result.err);
}
