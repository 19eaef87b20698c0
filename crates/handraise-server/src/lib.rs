//! The inbox: backend, live events and page.
