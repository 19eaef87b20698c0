// What did not work, said at once.
export function Failed({ text }: { text: string | null }) {
  return text === null ? null : (
    <p class="hint bad" role="alert">
      {text}
    </p>
  );
}
