// Copies text to the clipboard.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";

/** How long a button says that its text was copied, in milliseconds. */
const SAID = 2_000;

/** Copies `text`. Browsers offer the clipboard to encrypted pages and to this machine only, so there is a second way. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("the browser does not let this page copy; select the text instead");
}

/** A button that copies a text. */
export function Copy({ label, text }: { label: string; text: string }) {
  const [said, setSaid] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const act = () => {
    const say = (words: string) => {
      setSaid(words);
      timer.current = window.setTimeout(() => setSaid(""), SAID);
    };
    copy(text).then(
      () => say("Copied"),
      (failure: Error) => say(failure.message),
    );
  };
  return (
    <>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={act}>
        <Icon name={said === "Copied" ? "check" : "copy"} />
      </button>
      <span class="note" role="status">
        {said}
      </span>
    </>
  );
}

/** Copies the code above a button of `markdown`, and says so in the button. */
export function copyCode(event: MouseEvent): void {
  const button = (event.target as Element).closest<HTMLButtonElement>("button.copy-code");
  const code = button?.parentElement?.querySelector("pre");
  if (!button || !code) return;
  copy(code.textContent).then(
    () => {
      button.textContent = "Copied";
    },
    (failure: Error) => {
      button.textContent = failure.message;
    },
  );
  setTimeout(() => {
    button.textContent = "Copy";
  }, SAID);
}
