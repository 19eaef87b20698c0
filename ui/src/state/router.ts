// The address bar as a cell; links are followed without loading the page anew.
import { format, parse, type Route } from "../model/route.ts";
import { Cell } from "./cell.ts";

export const route = new Cell<Route>(parse(location.pathname));

export function go(to: Route, replace = false): void {
  const path = format(to);
  if (path !== location.pathname) history[replace ? "replaceState" : "pushState"](null, "", path);
  route.set(parse(path));
}

window.addEventListener("popstate", () => route.set(parse(location.pathname)));

/** Follows plain clicks on links within the page; anything else (new tab, other host) is left to the browser. */
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.origin !== location.origin || link.target !== "" || link.hash !== "") return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(parse(link.pathname));
});
