// A value that components can follow.
import { useEffect, useState } from "preact/hooks";

export class Cell<T> {
  #value: T;
  readonly #followers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const follower of [...this.#followers]) follower(value);
  }

  follow(follower: (value: T) => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }
}

export function useCell<T>(cell: Cell<T>): T {
  const [value, setValue] = useState(() => cell.get());
  useEffect(() => {
    // It may have changed between the render and this effect.
    setValue(() => cell.get());
    return cell.follow((next) => setValue(() => next));
  }, [cell]);
  return value;
}
