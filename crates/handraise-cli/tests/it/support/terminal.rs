//! A terminal: a pty with a program in it, and what is on its screen.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use super::wait_for;

const ROWS: usize = 40;
const COLUMNS: usize = 110;

/// A program in a terminal.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    keyboard: File,
    /// The program's side, kept open so that its settings can be looked at.
    line: File,
    screen: Arc<Mutex<Screen>>,
}

impl Terminal {
    pub(crate) fn run(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: ROWS as u16, ws_col: COLUMNS as u16, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let line = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let child = command
            .env("TERM", "xterm")
            .stdin(line.try_clone().unwrap())
            .stdout(line.try_clone().unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Screen::default()));
        let painted = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                painted.lock().unwrap().take(&buffer[..read]);
            }
        });
        Self { child, keyboard, line, screen }
    }

    /// Presses keys, all at once.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().text()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        let shown = || self.screen().contains(words).then_some(());
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_for(words, shown)));
        assert!(found.is_ok(), "no {words:?} on\n{}", self.screen());
    }

    /// Whether it is as a shell has it: whole lines, and its own screen.
    pub(crate) fn is_put_back(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        let screen = self.screen.lock().unwrap();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO) && !screen.is_other && screen.was_other
    }

    /// The exit status.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let child = &mut self.child;
        wait_for("the end of the program in the terminal", || child.try_wait().unwrap()).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As much of a terminal as the program needs.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    rest: Vec<u8>,
    is_other: bool,
    was_other: bool,
}

impl Screen {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        loop {
            let Some(&first) = self.rest.first() else { return };
            let used = if first == 0x1b {
                let Some(end) = self.rest.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte)) else {
                    return;
                };
                let sequence: Vec<u8> = self.rest[2..end + 3].to_vec();
                self.control(&String::from_utf8(sequence).unwrap());
                end + 3
            } else {
                let length = match first {
                    0..0x80 => 1,
                    0xc0..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                if self.rest.len() < length {
                    return;
                }
                self.write(std::str::from_utf8(&self.rest[..length]).unwrap().chars().next().unwrap());
                length
            };
            self.rest.drain(..used);
        }
    }

    fn control(&mut self, sequence: &str) {
        let (parameters, last) = sequence.split_at(sequence.len() - 1);
        match (last, parameters) {
            ("H", _) => {
                let (row, column) = parameters.split_once(';').unwrap();
                (self.row, self.column) =
                    (row.parse::<usize>().unwrap() - 1, column.parse::<usize>().unwrap() - 1);
            }
            ("K", _) => {
                let column = self.column;
                self.line().truncate(column);
            }
            ("J", _) => self.lines.clear(),
            ("h", "?1049") => (self.is_other, self.was_other) = (true, true),
            ("l", "?1049") => self.is_other = false,
            ("h" | "l" | "m", _) => {}
            other => panic!("this terminal does not know {other:?}"),
        }
    }

    fn line(&mut self) -> &mut Vec<char> {
        let row = self.row;
        if self.lines.len() <= row {
            self.lines.resize(row + 1, Vec::new());
        }
        &mut self.lines[row]
    }

    fn write(&mut self, character: char) {
        assert!(!character.is_control(), "S42: a control character on the screen: {character:?}");
        assert!(self.row < ROWS, "below the screen");
        let column = self.column;
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = character;
        self.column += 1;
    }

    fn text(&self) -> String {
        let lines =
            self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned() + "\n");
        lines.collect()
    }
}
