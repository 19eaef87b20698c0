// What an address really leads to: host, look-alike letters, whether it may be opened at all. Pure.

export interface Destination {
  /** As the browser would send it: punycode where it has letters outside a–z. */
  host: string;
  /** How those letters would show, where there are any. */
  shown: string | null;
  /** A name before an @ that only looks like a host. */
  disguise: string | null;
  /** Plain http: what is entered there can be read on the way. */
  unencrypted: boolean;
  href: string;
}

/** Null where the text is no http(s) address, which is then never opened. */
export function destination(text: string): Destination | null {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  const shown = url.hostname.split(".").map(fromPunycode).join(".");
  return {
    host: url.host,
    shown: shown === url.hostname ? null : shown,
    disguise: url.username === "" ? null : url.username,
    unencrypted: url.protocol === "http:",
    href: url.href,
  };
}

/** RFC 3492 for one label; the label itself where it is none. */
export function fromPunycode(label: string): string {
  if (!/^xn--/i.test(label)) return label;
  const body = label.slice(4).toLowerCase();
  const dash = body.lastIndexOf("-");
  const output = dash > 0 ? [...body.slice(0, dash)] : [];
  let code = 128;
  let index = 0;
  let bias = 72;
  let at = dash > 0 ? dash + 1 : 0;
  while (at < body.length) {
    const before = index;
    let weight = 1;
    for (let k = 36; ; k += 36) {
      const digit = digitOf(body.charCodeAt(at));
      if (at >= body.length || digit < 0) return label;
      at += 1;
      index += digit * weight;
      const threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    const size = output.length + 1;
    bias = adapt(index - before, size, before === 0);
    code += Math.floor(index / size);
    index %= size;
    if (code > 0x10ffff) return label;
    output.splice(index, 0, String.fromCodePoint(code));
    index += 1;
  }
  return output.join("");
}

function digitOf(unit: number): number {
  if (unit >= 97 && unit <= 122) return unit - 97;
  if (unit >= 48 && unit <= 57) return unit - 22;
  return -1;
}

function adapt(delta: number, size: number, first: boolean): number {
  let rest = first ? Math.floor(delta / 700) : Math.floor(delta / 2);
  rest += Math.floor(rest / size);
  let k = 0;
  while (rest > 455) {
    rest = Math.floor(rest / 35);
    k += 36;
  }
  return k + Math.floor((36 * rest) / (rest + 38));
}
