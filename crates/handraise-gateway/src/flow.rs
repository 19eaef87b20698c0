//! One direction: where frames come from, and where they go.

use std::{fs::File, io};

use handraise_transport::frames::{Found, Frames, Place, Source};
use rustix::{buffer::spare_capacity, io::Errno};

use crate::outlet::{Gone, Outlet};

/// A direction. It is read only while nothing waits to be written, so that what is read goes on uncopied.
pub(crate) struct Flow {
    frames: Frames<Ready>,
    pub(crate) outlet: Outlet,
    /// Nothing more comes.
    pub(crate) has_ended: bool,
}

/// A descriptor that is read when it is ready, and never waited for.
pub(crate) struct Ready(File);

impl Source for Ready {
    fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, spare_capacity(buffer)) {
                Err(Errno::INTR) => {}
                read => return read.map_err(io::Error::from),
            }
        }
    }
}

impl Flow {
    pub(crate) fn new(from: File, outlet: Outlet, max_frame: usize) -> Self {
        Self { frames: Frames::new(Ready(from), max_frame), outlet, has_ended: false }
    }

    /// The descriptor that frames come from.
    pub(crate) fn source(&self) -> &File {
        &self.frames.source().0
    }

    /// Whether there is a reason to read.
    pub(crate) fn wants_more(&self) -> bool {
        !self.has_ended && self.outlet.is_empty()
    }

    /// Reads once; false when nothing has come. What fails cannot be read on: that is the end.
    pub(crate) fn fill(&mut self) -> bool {
        match self.frames.fill() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            more => {
                self.has_ended = !more.unwrap_or(false);
                true
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<Found> {
        self.frames.next()
    }

    pub(crate) fn bytes(&self, place: &Place) -> &[u8] {
        self.frames.bytes(place.frame.clone())
    }

    /// Sends a line on as it came.
    pub(crate) fn forward(&mut self, place: &Place) {
        self.outlet.forward(place.line.clone());
        if place.line.end == place.frame.end {
            // The last line of a stream may lack its end.
            self.outlet.add(b"\n".to_vec());
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        let Self { frames, outlet, .. } = self;
        outlet.flush(|place| frames.bytes(place))
    }
}
