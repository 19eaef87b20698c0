// S40: nothing answers a card in its first 350 ms after it appeared, moved or changed. Pure: every call is told the time.

/** How long a card must have stood still before it takes an answer, in milliseconds. */
export const STILL = 350;
/** A layout change this soon after the person's own act on the card is their doing, not a card that slips under them. */
const OWN_ACT = 150;

export class Guard {
  /** When the card last appeared, moved or changed. */
  #changed: number;
  /** When the present run of keys began: keys with gaps under STILL are one run. */
  #runBegan = Number.NEGATIVE_INFINITY;
  #lastKey = Number.NEGATIVE_INFINITY;
  #keyCounts = true;
  #pointerCounts = true;
  #acted = Number.NEGATIVE_INFINITY;

  constructor(now: number) {
    this.#changed = now;
  }

  /** The card appeared, or its content changed from outside. */
  changed(now: number): void {
    this.#changed = now;
  }

  /** The card is elsewhere on the screen. Ignored when the person has just caused it on this card. */
  moved(now: number): void {
    if (now - this.#acted > OWN_ACT) this.#changed = now;
  }

  /** The person typed, chose or scrolled: what moves right after is their own doing. */
  acted(now: number): void {
    this.#acted = now;
  }

  /** To be told of every key press anywhere on the page; says whether this one may answer. */
  key(now: number, repeat: boolean): boolean {
    if (now - this.#lastKey >= STILL) this.#runBegan = now;
    this.#lastKey = now;
    this.#keyCounts = !repeat && this.#runBegan - this.#changed >= STILL;
    return this.#keyCounts;
  }

  /** To be told of every press of a pointer anywhere on the page. */
  pointer(now: number): void {
    this.#pointerCounts = now - this.#changed >= STILL;
  }

  /**
   * Whether a click may answer. `cause` is what made it: a pointer (its press counts, too), a key on the focused button, or
   * neither (assistive technology).
   */
  click(now: number, cause: "pointer" | "key" | "other"): boolean {
    if (now - this.#changed < STILL) return false;
    if (cause === "pointer") return this.#pointerCounts;
    if (cause === "key") return this.#keyCounts;
    return true;
  }

  /** Whether the key pressed last may answer, for a shortcut handled elsewhere. */
  lastKeyCounts(): boolean {
    return this.#keyCounts;
  }
}
