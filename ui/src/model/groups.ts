// The inbox list: time groups, filter, search, and no holder that buries the others. Pure.
import type { Ask, HolderKind } from "../api/types.ts";
import { HOUR, MINUTE } from "./time.ts";

export type Filter = "all" | "agents" | "gateways" | "scripts";
export type When = "soon" | "hour" | "later" | "never";

export interface More {
  more: number;
  holder: string;
  name: string;
}
export type Item = { ask: Ask } | More;
export interface Group {
  when: When;
  items: Item[];
}

/** A holder with more asks than this, while others ask too, is shown with its nearest few first. */
const FLOOD = 12;
const KEPT = 5;

export function kindOf(holder: HolderKind): Exclude<Filter, "all"> {
  if (holder === "agent") return "agents";
  return holder === "gateway" ? "gateways" : "scripts";
}

export function whenOf(ask: Ask, now: number): When {
  if (ask.deadline === null) return "never";
  const left = Date.parse(ask.deadline) - now;
  if (left <= 5 * MINUTE) return "soon";
  return left <= HOUR ? "hour" : "later";
}

/** Who stands behind an ask: the token, which is proven; on the shared local token also what it calls itself. */
export function holderOf(ask: Ask): string {
  const { holder, holder_token: token, client } = ask.origin;
  return token === "local" ? [token, holder, client?.name ?? "", ask.session_id ?? ""].join("\n") : token;
}

export function nameOf(ask: Ask): string {
  return ask.origin.client?.name ?? ask.origin.server ?? ask.origin.holder_token;
}

export function matches(ask: Ask, session: string | null, search: string): boolean {
  if (search === "") return true;
  const { origin } = ask;
  const text = [
    ask.message,
    origin.holder_token,
    origin.client?.name,
    origin.server,
    session,
    ask.source,
    ask.url,
    ask.confirm?.tool,
    ...ask.questions.flatMap((question) => [question.title, question.prompt]),
  ]
    .filter((part) => typeof part === "string")
    .join("\n");
  return found(text, search);
}

/** Whether the text has every word of the search. */
export function found(text: string, search: string): boolean {
  const all = text.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/** Nearest deadline first, none last; then the older one. */
export function byDeadline(asks: readonly Ask[]): Ask[] {
  return asks
    .map((ask) => ({ ask, due: ask.deadline === null ? Number.MAX_SAFE_INTEGER : Date.parse(ask.deadline) }))
    .sort((a, b) => a.due - b.due || compare(a.ask.opened_at, b.ask.opened_at) || compare(a.ask.id, b.ask.id))
    .map(({ ask }) => ask);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `asks` in any order. `expanded` names holders of whom everything is shown. */
export function group(asks: readonly Ask[], now: number, expanded: ReadonlySet<string>): Group[] {
  const sorted = byDeadline(asks);
  const total = new Map<string, number>();
  for (const ask of sorted) total.set(holderOf(ask), (total.get(holderOf(ask)) ?? 0) + 1);

  const groups = new Map<When, Item[]>(["soon", "hour", "later", "never"].map((when) => [when as When, []]));
  const shown = new Map<string, number>();
  for (const ask of sorted) {
    const holder = holderOf(ask);
    const of = total.get(holder) ?? 0;
    const folds = total.size > 1 && of > FLOOD && !expanded.has(holder);
    const already = shown.get(holder) ?? 0;
    if (folds && already > KEPT) continue;
    shown.set(holder, already + 1);
    const items = groups.get(whenOf(ask, now));
    if (folds && already === KEPT) items?.push({ more: of - KEPT, holder, name: nameOf(ask) });
    else items?.push({ ask });
  }
  return [...groups].filter(([, items]) => items.length > 0).map(([when, items]) => ({ when, items }));
}
