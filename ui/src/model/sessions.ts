// Sessions in their groups, each with its state sign. Pure.
import type { Session } from "../api/types.ts";

/** A session with an open ask is waiting and nothing else, whatever else it does (AC-09). */
export type SessionSign = "waiting" | "running" | "background" | "finished" | "cancelled" | "failed";
export type SessionGroup = "waiting" | "working" | "resting" | "ended";

export function signOf(session: Session): SessionSign {
  if (session.state !== "ended" && session.pending_action === "clarification") return "waiting";
  if (session.state === "running") return "running";
  if (session.background) return "background";
  switch (session.stop_reason) {
    case "cancelled":
      return "cancelled";
    case null:
    case "end_turn":
      return "finished";
    default:
      return "failed";
  }
}

export function sessionGroups(sessions: Iterable<Session>): { group: SessionGroup; sessions: Session[] }[] {
  const groups = new Map<SessionGroup, Session[]>([
    ["waiting", []],
    ["working", []],
    ["resting", []],
    ["ended", []],
  ]);
  for (const session of sessions) {
    const sign = signOf(session);
    const name = sign === "waiting" ? "waiting" : sign === "running" || sign === "background" ? "working" : session.state === "ended" ? "ended" : "resting";
    groups.get(name)?.push(session);
  }
  for (const list of groups.values()) list.sort((a, b) => (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : 0));
  return [...groups].filter(([, list]) => list.length > 0).map(([group, list]) => ({ group, sessions: list }));
}
