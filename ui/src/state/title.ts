// The count in the tab: title and icon. The icons are files, because the policy refuses drawn ones (S41).
import * as words from "../words.ts";

export function showCount(page: string, count: number): void {
  document.title = words.title(page, count);
  const icon = `/icons/count-${Math.min(10, count)}.svg`;
  const link = document.querySelector('link[rel="icon"]');
  if (link?.getAttribute("href") !== icon) link?.setAttribute("href", icon);
}
