// A transcript's markdown as elements: no HTML, no images; a link is its words, its address as text and a copy button (S41).
import { useMemo, useState } from "preact/hooks";
import { blocks, type Inline } from "../model/markdown.ts";
import { count, cut, plain } from "../model/visible.ts";
import * as words from "../words.ts";
import { Copy } from "./copy.tsx";
import { Short, Text } from "./text.tsx";

const SHOWN = 20_000;

export function Markdown({ text }: { text: string }) {
  const [limit, setLimit] = useState(SHOWN);
  const { head, hidden } = cut(text, limit);
  const tree = useMemo(() => blocks(head), [head]);
  return (
    <>
      {tree.map((block, index) => {
        switch (block.is) {
          case "code":
            return (
              <pre key={index}>
                <Text value={block.text} />
              </pre>
            );
          case "ul":
          case "ol": {
            const Tag = block.is;
            return (
              <Tag key={index}>
                {block.items.map((item) => (
                  <li>
                    <Inlines of={item} />
                  </li>
                ))}
              </Tag>
            );
          }
          default:
            return (
              <p key={index} class={block.is === "h" ? "strong" : ""}>
                <Inlines of={block.inlines} />
              </p>
            );
        }
      })}
      {hidden > 0 && (
        <p class="more">
          … {words.textCut(count(hidden))}{" "}
          <button class="btn plain" type="button" onClick={() => setLimit(limit + 5 * SHOWN)}>
            {hidden <= 5 * SHOWN ? words.textShowRest(count(hidden)) : words.textShowMore(count(hidden))}
          </button>
        </p>
      )}
    </>
  );
}

function Inlines({ of }: { of: Inline[] }) {
  return (
    <>
      {of.map((inline) => {
        switch (inline.is) {
          case "text":
            return <Text value={inline.text} />;
          case "code":
            return (
              <code>
                <Text value={inline.text} />
              </code>
            );
          case "strong":
            return (
              <strong>
                <Text value={inline.text} />
              </strong>
            );
          case "em":
            return (
              <em>
                <Text value={inline.text} />
              </em>
            );
          case "link":
            return (
              <>
                {inline.image && words.image}
                <Text value={inline.text} />
                {" ("}
                <code>
                  <Short value={inline.href} most={500} />
                </code>
                {") "}
                <Copy text={inline.href} of={plain(inline.text === "" ? inline.href : inline.text, 60)} />
              </>
            );
        }
      })}
    </>
  );
}
