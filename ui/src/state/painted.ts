// Which questions of a card have been on the screen: a default that nobody saw is not sent (form.md).
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** What lies under the card's foot is not on the screen. */
const FOOT = "0px 0px -64px 0px";

export function usePainted(card: RefObject<HTMLElement | null>, ask: string): ReadonlySet<string> {
  const [painted, setPainted] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    setPainted(new Set());
    const watch = new IntersectionObserver(
      (entries) => {
        const now = entries.filter((entry) => entry.isIntersecting).map((entry) => (entry.target as HTMLElement).dataset["q"] ?? "");
        if (now.length > 0) setPainted((before) => new Set([...before, ...now]));
      },
      { rootMargin: FOOT },
    );
    for (const question of card.current?.querySelectorAll("[data-q]") ?? []) watch.observe(question);
    return () => watch.disconnect();
  }, [card, ask]);
  return painted;
}
