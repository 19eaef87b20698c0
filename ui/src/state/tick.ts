// Once a second, for everything that counts down.
import { useEffect, useState } from "preact/hooks";
import { Cell } from "./cell.ts";

const second = new Cell(0);
setInterval(() => second.set(second.get() + 1), 1_000);

/** Renders the component again every second while it is mounted and `on`. */
export function useTick(on = true): void {
  const [, setCount] = useState(0);
  useEffect(() => (on ? second.follow((count) => setCount(count)) : undefined), [on]);
}
