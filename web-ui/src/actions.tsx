// What can be done with a session: rename, fork, export, delete.

import { useEffect, useRef, useState } from "preact/hooks";
import { fetchWithToken, handToBrowser } from "./api";
import type { Connection } from "./connection";
import { Dialog, MoveTo } from "./dialog";
import { Icon } from "./icons";
import { ARCHIVED, PINNED } from "./protocol";

interface Props {
  name: string;
  title: string | null;
  labels: string[];
  /** The folder of the session, and those that there are. */
  folder: string;
  folders: string[];
  connection: Connection;
  onChange: () => void;
  onOpen: (name: string) => void;
}

const FORMATS = [
  ["html", "Export as HTML"],
  ["markdown", "Export as Markdown"],
  ["jsonl", "Export as JSONL"],
] as const;

export function Actions({ name, title, labels, folder, folders, connection, onChange, onOpen }: Props) {
  const [open, setOpen] = useState<"rename" | "move" | "fork" | "delete" | null>(null);
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  const show = (what: "rename" | "move" | "fork" | "delete", value: string) => {
    close();
    setText(value);
    setOpen(what);
  };
  useEffect(() => {
    const outside = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) close();
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  const field = (label: string) => (
    <label>
      {label}
      <input value={text} maxLength={200} onInput={(event) => setText(event.currentTarget.value)} />
    </label>
  );
  return (
    <>
      <details
        class="menu"
        ref={menu}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            close();
            menu.current?.querySelector("summary")?.focus();
          }
        }}
      >
        <summary class="icon-button" aria-label="Session menu">
          <Icon name="more" />
        </summary>
        <div class="items">
          <button type="button" onClick={() => show("rename", title ?? "")}>
            Rename
          </button>
          {(
            [
              ["pinned", PINNED, "Pin", "Unpin"],
              ["archived", ARCHIVED, "Archive", "Take out of the archive"],
            ] as const
          ).map(([field, label, set, unset]) => (
            <button
              key={field}
              type="button"
              onClick={() => {
                close();
                setError("");
                connection
                  .request("mark", { session: name, [field]: !labels.includes(label) })
                  .then(() => {
                    onChange();
                    // It is not in the list any more.
                    if (label === ARCHIVED && !labels.includes(label)) onOpen("main");
                  })
                  .catch((failure: Error) => setError(failure.message));
              }}
            >
              {labels.includes(label) ? unset : set}
            </button>
          ))}
          <button type="button" onClick={() => show("move", "")}>
            Move to a folder
          </button>
          <button type="button" onClick={() => show("fork", `${name}-fork`)}>
            Fork
          </button>
          {FORMATS.map(([format, label]) => (
            <button
              key={format}
              type="button"
              onClick={() => {
                close();
                setError("");
                download(name, format).catch((failure: Error) => setError(failure.message));
              }}
            >
              {label}
            </button>
          ))}
          <button type="button" class="danger" onClick={() => show("delete", "")}>
            Delete
          </button>
        </div>
      </details>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {open === "rename" && (
        <Dialog
          title="Rename"
          action="Save"
          onClose={() => setOpen(null)}
          onConfirm={() => connection.request("title", { session: name, title: text }).then(onChange)}
        >
          {field("Title; empty takes one of what was said")}
        </Dialog>
      )}
      {open === "move" && (
        <MoveTo
          folders={folders}
          current={folder}
          onClose={() => setOpen(null)}
          onMove={(to) => connection.request("mark", { session: name, folder: to }).then(onChange)}
        />
      )}
      {open === "fork" && (
        <Dialog
          title="Fork"
          action="Fork"
          onClose={() => setOpen(null)}
          onConfirm={() =>
            connection.request<{ name: string }>("fork", { session: name, newSession: text }).then((made) => {
              onChange();
              onOpen(made.name);
            })
          }
        >
          <p>The new session begins with everything that was said here.</p>
          {field("Name of the new session")}
        </Dialog>
      )}
      {open === "delete" && (
        <Dialog
          title="Delete this session?"
          action="Delete"
          isDangerous
          onClose={() => setOpen(null)}
          onConfirm={() =>
            connection.request("delete", { session: name }).then(() => {
              onChange();
              onOpen("main");
            })
          }
        >
          <p>
            <b>{title ?? name}</b> and its transcript are deleted. This cannot be undone.
          </p>
        </Dialog>
      )}
    </>
  );
}

/** Fetches an export, and hands it to the browser as a file. */
async function download(name: string, format: string): Promise<void> {
  const response = await fetchWithToken(`/api/sessions/${encodeURIComponent(name)}/export?format=${format}`);
  const file = response.headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1];
  handToBrowser(await response.blob(), file ?? `session.${format}`);
}
