// Writes the favicons: the hand, and the hand with a count from 1 to 9 and "9+". Run by hand when the drawing changes;
// the results are committed. They are files because the content security policy refuses drawn (data:) icons (S41).
import { writeFileSync } from "node:fs";

const hand =
  "M8 14V5.7a1.5 1.5 0 0 1 3 0V4.2a1.5 1.5 0 0 1 3 0v1.5a1.5 1.5 0 0 1 3 0V15a6 6 0 0 1-6 6c-4 0-5-3.4-7.4-7.3a1.5 1.5 0 0 1 2.6-1.5L8 14m3-8.3V11m3-5.3V11";

for (let count = 0; count <= 10; count += 1) {
  const label = count > 9 ? "9+" : String(count);
  const badge =
    count === 0
      ? ""
      : `<circle cx="17" cy="17" r="7" fill="#0b6674"/><text x="17" y="20.6" font-family="sans-serif" font-weight="700" font-size="${count > 9 ? 8 : 10}" text-anchor="middle" fill="#fff">${label}</text>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="${hand}" fill="none" stroke="#2f97a3" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>${badge}</svg>\n`;
  writeFileSync(new URL(`../public/icons/count-${count}.svg`, import.meta.url), svg);
}
