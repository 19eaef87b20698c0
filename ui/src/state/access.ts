// Who is signed in here. The token lives in origin-scoped storage, never in a cookie (S1).
import { CallError, client, type Client } from "../api/client.ts";
import type { Login } from "../api/types.ts";
import { parsed } from "../model/json.ts";
import { secretOf } from "../model/route.ts";
import * as words from "../words.ts";
import { Cell } from "./cell.ts";

const KEY = "handraise.login";

export type Access =
  | { is: "out"; because: string | null }
  | { is: "in"; login: Login; api: Client };

/** The link's secret: taken out of the address before anything else runs, used only after a click (S11). */
export const linkSecret = new Cell<string | null>(takeSecret());

export const access = new Cell<Access>(stored());

function takeSecret(): string | null {
  const secret = secretOf(location.hash);
  if (location.hash !== "") history.replaceState(null, "", location.pathname);
  return secret;
}

// A sign-in link that is opened in a tab where this page already runs only changes the fragment.
window.addEventListener("hashchange", () => {
  const secret = takeSecret();
  if (secret !== null) linkSecret.set(secret);
});

function stored(): Access {
  const login = parsed(localStorage.getItem(KEY)) as Partial<Login> | null;
  return typeof login?.token === "string" ? entered(login as Login) : { is: "out", because: null };
}

function entered(login: Login): Access {
  return { is: "in", login, api: client(login.token, () => leave(words.signInEnded)) };
}

export async function signIn(secret: string, name: string): Promise<void> {
  const login = await client(null, () => undefined).send<Login>("POST", "/login", name === "" ? { secret } : { secret, name });
  if (login.scope === "holder") throw new CallError(403, { error: { code: "FORBIDDEN", message: words.signInHolder } });
  localStorage.setItem(KEY, JSON.stringify(login));
  linkSecret.set(null);
  access.set(entered(login));
}

export async function signOut(): Promise<void> {
  const now = access.get();
  leave(null);
  if (now.is === "in") await now.api.send("POST", "/logout").catch(() => undefined);
}

export function leave(because: string | null): void {
  localStorage.removeItem(KEY);
  access.set({ is: "out", because });
}

// Signing in or out in another tab of this browser holds here, too.
window.addEventListener("storage", (event) => {
  if (event.key === KEY || event.key === null) access.set(stored());
});

export function may(login: Login, scope: "operator" | "admin"): boolean {
  return login.scope === "admin" || login.scope === scope;
}
