// Reads server-sent events out of arbitrary pieces of text. Pure.

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Fed with decoded text as it comes; hands out complete events in order. */
export class EventReader {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | null = null;

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.#data.length > 0) {
          events.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
        }
        this.#event = "";
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      let value = colon < 0 ? "" : line.slice(colon + 1);
      if (value.startsWith(" ")) value = value.slice(1);
      if (field === "event") this.#event = value;
      else if (field === "data") this.#data.push(value);
      else if (field === "id" && !value.includes("\0")) this.#id = value;
    }
    return events;
  }
}
