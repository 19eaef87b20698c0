// What the person has put into a card, and the answers that are sent for it. Pure. The holder alone validates.
import type { Answer, Ask, Question } from "../api/types.ts";

/** What stands in one question's controls. */
export interface Entry {
  selected: string[];
  text: string;
}

/** By question id; a question that is absent was never touched and shows its default. */
export type Entries = Readonly<Record<string, Entry>>;

export const EMPTY: Entry = { selected: [], text: "" };

/** Choice questions take a selection; without choices there is a text box alone (AC-56). */
export function takesSelection(question: Question): boolean {
  return question.kind === "boolean" || ((question.kind === "single" || question.kind === "multi") && question.choices.length > 0);
}

export function takesText(question: Question): boolean {
  return !takesSelection(question) || (question.allows_text && question.kind !== "boolean");
}

export function hasDefault(question: Question): boolean {
  return answered(defaultEntry(question));
}

/** The schema's default as the controls show it. */
export function defaultEntry(question: Question): Entry {
  const value = question.default;
  if (value === null || value === undefined) return EMPTY;
  if (question.kind === "boolean") {
    return typeof value === "boolean" ? { selected: [String(value)], text: "" } : EMPTY;
  }
  if (takesSelection(question)) {
    const wanted = (Array.isArray(value) ? value : [value]).map(String);
    const selected = question.choices.map((choice) => choice.value).filter((choice) => wanted.includes(choice));
    return { selected: question.kind === "single" ? selected.slice(0, 1) : selected, text: "" };
  }
  return typeof value === "string" || typeof value === "number" ? { selected: [], text: String(value) } : EMPTY;
}

export function entryOf(question: Question, entries: Entries): Entry {
  return entries[question.id] ?? defaultEntry(question);
}

/** Only whitespace is no text (form.md). */
export function answered(entry: Entry): boolean {
  return entry.selected.length > 0 || entry.text.trim() !== "";
}

/** Picks or unpicks a choice. Selections stay in declaration order, whatever the click order (AC-55). */
export function choose(ask: Ask, question: Question, entry: Entry, value: string, on: boolean): Entry {
  const text = ask.allows_text_with_selection ? entry.text : on ? "" : entry.text;
  if (question.kind !== "multi") return { selected: on ? [value] : [], text };
  const picked = new Set(entry.selected);
  if (on) picked.add(value);
  else picked.delete(value);
  return { selected: question.choices.map((choice) => choice.value).filter((choice) => picked.has(choice)), text };
}

/** Writes free text; where text and a selection exclude each other, writing clears the pick (AC-57). */
export function write(ask: Ask, entry: Entry, text: string): Entry {
  const keeps = ask.allows_text_with_selection || text.trim() === "";
  return { selected: keeps ? entry.selected : [], text };
}

/** Whether the question's answer would be sent: a default that nobody saw is not (form.md). */
export function counts(question: Question, entries: Entries, seen: ReadonlySet<string>): boolean {
  const own = entries[question.id];
  if (own !== undefined) return answered(own);
  return seen.has(question.id) && hasDefault(question);
}

/** The body's `answers`: one element for each answered question, in the ask's order. */
export function toAnswers(ask: Ask, entries: Entries, seen: ReadonlySet<string>): Answer[] {
  return ask.questions
    .filter((question) => counts(question, entries, seen))
    .map((question) => {
      const { selected, text } = entryOf(question, entries);
      return {
        question_id: question.id,
        selected_options: takesSelection(question) ? selected : [],
        custom_text: takesText(question) && text.trim() !== "" ? text : "",
      };
    });
}

/** The questions without whose answer the holder would refuse all of it: those that are required, or all of them. */
export function lacking(ask: Ask, entries: Entries, seen: ReadonlySet<string>): Question[] {
  return ask.questions.filter((question) => (question.required || !ask.allows_partial) && !counts(question, entries, seen));
}
