//! Waiting for whoever is ready: by epoll, which costs by what has happened and not by what is watched, else by poll.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[cfg(target_os = "linux")]
use self::linux::Set;

/// Who is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Signals, and other threads of ours.
    Wakeups,
    /// The client's output.
    Client,
    /// The server's.
    Server,
    /// The server's complaints.
    Complaints,
    /// The way to the server.
    ToServer,
    /// The way to the client.
    ToClient,
}

const EVERYBODY: usize = 6;

/// What somebody is waited for. Who is of no interest is not watched at all: ends and errors would be told all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It can be read, or has ended.
    Input,
    /// It takes more, or nothing any more.
    Room,
    /// Its reader is gone: of a pipe that is written to, the one thing that comes unasked.
    Deaf,
}

impl Until {
    fn flags(self) -> PollFlags {
        match self {
            Self::Input => PollFlags::IN,
            Self::Room => PollFlags::OUT,
            Self::Deaf => PollFlags::empty(),
        }
    }
}

/// A descriptor, as long as it is open, and what it is waited for.
pub(crate) type Interest<'a> = (Option<BorrowedFd<'a>>, Option<Until>);

/// Everybody's, in the order of [`Who`].
pub(crate) type Interests<'a> = [Interest<'a>; EVERYBODY];

/// Who is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ready(u8);

impl Ready {
    pub(crate) fn has(self, who: Who) -> bool {
        self.0 & (1 << who as u8) != 0
    }

    fn add(&mut self, index: usize) {
        self.0 |= 1 << index;
    }
}

/// Waits.
pub(crate) struct Waiter {
    /// Gone once it could not watch something: regular files are none of its business.
    #[cfg(target_os = "linux")]
    set: Option<Set>,
}

impl Waiter {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            set: Set::new().ok(),
        }
    }

    /// Waits for somebody who is ready, at most so long. An interrupted or failed wait is looked at like a timeout.
    pub(crate) fn wait(&mut self, interests: &Interests<'_>, timeout: Option<&Timespec>) -> Ready {
        #[cfg(target_os = "linux")]
        if let Some(set) = &mut self.set {
            if let Ok(()) = set.watch(interests) {
                return set.wait(timeout);
            }
            self.set = None;
        }
        by_poll(interests, timeout)
    }

    /// Somebody goes elsewhere with its descriptor open.
    pub(crate) fn leave(&mut self, who: Who, descriptor: BorrowedFd<'_>) {
        #[cfg(target_os = "linux")]
        if let Some(set) = &mut self.set
            && set.leave(who as usize, descriptor).is_err()
        {
            self.set = None;
        }
    }
}

fn by_poll(interests: &Interests<'_>, timeout: Option<&Timespec>) -> Ready {
    let mut watched = Vec::with_capacity(EVERYBODY);
    let mut places = Vec::with_capacity(EVERYBODY);
    for (place, interest) in interests.iter().enumerate() {
        if let (Some(descriptor), Some(until)) = interest {
            watched.push(PollFd::from_borrowed_fd(*descriptor, until.flags()));
            places.push(place);
        }
    }
    let mut ready = Ready::default();
    if poll(&mut watched, timeout).is_ok() {
        for (place, watched) in places.into_iter().zip(&watched) {
            if !watched.revents().is_empty() {
                ready.add(place);
            }
        }
    }
    ready
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{BorrowedFd, OwnedFd};

    use rustix::{
        buffer::spare_capacity,
        event::{
            Timespec,
            epoll::{self, CreateFlags, Event, EventData, EventFlags},
        },
        io,
    };

    use super::{EVERYBODY, Interests, Ready, Until};

    /// An epoll set, and what it watches. A descriptor that is closed leaves it by itself, unless it has a duplicate: then
    /// the set is made anew as soon as it tells of it.
    pub(super) struct Set {
        descriptor: OwnedFd,
        watched: [Option<Until>; EVERYBODY],
        events: Vec<Event>,
    }

    impl Until {
        fn events(self) -> EventFlags {
            match self {
                Self::Input => EventFlags::IN,
                Self::Room => EventFlags::OUT,
                Self::Deaf => EventFlags::empty(),
            }
        }
    }

    impl Set {
        pub(super) fn new() -> io::Result<Self> {
            let descriptor = epoll::create(CreateFlags::CLOEXEC)?;
            Ok(Self { descriptor, watched: [None; EVERYBODY], events: Vec::with_capacity(EVERYBODY) })
        }

        /// Watches these from now on. Mostly they are the same as before.
        pub(super) fn watch(&mut self, interests: &Interests<'_>) -> io::Result<()> {
            for (place, (descriptor, until)) in interests.iter().enumerate() {
                let Some(descriptor) = *descriptor else {
                    self.watched[place] = None;
                    continue;
                };
                let data = EventData::new_u64(place as u64);
                match (self.watched[place], *until) {
                    (before, now) if before == now => continue,
                    (None, Some(until)) => epoll::add(&self.descriptor, descriptor, data, until.events())?,
                    (Some(_), Some(until)) => {
                        epoll::modify(&self.descriptor, descriptor, data, until.events())?;
                    }
                    (_, None) => epoll::delete(&self.descriptor, descriptor)?,
                }
                self.watched[place] = *until;
            }
            Ok(())
        }

        pub(super) fn wait(&mut self, timeout: Option<&Timespec>) -> Ready {
            self.events.clear();
            let mut ready = Ready::default();
            let mut is_outdated = false;
            if epoll::wait(&self.descriptor, spare_capacity(&mut self.events), timeout).is_ok() {
                for event in &self.events {
                    // The structure is packed: its parts are copied.
                    let data = event.data;
                    let place = usize::try_from(data.u64()).unwrap_or(EVERYBODY);
                    if self.watched.get(place).is_some_and(Option::is_some) {
                        ready.add(place);
                    } else {
                        is_outdated = true;
                    }
                }
            }
            if is_outdated && let Ok(anew) = Self::new() {
                *self = anew;
            }
            ready
        }

        pub(super) fn leave(&mut self, place: usize, descriptor: BorrowedFd<'_>) -> io::Result<()> {
            if self.watched[place].take().is_some() {
                epoll::delete(&self.descriptor, descriptor)
            } else {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Write as _},
        os::fd::AsFd as _,
    };

    use handraise_transport::clock::{Clock as _, SystemClock};

    use super::*;

    const NOBODY: Interest<'static> = (None, None);
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    fn pipe() -> (File, File) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        (read.into(), write.into())
    }

    /// What a waiter says, however it waits.
    fn waiters() -> Vec<Waiter> {
        #[cfg(target_os = "linux")]
        return vec![Waiter::new(), Waiter { set: None }];
        #[cfg(not(target_os = "linux"))]
        return vec![Waiter::new()];
    }

    #[test]
    fn who_is_ready_is_told_apart_from_who_is_not_and_who_is_not_asked_for() {
        for mut waiter in waiters() {
            let (mut client, mut to_us) = pipe();
            let (server, _quiet) = pipe();
            let (from_us, to_server) = pipe();
            let interests = |reads: bool, until: Until| {
                let mut interests = [NOBODY; EVERYBODY];
                interests[Who::Client as usize] = (Some(client.as_fd()), reads.then_some(Until::Input));
                interests[Who::Server as usize] = (Some(server.as_fd()), Some(Until::Input));
                interests[Who::ToServer as usize] = (Some(to_server.as_fd()), Some(until));
                interests
            };
            assert_eq!(waiter.wait(&interests(true, Until::Deaf), Some(&AT_ONCE)), Ready::default());
            to_us.write_all(b"x").unwrap();
            let ready = waiter.wait(&interests(true, Until::Deaf), None);
            assert!(ready.has(Who::Client) && !ready.has(Who::Server) && !ready.has(Who::ToServer));
            assert_eq!(waiter.wait(&interests(false, Until::Deaf), Some(&AT_ONCE)), Ready::default());
            let ready = waiter.wait(&interests(false, Until::Room), None);
            assert!(ready.has(Who::ToServer) && !ready.has(Who::Client));
            drop(from_us);
            assert!(waiter.wait(&interests(false, Until::Deaf), None).has(Who::ToServer));
            assert!(waiter.wait(&interests(true, Until::Deaf), None).has(Who::Client));
            let _ = client.read(&mut [0]).unwrap();
        }
    }

    fn socket() -> (File, File) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        (std::os::fd::OwnedFd::from(ours).into(), std::os::fd::OwnedFd::from(theirs).into())
    }

    #[test]
    fn a_client_that_is_not_read_is_told_of_once_it_has_gone_and_keeps_what_it_sent() {
        for make in [pipe, socket] {
            for mut waiter in waiters() {
                let ((mut client, mut from_client), (gone, to_client)) = (make(), make());
                let interests = |until: Option<Until>| {
                    let mut interests = [NOBODY; EVERYBODY];
                    interests[Who::Client as usize] = (Some(client.as_fd()), until);
                    interests[Who::ToClient as usize] = (Some(to_client.as_fd()), until);
                    interests
                };
                from_client.write_all(b"x").unwrap();
                let deaf = interests(Some(Until::Deaf));
                assert_eq!(waiter.wait(&deaf, Some(&AT_ONCE)), Ready::default());
                drop(gone);
                let ready = waiter.wait(&deaf, None);
                assert!(ready.has(Who::ToClient) && !ready.has(Who::Client));
                drop(from_client);
                assert!(waiter.wait(&deaf, None).has(Who::Client));
                assert_eq!(waiter.wait(&interests(None), Some(&AT_ONCE)), Ready::default());
                assert!(waiter.wait(&interests(Some(Until::Input)), None).has(Who::Client));
                assert_eq!((client.read(&mut [0; 2]).unwrap(), client.read(&mut [0; 2]).unwrap()), (1, 0));
            }
        }
    }

    #[test]
    fn who_is_closed_or_has_left_is_not_told_of() {
        for mut waiter in waiters() {
            let (complaints, to_us) = pipe();
            let mut interests = [NOBODY; EVERYBODY];
            interests[Who::Complaints as usize] = (Some(complaints.as_fd()), Some(Until::Input));
            drop(to_us);
            assert!(waiter.wait(&interests, None).has(Who::Complaints));
            waiter.leave(Who::Complaints, complaints.as_fd());
            assert_eq!(waiter.wait(&[NOBODY; EVERYBODY], Some(&AT_ONCE)), Ready::default());
            let (from_us, to_server) = pipe();
            let mut interests = [NOBODY; EVERYBODY];
            interests[Who::ToServer as usize] = (Some(to_server.as_fd()), Some(Until::Room));
            assert!(waiter.wait(&interests, None).has(Who::ToServer));
            drop(to_server);
            assert_eq!(waiter.wait(&[NOBODY; EVERYBODY], Some(&AT_ONCE)), Ready::default());
            drop(from_us);
        }
    }

    #[test]
    fn who_is_closed_but_has_a_duplicate_is_told_of_once_at_most() {
        for mut waiter in waiters() {
            let (from_us, to_client) = pipe();
            let given = to_client.try_clone().unwrap();
            let mut interests = [NOBODY; EVERYBODY];
            interests[Who::ToClient as usize] = (Some(to_client.as_fd()), Some(Until::Room));
            assert!(waiter.wait(&interests, None).has(Who::ToClient));
            drop((from_us, to_client));
            let (server, _quiet) = pipe();
            let mut interests = [NOBODY; EVERYBODY];
            interests[Who::Server as usize] = (Some(server.as_fd()), Some(Until::Input));
            assert_eq!(waiter.wait(&interests, Some(&AT_ONCE)), Ready::default());
            let a_moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let began = SystemClock.boot_millis();
            assert_eq!(waiter.wait(&interests, Some(&a_moment)), Ready::default());
            assert!(SystemClock.boot_millis() - began >= 19, "it waits, and does not spin");
            drop(given);
        }
    }

    #[test]
    fn a_regular_file_is_ready() {
        let file = tempfile();
        for mut waiter in waiters() {
            let mut interests = [NOBODY; EVERYBODY];
            interests[Who::Client as usize] = (Some(file.as_fd()), Some(Until::Input));
            for _ in 0..2 {
                assert!(waiter.wait(&interests, None).has(Who::Client));
            }
        }
    }

    fn tempfile() -> File {
        File::open(std::env::current_exe().unwrap()).unwrap()
    }
}
