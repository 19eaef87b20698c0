// The inbox list in its time groups. Only what is near the screen is drawn, so that ten thousand asks stay quick.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Group, More } from "../model/groups.ts";
import { plain } from "../model/visible.ts";
import { visibleSpan, type Span } from "../model/window.ts";
import type { Live } from "../state/live.ts";
import { useTick } from "../state/tick.ts";
import * as words from "../words.ts";
import { Row } from "./row.tsx";

/** First guesses, in pixels; each drawn row is measured. */
const ROW = 72;
const HEAD = 40;
/** How much is drawn beyond the screen, in pixels. */
const MARGIN = 800;

type Entry = { key: string; group: number } & ({ is: "head" } | { is: "ask"; index: number } | { is: "more"; index: number });

interface Props {
  live: Live;
  groups: Group[];
  current: string | null;
  seen: ReadonlySet<string>;
  onExpand(holder: string): void;
}

export function List({ live, groups, current, seen, onExpand }: Props) {
  useTick();
  const root = useRef<HTMLDivElement>(null);
  const measured = useRef(new Map<string, number>());
  const entries = flatten(groups);
  const heights = entries.map((entry) => measured.current.get(entry.key) ?? (entry.is === "head" ? HEAD : ROW));
  const [view, setView] = useState({ top: 0, bottom: 1_200 });
  const span = visibleSpan(heights, view.top, view.bottom, MARGIN);

  useEffect(() => {
    let frame = 0;
    const look = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        const top = root.current?.getBoundingClientRect().top ?? 0;
        const next = { top: -top, bottom: window.innerHeight - top };
        setView((before) => (Math.abs(before.top - next.top) < MARGIN / 4 && Math.abs(before.bottom - next.bottom) < MARGIN / 4 ? before : next));
      });
    };
    look();
    window.addEventListener("scroll", look, true);
    window.addEventListener("resize", look);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener("scroll", look, true);
      window.removeEventListener("resize", look);
    };
  }, []);

  useLayoutEffect(() => {
    for (const drawn of root.current?.querySelectorAll<HTMLElement>("[data-key]") ?? []) {
      measured.current.set(drawn.dataset["key"] ?? "", drawn.offsetHeight);
    }
  });

  return (
    <div ref={root}>
      <Gap height={span.above} />
      {groups.map((group, index) => (
        <Part {...{ live, group, index, entries, span, current, seen, onExpand }} key={group.when} />
      ))}
      <Gap height={span.below} />
    </div>
  );
}

function Part(props: Omit<Props, "groups"> & { group: Group; index: number; entries: Entry[]; span: Span }) {
  const { live, group, index, entries, span, current, seen, onExpand } = props;
  const drawn = entries.slice(span.from, span.to).filter((entry) => entry.group === index);
  if (drawn.length === 0) return null;
  const head = drawn.find((entry) => entry.is === "head");
  const name = words.inboxGroups[group.when];
  return (
    <>
      {head !== undefined && <h2 data-key={head.key}>{name}</h2>}
      <ol aria-label={name}>
        {drawn.map((entry) => {
          if (entry.is === "head") return null;
          const item = group.items[entry.index];
          if (item === undefined) return null;
          return (
            <li key={entry.key} data-key={entry.key} aria-setsize={group.items.length} aria-posinset={entry.index + 1}>
              {"ask" in item ? (
                <Row live={live} ask={item.ask} current={item.ask.id === current} seen={seen.has(item.ask.id)} />
              ) : (
                <Folded item={item} onExpand={onExpand} />
              )}
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** The rest of a holder that asks so much that it would bury the others. */
function Folded({ item, onExpand }: { item: More; onExpand(holder: string): void }) {
  return (
    <button class="btn plain fold" type="button" onClick={() => onExpand(item.holder)}>
      {words.inboxMore(item.more)} {plain(item.name, 60)}
    </button>
  );
}

function Gap({ height }: { height: number }) {
  const gap = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (gap.current !== null) gap.current.style.height = `${height}px`;
  }, [height]);
  return <div ref={gap} aria-hidden="true" />;
}

function flatten(groups: readonly Group[]): Entry[] {
  return groups.flatMap((group, index): Entry[] => [
    { is: "head", key: `head ${group.when}`, group: index },
    ...group.items.map((item, at): Entry =>
      "ask" in item ? { is: "ask", key: item.ask.id, group: index, index: at } : { is: "more", key: `more ${item.holder}`, group: index, index: at },
    ),
  ]);
}
