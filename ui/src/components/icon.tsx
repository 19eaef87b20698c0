// The few drawn signs. Hidden from assistive technology unless they stand alone (`label`).

const PATHS = {
  hand: "M8 14V5.7a1.5 1.5 0 0 1 3 0V4.2a1.5 1.5 0 0 1 3 0v1.5a1.5 1.5 0 0 1 3 0V15a6 6 0 0 1-6 6c-4 0-5-3.4-7.4-7.3a1.5 1.5 0 0 1 2.6-1.5L8 14m3-8.3V11m3-5.3V11",
  warn: "M12 4 3 20h18zm0 6v4.5m0 2.5v.2",
  check: "m5 12.5 4.5 4.5L19 7.5",
  x: "m6 6 12 12M18 6 6 18",
  clock: "M20.5 12a8.5 8.5 0 1 1-17 0 8.5 8.5 0 0 1 17 0M12 7.5V12l3 2",
  cut: "M20.5 12a8.5 8.5 0 1 1-17 0 8.5 8.5 0 0 1 17 0M6 6l12 12",
  off: "M4 9a12 12 0 0 1 16 0M7.5 13a7 7 0 0 1 9 0M12 17v.2M4 4l16 16",
  arc: "M12 4a8 8 0 1 1-7.5 5.2",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, label, testId, kind = "" }: { name: IconName; label?: string; testId?: string | undefined; kind?: string }) {
  const named = label === undefined ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": label };
  return (
    <svg class={`i ${kind}`} viewBox="0 0 24 24" data-testid={testId} {...named}>
      <path d={PATHS[name]} />
    </svg>
  );
}
