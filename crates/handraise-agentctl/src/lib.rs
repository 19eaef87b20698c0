//! Drives an ACP agent and holds its questions.
