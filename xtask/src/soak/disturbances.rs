//! What goes wrong on purpose, chosen by the seed: streams are cut, and processes ended in turn.

use std::{collections::BTreeMap, process::Child, sync::Mutex, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    agents::{Agent, Slot},
    chance::Chance,
    relay::Pass,
    run::{MARK, Run, lock},
    scripts::Script,
};
use crate::{
    clock,
    inbox::{processes_with, send},
};

/// One kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    CutStreams,
    LoseAnAnswer,
    LoseAVerdict,
    KillUp,
    EndUp,
    KillAgentctl,
    EndAgentctl,
    KillSupervisor,
    KillAgent,
    KillAsk,
    EndAsk,
}

/// All of them.
const ALL: [Disturbance; 11] = [
    Disturbance::CutStreams,
    Disturbance::LoseAnAnswer,
    Disturbance::LoseAVerdict,
    Disturbance::KillAgentctl,
    Disturbance::EndAgentctl,
    Disturbance::KillSupervisor,
    Disturbance::KillAgent,
    Disturbance::KillAsk,
    Disturbance::EndAsk,
    Disturbance::KillUp,
    Disturbance::EndUp,
];

/// Disturbs until the run closes. In its second half `up` lives on, so that its memory can be judged. Returns how often
/// each happened.
pub(super) fn work(
    run: &Run,
    agents: &[Agent],
    scripts: &[Script],
    mut chance: Chance,
) -> anyhow::Result<BTreeMap<Disturbance, usize>> {
    let mut counts = BTreeMap::new();
    let mut round = Vec::new();
    while !pause(run, 1_000 + chance.below(2_500)) {
        // Each kind happens once before one happens again.
        if round.is_empty() {
            round = chance.shuffled(&ALL);
        }
        let Some(kind) = round.pop() else { break };
        if run.is_in_second_half() && matches!(kind, Disturbance::KillUp | Disturbance::EndUp) {
            continue;
        }
        let which = usize::try_from(chance.below(1_000)).unwrap_or(0);
        let wait = Duration::from_millis(chance.below(1_500));
        *counts.entry(kind).or_default() += 1;
        let (agent, script) =
            (agents.get(which % agents.len().max(1)), scripts.get(which % scripts.len().max(1)));
        let whom = match kind {
            Disturbance::KillAsk | Disturbance::EndAsk => script.map(|script| script.name.as_str()),
            Disturbance::KillAgentctl
            | Disturbance::EndAgentctl
            | Disturbance::KillSupervisor
            | Disturbance::KillAgent => agent.map(|agent| agent.name.as_str()),
            _ => None,
        };
        run.note(&format!("{kind:?} {}", whom.unwrap_or_default()));
        let (agent, script) = (agent.map(|agent| &agent.slot), script.map(|script| &script.slot));
        // Long enough for an answer to come by.
        let while_one_comes = wait + Duration::from_millis(500);
        match kind {
            Disturbance::CutStreams => relay(run, Pass::Nothing, wait),
            Disturbance::LoseAnAnswer => relay(run, Pass::LoseTheAnswer, while_one_comes),
            Disturbance::LoseAVerdict => relay(run, Pass::LoseTheVerdict, while_one_comes),
            Disturbance::KillUp => run.restart_up(Signal::KILL, wait)?,
            Disturbance::EndUp => run.restart_up(Signal::TERM, wait)?,
            Disturbance::KillAgentctl => hit(agent, |child| send(child, Signal::KILL)),
            Disturbance::EndAgentctl => hit(agent, |child| send(child, Signal::TERM)),
            Disturbance::KillSupervisor => hit(agent, |child| kill_below(run, child.id(), 1)),
            Disturbance::KillAgent => hit(agent, |child| kill_below(run, child.id(), 2)),
            Disturbance::KillAsk => hit(script, |child| send(child, Signal::KILL)),
            Disturbance::EndAsk => hit(script, |child| send(child, Signal::TERM)),
        }
    }
    run.relay.set(Pass::Everything);
    Ok(counts)
}

fn relay(run: &Run, pass: Pass, wait: Duration) {
    run.relay.set(pass);
    std::thread::sleep(wait);
    run.relay.set(Pass::Everything);
}

fn hit(slot: Option<&Mutex<Option<Slot>>>, act: impl FnOnce(&Child)) {
    if let Some(slot) = slot
        && let Some(slot) = lock(slot).as_mut()
    {
        slot.is_hit = true;
        act(&slot.child);
    }
}

/// Kills what is so many generations below a process, if it is of this run: the supervisor, or the agent below it.
fn kill_below(run: &Run, id: u32, generations: usize) {
    let mut found = vec![id];
    for _ in 0..generations {
        found = found.into_iter().flat_map(children).collect();
    }
    let ours = processes_with(MARK, &run.mark());
    for id in found.into_iter().filter_map(|id| i32::try_from(id).ok()).filter(|id| ours.contains(id)) {
        if let Some(id) = Pid::from_raw(id) {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let texts = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Waits so many milliseconds; true when the run closes meanwhile.
fn pause(run: &Run, milliseconds: u64) -> bool {
    let start = clock::now();
    while clock::since(start) < milliseconds * 1_000_000 {
        if run.is_closing() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    run.is_closing()
}
