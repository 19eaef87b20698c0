//! Settings: their names, defaults and precedence.
