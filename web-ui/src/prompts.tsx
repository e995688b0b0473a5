// The library of prompts: they are the owner's commands on the gateway's machine, so every device has the same.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "./api";
import { Act } from "./common";
import { Failure, useWork } from "./form";
import { Icon } from "./icons";
import { visible } from "./text";

interface Prompt {
  description: string;
  text: string;
}

interface Listed {
  name: string;
  description: string;
  beginning: string;
}

/** What stands for arguments, as in commands. */
const PLACES = /\$ARGUMENTS|\$[1-9]/g;
const TYPING = 200;

type Shown = { what: "list" } | { what: "edit"; name: string; before: Prompt | null } | { what: "fill"; name: string; text: string };

const address = (name: string) => `/api/prompts/${encodeURIComponent(name)}`;

interface Props {
  /** What is written in the field, to keep as a prompt. */
  written: string;
  onInsert: (text: string) => void;
  /** The commands are others now. */
  onChange: () => void;
  onClose: () => void;
}

export function Prompts({ written, onInsert, onChange, onClose }: Props) {
  const place = useRef<HTMLDialogElement>(null);
  const [shown, setShown] = useState<Shown>({ what: "list" });
  useEffect(() => place.current?.showModal(), []);
  const insert = (text: string) => {
    onInsert(text);
    place.current?.close();
  };
  const back = () => setShown({ what: "list" });
  return (
    <dialog ref={place} class="prompts" aria-label="Prompts" onClose={onClose}>
      {shown.what === "list" && <List written={written} onShow={setShown} onInsert={insert} onChange={onChange} />}
      {shown.what === "edit" && (
        <Edit
          name={shown.name}
          before={shown.before}
          written={written}
          onSaved={() => {
            onChange();
            back();
          }}
          onBack={back}
        />
      )}
      {shown.what === "fill" && <Fill name={shown.name} text={shown.text} onInsert={insert} onBack={back} />}
    </dialog>
  );
}

function List({ written, onShow, onInsert, onChange }: { onShow: (shown: Shown) => void } & Pick<Props, "written" | "onInsert" | "onChange">) {
  const [search, setSearch] = useState("");
  const [list, setList] = useState<Listed[] | null>(null);
  const [directory, setDirectory] = useState("");
  const [sure, setSure] = useState("");
  const [error, setError] = useState("");
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isGone = false;
    const read = () =>
      api<{ prompts: Listed[]; directory: string }>(`/api/prompts?search=${encodeURIComponent(search)}`).then(
        (answer) => {
          if (isGone) return;
          setList(answer.prompts);
          setDirectory(answer.directory);
        },
        (failure: Error) => !isGone && setError(failure.message),
      );
    const timer = setTimeout(read, search ? TYPING : 0);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [search, turn]);
  const open = (name: string, show: (prompt: Prompt) => void) => api<Prompt>(address(name)).then(show);
  return (
    <>
      <h2>Prompts</h2>
      <label class="search">
        <Icon name="search" />
        <input type="search" placeholder="Search" aria-label="Search prompts" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <Failure error={error} />
      {list?.length === 0 && <p class="muted">{search ? "No prompt has this text." : "There is no prompt yet. Keep here what you ask often."}</p>}
      <ul class="lines">
        {list?.map(({ name, description, beginning }) => (
          <li key={name} aria-label={name}>
            <span class="grow">
              <b>{visible(name)}</b> <span class="muted">{visible(description || beginning)}</span>
            </span>
            <span class="acts">
              <Act
                label="Insert"
                onAct={() => open(name, ({ text }) => (text.match(PLACES) ? onShow({ what: "fill", name, text }) : onInsert(text)))}
              />
              <Act label="Edit" onAct={() => open(name, (before) => onShow({ what: "edit", name, before }))} />
              {sure === name ? (
                <Act
                  label="Delete it for good"
                  isDangerous
                  onAct={async () => {
                    await api(address(name), { method: "DELETE" });
                    onChange();
                    setTurn((number) => number + 1);
                  }}
                />
              ) : (
                <button type="button" class="act danger" onClick={() => setSure(name)}>
                  Delete
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
      <p class="muted small">
        Each is a command too: <code>/name</code>, here and in the terminal. They are files in <code>{visible(directory)}</code>.
      </p>
      <div class="buttons">
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
        <button type="button" class="primary" onClick={() => onShow({ what: "edit", name: "", before: null })}>
          {written.trim() ? "Keep what is written" : "New prompt"}
        </button>
      </div>
    </>
  );
}

function Edit({ name, before, written, onSaved, onBack }: { name: string; before: Prompt | null; written: string; onSaved: () => void; onBack: () => void }) {
  const [isBusy, error, submit] = useWork();
  const save = submit(async (form) => {
    const data = new FormData(form);
    const text = (field: string) => String(data.get(field) ?? "").trim();
    const prompt = { description: text("description"), text: text("text") };
    await api(address(name || text("name")), { method: "PUT", body: { prompt, before } });
    onSaved();
  });
  return (
    <form class="form" onSubmit={save}>
      <h2>{name ? `Edit ${visible(name)}` : "New prompt"}</h2>
      {!name && (
        <label>
          <span>
            Name <span class="hint">letters, digits, - and _; with : between parts, such as git:commit</span>
          </span>
          <input name="name" required spellcheck={false} autocomplete="off" />
        </label>
      )}
      <label>
        <span>
          What it is for <span class="hint">a line; may be empty</span>
        </span>
        <input name="description" maxLength={200} defaultValue={before?.description ?? ""} autocomplete="off" />
      </label>
      <label>
        <span>
          Text{" "}
          <span class="hint">
            <code>$1</code> to <code>$9</code> and <code>$ARGUMENTS</code> are asked for when it is inserted
          </span>
        </span>
        <textarea name="text" rows={8} required defaultValue={before?.text ?? written} />
      </label>
      <Failure error={error} />
      <div class="buttons">
        <button type="button" onClick={onBack}>
          Back
        </button>
        <button type="submit" class="primary" disabled={isBusy}>
          Save
        </button>
      </div>
    </form>
  );
}

/** Asks what stands in the places of a prompt. */
function Fill({ name, text, onInsert, onBack }: { name: string; text: string; onInsert: (text: string) => void; onBack: () => void }) {
  const places = [...new Set(text.match(PLACES))].sort();
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(event.currentTarget);
        onInsert(text.replace(PLACES, (place) => String(data.get(place) ?? "")));
      }}
    >
      <h2>{visible(name)}</h2>
      <pre class="prompt-text">{visible(text)}</pre>
      {places.map((place) => (
        <label key={place}>
          {place}
          <input name={place} autocomplete="off" />
        </label>
      ))}
      <div class="buttons">
        <button type="button" onClick={onBack}>
          Back
        </button>
        <button type="submit" class="primary">
          Insert
        </button>
      </div>
    </form>
  );
}
