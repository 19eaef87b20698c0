//! `handraise mcp` in front of the scripted server, as a client sees it.

mod asking;
mod confirm;
mod ending;
mod example;
mod frames;
mod hostile;
mod transparency;
