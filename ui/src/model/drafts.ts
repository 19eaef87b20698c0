// Drafts: what was put into a card survives a reload. Kept in this browser only; never for secrets (S33).
import type { Ask } from "../api/types.ts";
import type { Entries, Entry } from "./answers.ts";
import { parsed } from "./json.ts";

/** What the page needs of localStorage. */
export interface Shelf {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export interface Draft {
  entries: Entries;
  /** Date.now() of the last save, null if never saved. */
  savedAt: number | null;
}

const PREFIX = "handraise.draft.";
/** No ask outlives this, so no draft needs to. */
const LIFETIME = 24 * 3_600_000;
/** More than any form takes (1 MiB of content is refused by the holder). */
const LARGEST = 1_000_000;

/** A confirm or permission wants a choice made on its card, so nothing is remembered for it (S40). */
export function drafted(ask: Ask): boolean {
  return ask.source !== "permission" && ask.source !== "confirm";
}

export function loadDraft(shelf: Shelf, ask: Ask): Draft {
  const none: Draft = { entries: {}, savedAt: null };
  if (!drafted(ask)) return none;
  const saved = parsed(shelf.getItem(PREFIX + ask.id));
  if (!isRecord(saved) || saved["digest"] !== ask.digest || typeof saved["at"] !== "number" || !isRecord(saved["entries"])) return none;
  const entries: Record<string, Entry> = {};
  for (const question of ask.questions) {
    const entry = saved["entries"][question.id];
    if (question.secret || !isEntry(entry)) continue;
    const known = new Set(question.kind === "boolean" ? ["true", "false"] : question.choices.map((choice) => choice.value));
    entries[question.id] = { selected: entry.selected.filter((value) => known.has(value)), text: entry.text };
  }
  return { entries, savedAt: saved["at"] };
}

/** Returns when it was saved, or null where nothing was (a secret alone, no room, storage refused). */
export function saveDraft(shelf: Shelf, ask: Ask, entries: Entries, now: number): number | null {
  if (!drafted(ask)) return null;
  const kept: Record<string, Entry> = {};
  for (const question of ask.questions) {
    const entry = entries[question.id];
    if (entry !== undefined && !question.secret) kept[question.id] = entry;
  }
  if (Object.keys(kept).length === 0) {
    removeDraft(shelf, ask.id);
    return null;
  }
  const text = JSON.stringify({ digest: ask.digest, at: now, entries: kept });
  if (text.length > LARGEST) return null;
  try {
    shelf.setItem(PREFIX + ask.id, text);
    return now;
  } catch {
    return null;
  }
}

export function hasDraft(shelf: Shelf, askId: string): boolean {
  return shelf.getItem(PREFIX + askId) !== null;
}

export function removeDraft(shelf: Shelf, askId: string): void {
  shelf.removeItem(PREFIX + askId);
}

/** Drops drafts that no ask can need any more, and unreadable ones. */
export function sweepDrafts(shelf: Shelf, now: number): void {
  const keys: string[] = [];
  for (let index = 0; index < shelf.length; index += 1) {
    const key = shelf.key(index);
    if (key?.startsWith(PREFIX) === true) keys.push(key);
  }
  for (const key of keys) {
    const saved = parsed(shelf.getItem(key));
    const at = isRecord(saved) ? saved["at"] : null;
    if (typeof at !== "number" || now - at > LIFETIME) shelf.removeItem(key);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEntry(value: unknown): value is Entry {
  return (
    isRecord(value) &&
    typeof value["text"] === "string" &&
    Array.isArray(value["selected"]) &&
    value["selected"].every((one) => typeof one === "string")
  );
}
