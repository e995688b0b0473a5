// Dialogs: the browser's own, which keep the focus inside and end with Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  title: string;
  action: string;
  isDangerous?: boolean;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
  children: ComponentChildren;
}

export function Dialog({ title, action, isDangerous, onClose, onConfirm, children }: Props) {
  const place = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState("");
  useEffect(() => place.current?.showModal(), []);
  return (
    <dialog ref={place} aria-label={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm().then(
            () => place.current?.close(),
            (failure: Error) => setError(failure.message),
          );
        }}
      >
        <h2>{title}</h2>
        {children}
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={() => place.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  );
}
