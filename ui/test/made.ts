// Asks for the unit tests.
import type { Ask, Choice, Question, Settlement } from "../src/api/types.ts";

export function choice(value: string, label = value): Choice {
  return { value, label, description: null, preview: null };
}

export function question(id: string, more: Partial<Question> = {}): Question {
  return {
    id,
    kind: "text",
    title: null,
    prompt: id,
    required: false,
    default: null,
    allows_text: false,
    companion: null,
    secret: false,
    choices: [],
    constraints: {},
    ...more,
  };
}

export function ask(more: Partial<Ask> = {}): Ask {
  return {
    id: "a1",
    digest: "d1",
    state: "open",
    source: "elicitation",
    mode: "form",
    session_id: null,
    tool_call_id: null,
    message: "Pick",
    url: null,
    confirm: null,
    on_deadline: "decline",
    allows_text_with_selection: true,
    allows_partial: true,
    questions: [question("q")],
    origin: { holder: "agent", holder_token: "local", client: { name: "agent", version: null }, server: null },
    opened_at: "2026-01-01T12:00:00Z",
    deadline: null,
    parked_until: null,
    holder_connected: true,
    settlement: null,
    ...more,
  };
}

export function settlement(more: Partial<Settlement> = {}): Settlement {
  return {
    outcome: "accept",
    provenance: "human",
    rail: "inbox",
    wire: "accept",
    by: "Desk one",
    at: "2026-01-01T12:01:00Z",
    reason: null,
    answers: [],
    submission_id: "s1",
    ...more,
  };
}

/** A localStorage that lives in memory. */
export class Memory {
  readonly #map = new Map<string, string>();
  get length(): number {
    return this.#map.size;
  }
  key(index: number): string | null {
    return [...this.#map.keys()][index] ?? null;
  }
  getItem(key: string): string | null {
    return this.#map.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.#map.set(key, value);
  }
  removeItem(key: string): void {
    this.#map.delete(key);
  }
}
