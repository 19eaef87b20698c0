//! The Agent Client Protocol as handraise reads and answers it.
