//! The binary as its users have it: real processes, real sockets, real files.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod agent_life;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod config;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod gateway_http;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod inbox_command;
#[cfg(test)]
mod odd_agents;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod picker;
#[cfg(test)]
mod presence;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod records;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminals;
#[cfg(test)]
mod tool;
#[cfg(test)]
mod up;
#[cfg(test)]
mod verdicts;
#[cfg(test)]
mod walls;
