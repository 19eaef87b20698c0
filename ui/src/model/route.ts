// The page's addresses. Pure.

export type Route =
  | { page: "inbox"; ask: string | null; together?: boolean }
  | { page: "sessions"; session: string | null }
  | { page: "settings"; tab: "flags" | "access" };

export function parse(path: string): Route {
  const [head, id] = path.split("/").filter((part) => part !== "");
  const name = id === undefined ? null : decode(id);
  if (head === "sessions") return { page: "sessions", session: name };
  if (head === "settings") return { page: "settings", tab: id === "access" ? "access" : "flags" };
  if (head === "together") return { page: "inbox", ask: null, together: true };
  return { page: "inbox", ask: head === "asks" ? name : null };
}

export function format(route: Route): string {
  switch (route.page) {
    case "inbox":
      if (route.together === true) return "/together";
      return route.ask === null ? "/" : `/asks/${encodeURIComponent(route.ask)}`;
    case "sessions":
      return route.session === null ? "/sessions" : `/sessions/${encodeURIComponent(route.session)}`;
    case "settings":
      return route.tab === "access" ? "/settings/access" : "/settings";
  }
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The sign-in secret of a link's fragment, with or without a name before it (S11). */
export function secretOf(hash: string): string | null {
  const body = hash.replace(/^#/, "");
  const value = /^(sign-in|secret)=/.test(body) ? body.slice(body.indexOf("=") + 1) : body;
  const secret = decode(value);
  return secret === null || secret === "" || secret.length < 16 ? null : secret;
}
