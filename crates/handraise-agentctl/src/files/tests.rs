//! What file methods may and may not do, with links swapped under them (S45).

use std::{fs, os::unix::fs as unix};

use tempfile::TempDir;

use super::*;

/// A working directory `work` beside a file `secret`.
struct Place {
    dir: TempDir,
    files: Files,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        let files = Files::open(&dir.path().join("work")).unwrap();
        Self { dir, files }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/work/{name}", self.dir.path().display())
    }

    fn read(&self, name: &str) -> Result<String, String> {
        self.files.read(&self.path(name), None, None).map_err(|error| error.to_string())
    }

    fn write(&self, name: &str, content: &str) -> Result<(), String> {
        self.files.write(&self.path(name), content).map_err(|error| error.to_string())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

const OUTSIDE: &str = "the path is outside the session's working directory";

#[test]
fn s45_files_beneath_the_working_directory_are_read_and_written() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\nthree").unwrap();
    assert_eq!(place.read("a.txt").unwrap(), "one\ntwo\nthree");
    assert_eq!(place.files.read(&place.path("a.txt"), Some(2), Some(1)).unwrap(), "two\n");
    assert_eq!(place.files.read(&place.path("a.txt"), Some(9), None).unwrap(), "");
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/b.txt", "b").unwrap();
    assert_eq!(place.read("sub/../sub/./b.txt").unwrap(), "b");
    assert_eq!(place.names(), ["a.txt", "sub"], "no temporary file is left");
}

#[test]
fn s45_no_path_and_no_link_leads_out() {
    let place = Place::new();
    let secret = place.dir.path().join("secret");
    assert_eq!(place.read("../secret").unwrap_err(), OUTSIDE);
    assert!(!place.read("sub/../../secret").unwrap_err().contains("secret"));
    assert_eq!(place.write("../new", "x").unwrap_err(), OUTSIDE);
    unix::symlink(&secret, place.path("absolute")).unwrap();
    unix::symlink("../secret", place.path("relative")).unwrap();
    unix::symlink("..", place.path("up")).unwrap();
    unix::symlink("/proc/self/root", place.path("magic")).unwrap();
    for link in ["absolute", "relative", "up/secret", "magic/etc/passwd"] {
        assert_eq!(place.read(link).unwrap_err(), OUTSIDE, "{link}");
    }
    assert_eq!(place.write("up/secret", "x").unwrap_err(), OUTSIDE);
    assert_eq!(place.write("relative", "x").unwrap_err(), "not a regular file");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(place.files.read("a.txt", None, None).unwrap_err().to_string(), "the path is not absolute");
    let other = secret.to_str().unwrap();
    assert_eq!(place.files.read(other, None, None).unwrap_err().to_string(), OUTSIDE);
}

#[test]
fn s45_links_that_stay_inside_are_followed_for_reading() {
    let place = Place::new();
    place.write("a.txt", "a").unwrap();
    unix::symlink("a.txt", place.path("link")).unwrap();
    assert_eq!(place.read("link").unwrap(), "a");
}

#[test]
fn s45_only_regular_files_with_one_name() {
    let place = Place::new();
    fs::hard_link(place.dir.path().join("secret"), place.path("hard")).unwrap();
    assert_eq!(place.read("hard").unwrap_err(), "the file has several names (hard links)");
    assert_eq!(place.write("hard", "x").unwrap_err(), "the file has several names (hard links)");
    rustix::fs::mkfifoat(CWD, place.path("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(place.read("pipe").unwrap_err(), "not a regular file", "and it does not wait for a writer");
    assert_eq!(place.write("pipe", "x").unwrap_err(), "not a regular file");
    assert_eq!(place.read("").unwrap_err(), "not a regular file");
    assert_eq!(place.write("", "x").unwrap_err(), "not a regular file");
}

#[test]
fn s45_commands_run_beneath_the_working_directory_only() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    fs::create_dir(place.dir.path().join("other")).unwrap();
    unix::symlink("../other", place.path("out")).unwrap();
    place.write("file", "x").unwrap();
    let entered = |path: Option<&str>| {
        let directory = place.files.directory(path).map_err(|error| error.to_string())?;
        Ok::<_, String>(fs::read_link(entrance(&directory)).unwrap())
    };
    let work = fs::canonicalize(place.dir.path().join("work")).unwrap();
    assert_eq!(entered(None).unwrap(), work);
    assert_eq!(entered(Some(&place.path(""))).unwrap(), work);
    assert_eq!(entered(Some(&place.path("sub"))).unwrap(), work.join("sub"));
    for outside in ["..", "out", "sub/../../other"] {
        assert_eq!(entered(Some(&place.path(outside))).unwrap_err(), OUTSIDE, "{outside}");
    }
    assert_eq!(entered(Some("/")).unwrap_err(), OUTSIDE);
    assert_eq!(entered(Some("sub")).unwrap_err(), "the path is not absolute");
    assert_eq!(entered(Some(&place.path("file"))).unwrap_err(), "not a directory");
}

#[cfg(target_os = "linux")]
#[test]
fn s45_beneath_the_root_our_own_environment_is_no_file() {
    let files = Files::open(Path::new("/")).unwrap();
    for path in ["/proc/self/environ", "/proc/self/status", "/proc/1/cmdline", "/dev/zero"] {
        assert_eq!(files.read(path, None, None).unwrap_err().to_string(), "not a regular file", "{path}");
    }
    // A magic link leads to an open file or another root, whoever's it is.
    let own = format!("/proc/{}/fd/0", std::process::id());
    for path in ["/proc/self/fd/0", "/proc/thread-self/cwd/Cargo.toml", &own] {
        assert!(files.read(path, None, None).is_err(), "{path}");
    }
    for path in ["/proc/self/comm", "/proc/self/fd/1", "/dev/null"] {
        assert!(files.write(path, "x").is_err(), "{path}");
    }
}

/// Swaps two names as fast as it can until it is dropped.
struct Swapper {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(one: String, other: String) -> Self {
        use rustix::fs::{RenameFlags, renameat_with};
        let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let seen = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !seen.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn s45_links_that_are_swapped_while_we_look_lead_nowhere() {
    // A file and a link out; a directory and a link out; a file and another name of the secret.
    for (name, swapped, read) in
        [("file", "link", "file"), ("sub", "up", "sub/secret"), ("file", "hard", "file")]
    {
        let mut was_read = false;
        // A write that lands replaces what was swapped in, so every round begins anew.
        for _ in 0..20 {
            let place = Place::new();
            let secret = place.dir.path().join("secret");
            place.write("file", "inside").unwrap();
            fs::create_dir(place.path("sub")).unwrap();
            place.write("sub/secret", "inside").unwrap();
            unix::symlink("../secret", place.path("link")).unwrap();
            unix::symlink("..", place.path("up")).unwrap();
            fs::hard_link(&secret, place.path("hard")).unwrap();
            let swapper = Swapper::start(place.path(name), place.path(swapped));
            for _ in 0..50 {
                if let Ok(text) = place.read(read) {
                    assert_eq!(text, "inside", "{read}");
                    was_read = true;
                }
            }
            for _ in 0..5 {
                // What is written lands inside or nowhere.
                let _ = place.write(read, "inside");
            }
            drop(swapper);
            assert_eq!(fs::read_to_string(&secret).unwrap(), "secret", "{read}");
        }
        assert!(was_read, "{read}");
    }
}

#[test]
fn s45_what_replaces_a_private_file_is_private_from_the_start() {
    let place = Place::new();
    let directory = openat(CWD, place.path(""), OFlags::DIRECTORY | OFlags::PATH, Mode::empty()).unwrap();
    let temporary = Temporary::create(&directory, Some(Mode::from_raw_mode(0o640))).unwrap();
    assert_eq!(fstat(&temporary.file).unwrap().st_mode & 0o077, 0);
}

#[test]
fn s45_at_most_16_mib_and_text_only() {
    let place = Place::new();
    let file = File::create(place.path("large")).unwrap();
    file.set_len(MAX_FILE).unwrap();
    assert_eq!(place.read("large").unwrap().len(), 16 * 1024 * 1024);
    file.set_len(MAX_FILE + 1).unwrap();
    assert_eq!(place.read("large").unwrap_err(), "the file is larger than 16 MiB");
    let content = "x".repeat(16 * 1024 * 1024 + 1);
    assert_eq!(place.write("new", &content).unwrap_err(), "the file is larger than 16 MiB");
    fs::write(place.path("binary"), b"\xFF\xFE").unwrap();
    assert_eq!(place.read("binary").unwrap_err(), "the file is not UTF-8 text");
    assert_eq!(place.names(), ["binary", "large"]);
}

#[test]
fn s45_a_write_replaces_the_file_whole_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.write("run.sh", "old").unwrap();
    fs::set_permissions(place.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let reader = File::open(place.path("run.sh")).unwrap();
    place.write("run.sh", "new").unwrap();
    assert_eq!(io::read_to_string(reader).unwrap(), "old", "whoever had it open sees the old one whole");
    assert_eq!(place.read("run.sh").unwrap(), "new");
    let mode = fs::metadata(place.path("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn s45_without_openat2_nothing_follows_a_link() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a.txt", "a").unwrap();
    unix::symlink("a.txt", place.path("sub/link")).unwrap();
    unix::symlink("..", place.path("up")).unwrap();
    let walk = |path: &str| place.files.walk(Path::new(path), OFlags::RDONLY);
    assert!(walk("sub/a.txt").is_ok());
    assert!(walk("./sub/./a.txt").is_ok());
    assert!(walk("sub/link").is_err());
    assert!(walk("up/secret").is_err());
    assert!(matches!(walk("../secret"), Err(FileError::Outside)));
}
