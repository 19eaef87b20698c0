// What happened, in one bold line and one plain one.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";

export function Note(props: { icon: IconName; title?: string; text?: string; tone?: "" | "warn" | "danger"; role?: "alert" | "status"; children?: ComponentChildren }) {
  const { icon, title, text, tone = "", role, children } = props;
  return (
    <div class={`note ${tone}`} role={role}>
      <Icon name={icon} />
      <div>
        {title !== undefined && <b>{title}</b>}
        {text}
        {children}
      </div>
    </div>
  );
}
