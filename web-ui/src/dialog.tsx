// Dialogs: the browser's own, which keep the focus inside and end with Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface MoveProps {
  /** Those that there are. */
  folders: string[];
  current: string;
  onClose: () => void;
  onMove: (folder: string) => Promise<unknown>;
}

/** Asks for a folder: one of those that there are, or a new one. */
export function MoveTo({ folders, current, onClose, onMove }: MoveProps) {
  const [name, setName] = useState(current);
  return (
    <Dialog title="Move to a folder" action="Move" onClose={onClose} onConfirm={() => onMove(name.trim())}>
      <label>
        Folder; empty takes out of it
        <input value={name} maxLength={60} list="folders" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <datalist id="folders">
        {folders.map((folder) => (
          <option key={folder} value={folder} />
        ))}
      </datalist>
    </Dialog>
  );
}

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
