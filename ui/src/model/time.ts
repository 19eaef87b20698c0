// Times as words. Pure; `now` is always passed in. All in milliseconds.

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** "48 s", "4 min", "1 h", "3 d": one unit, rounded down, for rows. */
export function coarse(span: number): string {
  const ms = Math.max(0, span);
  if (ms < MINUTE) return `${Math.floor(ms / 1_000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** "48 s", "4 min 12 s", "1 h 5 min", "3 d 2 h": two units, for the card. */
export function fine(span: number): string {
  const ms = Math.max(0, span);
  if (ms < MINUTE) return `${Math.floor(ms / 1_000)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "min", 1_000, "s");
  if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "min");
  return pair(ms, DAY, "d", HOUR, "h");
}

function pair(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % big) / small);
  const head = `${Math.floor(ms / big)} ${bigName}`;
  return rest === 0 ? head : `${head} ${rest} ${smallName}`;
}

/** Wall-clock time of day; the date too where it is another day. */
export function clock(at: number, now: number, seconds: boolean): string {
  const date = new Date(at);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
  return sameDay(date, new Date(now)) ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

function sameDay(a: Date, b: Date): boolean {
  return a.getFullYear() === b.getFullYear() && a.getMonth() === b.getMonth() && a.getDate() === b.getDate();
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** What a `datetime-local` control shows for an RFC 3339 time; null where the text is none. */
export function toLocalInput(text: string): string | null {
  const at = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT/i.test(text) || Number.isNaN(at.getTime())) return null;
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const seconds = at.getSeconds() === 0 ? "" : `:${two(at.getSeconds())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
}

/** The RFC 3339 time, with this browser's offset, of what a `datetime-local` control holds. */
export function fromLocalInput(value: string): string {
  const at = new Date(value);
  if (value === "" || Number.isNaN(at.getTime())) return "";
  const seconds = /T\d\d:\d\d:\d\d/.test(value) ? value : `${value}:00`;
  return seconds + offset(at);
}

/** "+02:00" of this browser at that time. */
export function offset(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
