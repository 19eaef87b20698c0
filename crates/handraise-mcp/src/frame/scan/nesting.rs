//! What a value stands in, however deep.

/// One bit a level: whether it is an object.
#[derive(Default)]
pub(super) struct Nesting {
    depth: usize,
    /// The innermost levels, of which there are 1 to 64 when there is any level.
    near: u64,
    /// Full words of the levels around them.
    far: Vec<u64>,
}

impl Nesting {
    #[inline]
    pub(super) fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = self.near << 1 | u64::from(is_object);
        self.depth += 1;
    }

    #[inline]
    pub(super) fn innermost(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.near & 1 == 1)
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        self.depth -= 1;
        self.near >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.near = self.far.pop().unwrap_or_default();
        }
    }
}
