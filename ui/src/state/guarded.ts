// Feeds a card's guard with what happens on the page: keys, pointers, movement (S40).
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Guard } from "../model/guard.ts";

/** A key press older than this did not cause the click at hand. */
const KEY_MEMORY = 10_000;

export interface Guarded {
  /** Whether this click may answer. */
  click(event: MouseEvent): boolean;
  /** Whether the key press that is being handled may answer. */
  key(): boolean;
}

/** `content` changes whenever what the card says has changed from outside. */
export function useGuard(card: RefObject<HTMLElement | null>, content: string): Guarded {
  const state = useRef<{ guard: Guard; lastKey: number; lastPointer: number } | null>(null);
  state.current ??= { guard: new Guard(performance.now()), lastKey: Number.NEGATIVE_INFINITY, lastPointer: Number.NEGATIVE_INFINITY };
  const now = state.current;

  useLayoutEffect(() => now.guard.changed(performance.now()), [content]);

  useEffect(() => {
    const element = card.current;
    if (element === null) return undefined;
    let place = placeOf(element);
    const look = (): void => {
      const next = placeOf(element);
      if (next !== place) now.guard.moved(performance.now());
      place = next;
    };
    const onKey = (event: KeyboardEvent): void => {
      now.lastKey = performance.now();
      now.guard.key(now.lastKey, event.repeat);
    };
    const onPointer = (): void => {
      now.lastPointer = performance.now();
      now.guard.pointer(now.lastPointer);
    };
    const onAct = (): void => now.guard.acted(performance.now());
    const onVisible = (): void => now.guard.changed(performance.now());
    const watch = new ResizeObserver(look);
    watch.observe(element);
    if (element.parentElement !== null) watch.observe(element.parentElement);

    const stop = new AbortController();
    const on = (target: EventTarget, type: string, hear: (event: never) => void): void =>
      target.addEventListener(type, hear as (event: Event) => void, { capture: true, passive: true, signal: stop.signal });
    on(window, "keydown", onKey);
    on(window, "pointerdown", onPointer);
    on(window, "scroll", look);
    on(window, "resize", look);
    on(document, "visibilitychange", onVisible);
    for (const type of ["wheel", "touchmove"]) on(window, type, onAct);
    for (const type of ["input", "change", "focusin"]) on(element, type, onAct);
    return () => {
      watch.disconnect();
      stop.abort();
    };
  }, [card]);

  return {
    click(event) {
      const at = performance.now();
      const byKey = event.detail === 0 && now.lastKey > now.lastPointer && at - now.lastKey < KEY_MEMORY;
      return now.guard.click(at, event.detail > 0 ? "pointer" : byKey ? "key" : "other");
    },
    key: () => now.guard.lastKeyCounts(),
  };
}

function placeOf(element: HTMLElement): string {
  const { left, top, width } = element.getBoundingClientRect();
  return [left, top, width].map(Math.round).join();
}
