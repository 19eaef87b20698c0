// Which part of a long list is worth drawing. Pure.

export interface Span {
  /** First entry to draw, and the one after the last. */
  from: number;
  to: number;
  /** Height of what is left out above and below, in pixels. */
  above: number;
  below: number;
}

/** `heights` of all entries in order; `top` and `bottom` of the visible part, measured from the list's own top. */
export function visibleSpan(heights: readonly number[], top: number, bottom: number, margin: number): Span {
  let from = 0;
  let above = 0;
  while (from < heights.length && above + (heights[from] ?? 0) < top - margin) {
    above += heights[from] ?? 0;
    from += 1;
  }
  let to = from;
  let end = above;
  while (to < heights.length && end < bottom + margin) {
    end += heights[to] ?? 0;
    to += 1;
  }
  let below = 0;
  for (let index = to; index < heights.length; index += 1) below += heights[index] ?? 0;
  return { from, to, above, below };
}
