// One call of the inbox's API: the token goes in the header, never in a cookie or an address (S1).
import { parsed } from "../model/json.ts";
import { plain } from "../model/visible.ts";
import type { ErrorBody, ErrorDetail, Settlement } from "./types.ts";

/** A call that failed. `status` is 0 when the inbox could not be reached at all. */
export class CallError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: ErrorDetail[];
  readonly settlement: Settlement | null;
  readonly recorded: boolean;

  constructor(status: number, body: Partial<ErrorBody>) {
    super(body.error?.message ?? "");
    this.status = status;
    this.code = body.error?.code ?? "";
    this.details = body.error?.details ?? [];
    this.settlement = body.settlement ?? null;
    this.recorded = body.recorded ?? false;
  }
}

/** The inbox's own words about a call that failed, short enough for a line; "" where it said nothing. */
export function told(error: unknown): string {
  return error instanceof CallError ? plain(error.message, 200) : "";
}

export interface Client {
  get<T>(path: string): Promise<T>;
  send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T>;
}

export const API = "/api/v1";

/** `onRefused` hears of every 401, so that the page can ask for a new sign-in. */
export function client(token: string | null, onRefused: () => void): Client {
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (token !== null) headers["authorization"] = `Bearer ${token}`;
    const init: RequestInit = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    let response: Response;
    try {
      response = await fetch(API + path, init);
    } catch {
      throw new CallError(0, {});
    }
    const text = await response.text().catch(() => "");
    if (response.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
    if (response.status === 401 && token !== null) onRefused();
    throw new CallError(response.status, (parsed(text) ?? {}) as Partial<ErrorBody>);
  }
  return {
    get: (path) => call("GET", path),
    send: (method, path, body) => call(method, path, body),
  };
}
