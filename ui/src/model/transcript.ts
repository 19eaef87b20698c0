// From messages to what a transcript shows: joined text, one line a tool call, the cards where they were asked. Pure.
import type { Message } from "../api/types.ts";

export type ToolStatus = "running" | "done" | "failed" | "waiting";

export interface ToolLine {
  key: string;
  text: string;
  status: ToolStatus;
  began: number;
  ended: number | null;
}

export type Turn =
  | { is: "said"; key: string; by: "agent" | "operator"; thought: boolean; at: string; text: string }
  | { is: "tools"; key: string; tools: ToolLine[] }
  | { is: "plan"; key: string; entries: { text: string; status: string }[]; text: string }
  | { is: "ask"; key: string; ask: string; text: string }
  | { is: "ended"; key: string; at: string; reason: string }
  | { is: "notice"; key: string; text: string };

/** Adds messages in sequence order, each once. */
export function addMessages(known: readonly Message[], more: readonly Message[]): Message[] {
  const last = known.at(-1)?.seq ?? -1;
  const isNext = more.every((message, index) => message.seq > (more[index - 1]?.seq ?? last));
  if (isNext) return [...known, ...more];
  const bySeq = new Map(known.map((message) => [message.seq, message]));
  for (const message of more) bySeq.set(message.seq, message);
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

/** `waiting` are tool calls with an open ask. */
export function turns(messages: readonly Message[], waiting: ReadonlySet<string>): Turn[] {
  const result: Turn[] = [];
  const tools = new Map<string, ToolLine>();
  const asks = new Set<string>();
  for (const message of messages) {
    const key = String(message.seq);
    const last = result.at(-1);
    switch (message.type) {
      case "agent_text":
      case "thought":
      case "user_text": {
        const by = message.type === "user_text" ? "operator" : "agent";
        const thought = message.type === "thought";
        if (message.continues === true && last?.is === "said" && last.by === by && last.thought === thought) last.text += message.text;
        else result.push({ is: "said", key, by, thought, at: message.at, text: message.text });
        break;
      }
      case "tool_call": {
        const id = word(message, "tool_call_id") ?? key;
        const at = Date.parse(message.at);
        const status = statusOf(word(message, "status"), waiting.has(id));
        const known = tools.get(id);
        if (known !== undefined) {
          if (message.text !== "") known.text = message.text;
          known.status = status;
          if (status === "done" || status === "failed") known.ended = at;
          break;
        }
        const line: ToolLine = { key: id, text: message.text, status, began: at, ended: status === "done" || status === "failed" ? at : null };
        tools.set(id, line);
        if (last?.is === "tools") last.tools.push(line);
        else result.push({ is: "tools", key, tools: [line] });
        break;
      }
      case "plan":
        result.push({ is: "plan", key, entries: planEntries(message.metadata["entries"]), text: message.text });
        break;
      case "clarification_request": {
        const ask = word(message, "pending_id");
        if (ask === null || asks.has(ask)) break;
        asks.add(ask);
        result.push({ is: "ask", key, ask, text: message.text });
        break;
      }
      case "turn_ended":
        result.push({ is: "ended", key, at: message.at, reason: word(message, "stop_reason") ?? message.text });
        break;
      case "notice":
        result.push({ is: "notice", key, text: message.text });
        break;
    }
  }
  return result;
}

function statusOf(status: string | null, waits: boolean): ToolStatus {
  if (status === "completed") return "done";
  if (status === "failed" || status === "cancelled") return "failed";
  return waits ? "waiting" : "running";
}

function planEntries(value: unknown): { text: string; status: string }[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter((entry): entry is Record<string, unknown> => typeof entry === "object" && entry !== null)
    .map((entry) => ({ text: String(entry["content"] ?? ""), status: String(entry["status"] ?? "") }))
    .filter((entry) => entry.text !== "");
}

function word(message: Message, name: string): string | null {
  const value = message.metadata[name];
  return typeof value === "string" && value !== "" ? value : null;
}
