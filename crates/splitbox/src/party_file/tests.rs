//! Party files: what is written comes back, and everything else is refused.

use super::*;
use crate::bits::{Bits, Ternary};
use crate::digest::HashKind;
use crate::function::{NetworkFunction, Policy};
use crate::secret::Key;
use crate::setup::{BlindUse, SetupOptions};
use proptest::prelude::*;
use proptest::sample::Index;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};
use unlock::KeySource;
use zeroize::Zeroizing;

/// Bits of the header strings of these tests.
const WIDTH: usize = 96;

fn setup(policies: usize, processors: usize) -> Setup {
    let policy = |n: usize| Policy {
        condition: Ternary::ANY.with(40 + n % 7, 20, n as u128),
        action: Ternary::ANY.with(8, 16, n as u128),
    };
    let function = NetworkFunction::first_match((0..policies).map(policy).collect());
    let options = SetupOptions {
        processors,
        hash: HashKind::Blake3,
        header_bits: WIDTH,
        blinds: 12,
        blind_use: BlindUse::Once,
        lanes: 3,
        has_constant_work: true,
    };
    let setup = Setup::new(&function, options).and_then(|setup| setup.with_dummies(5000));
    setup.expect("is possible")
}

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("splitbox-party-file-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("can be made");
        Directory(path)
    }

    fn key(&self, name: &str) -> Unlock {
        let path = self.0.join(name);
        make_key_file(&path).expect("can be made");
        Unlock::KeyFile(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("is there").flatten();
        let mut names: Vec<String> =
            entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn master() -> MasterKey {
    MasterKey { key: Key::from_bytes([3; 32]), source: KeySource::KeyFile }
}

fn assert_same(a: &Setup, entry: &EntryParty, processors: &[ProcessorParty], client: &ClientParty) {
    let keys = |keys: &[Key]| keys.iter().map(|key| *key.expose()).collect::<Vec<_>>();
    let own = |it: &EntryParty| {
        let single = [&it.blind_key, &it.source_key, &it.client_secret].map(|key| *key.expose());
        (it.info, single, it.dummies_per_million, keys(&it.processor_secrets))
    };
    assert_eq!(own(&a.entry), own(entry));
    let own = |it: &ProcessorParty| {
        let single = [&it.hash_key, &it.entry_secret, &it.client_secret].map(|key| *key.expose());
        (it.info, it.number, it.function.clone(), it.shares.clone(), single)
    };
    assert_eq!(a.processors.len(), processors.len());
    a.processors.iter().zip(processors).for_each(|(a, b)| assert!(own(a) == own(b)));
    let own = |it: &ClientParty| {
        let single = [&it.blind_key, &it.hash_key, &it.entry_secret].map(|key| *key.expose());
        let own = (it.info, it.function.clone(), it.dummies_per_million);
        (own, single, keys(&it.processor_secrets))
    };
    assert_eq!(own(&a.client), own(client));
}

#[test]
fn parties_come_back_from_their_files() {
    let (dir, setup) = (Directory::new(), setup(20, 3));
    let unlock = dir.key("key");
    let paths = save(&setup, &dir.0, &unlock, false).expect("can be written");
    let names = [
        "client.splitbox",
        "entry.splitbox",
        "key",
        "processor-1.splitbox",
        "processor-2.splitbox",
        "processor-3.splitbox",
    ];
    assert_eq!(dir.names(), names, "and no temporary files");
    for path in &paths {
        let mode = std::fs::metadata(path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
    let file = |role: PartyRole| dir.0.join(role.file_name());
    let entry = load_entry(&file(PartyRole::Entry), &unlock).expect("is right");
    let processors: Vec<ProcessorParty> = (0..3)
        .map(|at| load_processor(&file(PartyRole::Processor(at)), &unlock, Some(at)))
        .collect::<Result<_, _>>()
        .expect("are right");
    let client = load_client(&file(PartyRole::Client), &unlock).expect("is right");
    assert_same(&setup, &entry, &processors, &client);
    let info = inspect(&file(PartyRole::Processor(1))).expect("is right");
    let expected = FileInfo {
        role: PartyRole::Processor(1),
        processors: 3,
        setup: setup.entry.info.id,
        has_passphrase: false,
    };
    assert_eq!(info, expected);
    assert!(matches!(load(&paths[0], &unlock), Ok(Party::Entry(_))));
    let debug = format!("{setup:?} {:?}", load(&paths[4], &unlock));
    assert!(debug.contains("Key(..)") && debug.contains("ActionShare(..)"), "{debug}");
    assert!(!debug.contains("Ternary") && !debug.contains("value"), "{debug}");
}

#[test]
fn passphrases_open_what_they_seal() {
    let (dir, setup) = (Directory::new(), setup(2, 2));
    let unlock = |text: &str| Unlock::Passphrase(Zeroizing::new(text.to_owned()));
    let master = unlock("correct horse")
        .seal(PassphraseCost { lanes: 1, memory_kib: 64, passes: 1 })
        .expect("is possible");
    let files = seal_all(&setup, &master).expect("is possible");
    let paths = store::write_all(&dir.0, &files, false).expect("can be written");
    assert!(inspect(&paths[0]).expect("is right").has_passphrase);
    assert!(load_entry(&paths[0], &unlock("correct horse")).is_ok());
    let message = |unlock: &Unlock| match load_entry(&paths[0], unlock) {
        Ok(_) => String::new(),
        Err(error) => error.to_string().replace(dir.0.to_str().expect("is text"), "DIR"),
    };
    let wrong = "DIR/entry.splitbox: the key is wrong, or the party file has been changed";
    assert_eq!(message(&unlock("correct horsE")), wrong);
    assert_eq!(message(&unlock("")), "the passphrase is empty, too long, or no text in UTF-8");
    let needed = "DIR/entry.splitbox: it is sealed with a passphrase, and there is none";
    assert_eq!(message(&dir.key("key")), needed);
    let file = dir.0.join("passphrase");
    std::fs::write(&file, "correct horse\r\nand a note\n").expect("can be written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("is ours");
    let unlock = Unlock::PassphraseFile(file.clone());
    let mode = "DIR/passphrase: others may read this secret (mode 0640); its mode must be 0600";
    assert_eq!(message(&unlock), mode);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o400)).expect("is ours");
    assert_eq!(message(&unlock), "");
    assert_eq!(format!("{:?}", Unlock::Passphrase("abc".to_owned().into())), "Passphrase(..)");
}

#[test]
fn a_file_cannot_ask_for_much_memory() {
    let dir = Directory::new();
    let path = dir.0.join("file");
    let unlock = Unlock::Passphrase(Zeroizing::new("x".to_owned()));
    for (at, value) in [(16, 0x40), (20, 1), (14, 1), (19, 0)] {
        let cost = PassphraseCost { lanes: 1, memory_kib: 8, passes: 1 };
        let source = KeySource::Passphrase { cost, salt: [0; 16] };
        let files = seal_all(&setup(1, 2), &MasterKey { source, ..master() });
        let mut bytes = files.expect("is possible").swap_remove(0).1;
        bytes[at] = value;
        std::fs::write(&path, bytes).expect("can be written");
        let error = load(&path, &unlock).expect_err("is refused");
        assert!(matches!(error.problem, FileProblem::Cost) && error.path == path, "{error}");
    }
}

#[test]
fn key_files_are_secret_and_whole() {
    let dir = Directory::new();
    let file = dir.0.join("key");
    make_key_file(&file).expect("can be made");
    let mode = std::fs::metadata(&file).expect("is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let exists = make_key_file(&file).expect_err("exists").problem;
    assert!(matches!(exists, FileProblem::Exists));
    let text = std::fs::read_to_string(&file).expect("can be read");
    assert!(text.len() == 65 && text.trim().bytes().all(|it| it.is_ascii_hexdigit()), "{text}");
    let unlock = Unlock::KeyFile(file.clone());
    let key = |text: &str| {
        std::fs::write(&file, text).expect("can be written");
        unlock.open(KeySource::KeyFile, &file).map(|it| *it.key.expose())
    };
    assert_eq!(key(&text).expect("is right"), key(&text.to_uppercase()).expect("is right"));
    for wrong in
        ["", &text[1..], &text.replace(['0', '1', '2', '3', '4', '5'], "g"), &text.repeat(99)]
    {
        let problem = key(wrong).expect_err("is no key").problem;
        assert!(matches!(problem, FileProblem::Key), "{problem}");
    }
    std::fs::remove_file(&file).expect("is there");
    let problem =
        unlock.open(KeySource::KeyFile, &file).map(|_| ()).expect_err("is missing").problem;
    assert!(matches!(problem, FileProblem::NoKey), "{problem}");
}

#[test]
fn files_of_other_parties_setups_and_kinds_are_refused() {
    let dir = Directory::new();
    let unlock = dir.key("key");
    let paths = save(&setup(3, 3), &dir.0, &unlock, false).expect("can be written");
    let [entry, first, second, _, client] = &paths[..] else { panic!("five files") };
    let text = |error: PartyFileError| error.problem.to_string();
    for (message, expected) in [
        (load_entry(second, &unlock).map(|_| ()), "processor 2 of 3, where that of the entry"),
        (load_client(entry, &unlock).map(|_| ()), "the entry, where that of the client"),
        (
            load_processor(client, &unlock, None).map(|_| ()),
            "the client, where that of a processor",
        ),
        (
            load_processor(first, &unlock, Some(1)).map(|_| ()),
            "processor 1 of 3, where that of processor 2",
        ),
    ] {
        let expected = format!("this is the file of {expected} is needed");
        assert_eq!(message.map_err(text), Err(expected));
    }
    let other = Directory::new();
    let others = save(&setup(3, 2), &other.0, &unlock, false).expect("can be written");
    let info = |path: &Path| inspect(path).expect("is right");
    assert!(check_setup(&[(entry, info(entry)), (second, info(second))]).is_ok());
    let error = check_setup(&[(entry, info(entry)), (&others[1], info(&others[1]))]);
    let error = error.expect_err("another setup");
    assert!(error.path == others[1], "{error}");
    assert!(error.to_string().contains(&format!("of setup {:08x}", info(entry).setup)), "{error}");
    let error = load(Path::new("/dev/zero"), &unlock).expect_err("is no file of ours");
    assert_eq!(error.to_string(), "/dev/zero: this is no file of a SplitBox party");
    let error = load(&dir.0.join("nothing"), &unlock).expect_err("is missing");
    assert!(error.to_string().ends_with("nothing: No such file or directory"), "{error}");
    let error = load(client, &other.key("key")).expect_err("another key");
    assert!(matches!(error.problem, FileProblem::Seal), "{error}");
}

#[test]
fn files_are_written_all_or_none() {
    let dir = Directory::new();
    let unlock = dir.key("key");
    let save = |replaces| save(&setup(3, 2), &dir.0, &unlock, replaces);
    let names = || dir.names();
    // One of them exists.
    std::fs::write(dir.0.join("processor-2.splitbox"), "mine").expect("can be written");
    let error = save(false).expect_err("exists");
    assert!(matches!(error.problem, FileProblem::Exists), "{error}");
    assert!(error.path.ends_with("processor-2.splitbox"));
    assert_eq!(names(), ["key", "processor-2.splitbox"]);
    // One of them is a directory.
    std::fs::create_dir(dir.0.join("client.splitbox")).expect("can be made");
    let error = save(true).expect_err("is no file");
    assert!(matches!(error.problem, FileProblem::NoFile), "{error}");
    assert_eq!(names(), ["client.splitbox", "key", "processor-2.splitbox"]);
    std::fs::remove_dir(dir.0.join("client.splitbox")).expect("is empty");
    // A link is not followed.
    symlink("/dev/null", dir.0.join("client.splitbox")).expect("can be made");
    assert!(save(true).is_err());
    std::fs::remove_file(dir.0.join("client.splitbox")).expect("is there");
    let paths = save(true).expect("can be written");
    assert_eq!(names().len(), 5, "{:?}", names());
    let before: Vec<Vec<u8>> =
        paths.iter().map(|it| std::fs::read(it).expect("is there")).collect();
    save(true).expect("can be written");
    for (path, before) in paths.iter().zip(&before) {
        assert!(load(path, &unlock).is_ok() && std::fs::read(path).expect("is there") != *before);
    }
    // The last of them fails: its name is too long.
    let before: Vec<Vec<u8>> =
        paths.iter().map(|it| std::fs::read(it).expect("is there")).collect();
    let mut files: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|it| (it.file_name().expect("has one").to_string_lossy().into(), vec![1]))
        .collect();
    files.push(("missing/directory".to_owned(), vec![1]));
    assert!(store::write_all(&dir.0, &files, true).is_err());
    for (path, before) in paths.iter().zip(&before) {
        assert_eq!(std::fs::read(path).expect("is there"), *before);
    }
    assert_eq!(names().len(), 5, "{:?}", names());
    let missing = super::save(&setup(1, 2), &dir.0.join("missing"), &unlock, false);
    let missing = missing.expect_err("no directory").to_string();
    assert!(missing.ends_with("/missing: No such file or directory"), "{missing}");
}

#[test]
fn authentic_contents_are_checked_too() {
    let setup = setup(3, 2);
    let refused = |change: &dyn Fn(&mut Setup)| {
        let mut changed = setup.clone();
        change(&mut changed);
        let files = seal_all(&changed, &master()).expect("is possible");
        let results = files.into_iter().map(|(name, bytes)| {
            let file = SealedFile::from_bytes(Path::new(&name), bytes).expect("is whole");
            let key = &master().key;
            match file.info().role {
                PartyRole::Entry => file.open_with::<EntryBody>(key).map(|_| ()),
                PartyRole::Processor(_) => file.open_with::<ProcessorBody>(key).map(|_| ()),
                PartyRole::Client => file.open_with::<ClientBody>(key).map(|_| ()),
            }
        });
        let messages = results.filter_map(|it| it.err().map(|error| error.to_string()));
        let messages: Vec<String> = messages.collect();
        messages.join(", ").replace("its contents are wrong: ", "")
    };
    assert_eq!(refused(&|_| {}), "");
    assert_eq!(refused(&|it| it.entry.info.options.lanes = 0), "0 lanes: there are 1 to 64");
    assert_eq!(
        refused(&|it| it.processors[1].info.options.header_bits = 97),
        "97 bits of a header string: n is a multiple of 8, at most 512"
    );
    assert_eq!(
        refused(&|it| it.client.info.options.header_bits = 48),
        "policy 1 is about bits behind the first 48"
    );
    assert_eq!(refused(&|it| it.client.processor_secrets.truncate(1)), "1 links to 2 processors");
    assert_eq!(
        refused(&|it| it.entry.dummies_per_million = 1_000_000),
        "1000000 dummies in a million packets: fewer than 1000000 are possible"
    );
    let fewer = |it: &mut Setup| it.processors[0].shares = it.processors[0].shares[..2].into();
    assert_eq!(refused(&fewer), "there is no share of action 2");
    let wider = |it: &mut Setup| {
        let mut shares = it.processors[0].shares.to_vec();
        shares[1].value = !Bits::ZERO;
        it.processors[0].shares = shares.into();
    };
    assert_eq!(refused(&wider), "a share or a projection has bits behind the header string");
}

/// Any party of a file, as [`load`] has it.
fn open_any(bytes: Vec<u8>, key: &Key) -> Result<(), FileProblem> {
    let file = SealedFile::from_bytes(Path::new(""), bytes).map_err(|error| error.problem)?;
    match file.info().role {
        PartyRole::Entry => file.open_with::<EntryBody>(key).map(|_| ()),
        PartyRole::Processor(_) => file.open_with::<ProcessorBody>(key).map(|_| ()),
        PartyRole::Client => file.open_with::<ClientBody>(key).map(|_| ()),
    }
}

#[test]
fn each_changed_byte_and_each_other_length_is_refused() {
    for (name, bytes) in seal_all(&setup(2, 2), &master()).expect("is possible") {
        let key = &master().key;
        assert!(open_any(bytes.clone(), key).is_ok());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(open_any(changed, key).is_err(), "{name}: byte {at}");
            let cut = open_any(bytes[..at].to_vec(), key).expect_err("is cut");
            let is_right = match cut {
                FileProblem::Truncated => at >= 8,
                FileProblem::Format => at < 8,
                _ => false,
            };
            assert!(is_right, "{name}: {at} bytes: {cut}");
        }
        let longer = open_any([&bytes[..], &[0]].concat(), key);
        assert!(matches!(longer, Err(FileProblem::Length)));
        let mut version = bytes.clone();
        version[9] = 2;
        let error = open_any(version, key).expect_err("another version");
        assert_eq!(error.to_string(), "a party file of version 2; this is version 1");
    }
}

proptest! {
    /// Authentic contents of any kind: bytes that one who has the key may have made.
    #[test]
    fn no_bytes_cause_a_panic(
        file in 0..3_usize,
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<Index>()),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        is_noise: bool,
    ) {
        let setup = setup(4, 2);
        let mut body = match file {
            0 => postcard::to_allocvec(&EntryBody::new(&setup.entry)),
            1 => postcard::to_allocvec(&ProcessorBody::new(&setup.processors[0])),
            _ => postcard::to_allocvec(&ClientBody::new(&setup.client)),
        }
        .expect("is possible");
        if is_noise {
            body = noise;
        }
        for (at, value) in changes {
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = value;
            }
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len() + 1));
        }
        // A party that is accepted works.
        match file {
            0 => _ = postcard::from_bytes::<EntryBody>(&body).map(|it| it.party(1, 2, 0)),
            1 => {
                if let Ok(Ok(party)) = postcard::from_bytes::<ProcessorBody>(&body).map(|it| it.party(1, 2, 0)) {
                    let mut sum = 0;
                    party.function.traverse(|_| true, |action| sum += party.shares[action as usize].value.0.len());
                }
            }
            _ => {
                if let Ok(Ok(party)) = postcard::from_bytes::<ClientBody>(&body).map(|it| it.party(1, 2, 0)) {
                    party.function.evaluate(Bits::first(40));
                }
            }
        }
    }

    #[test]
    fn no_file_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), has_magic: bool) {
        let mut bytes = bytes;
        if has_magic {
            bytes.splice(0..bytes.len().min(10), *b"splitbox\0\x01");
        }
        prop_assert!(open_any(bytes, &master().key).is_err());
    }
}
