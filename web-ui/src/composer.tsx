// Where the owner writes.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import { Offered, offered } from "./commands";
import { later } from "./later";
import type { Attachment, Command } from "./protocol";
import { useSpeech } from "./speech";
import { visible } from "./text";
import { Dictate } from "./voice-buttons";

/** Most pictures of a message, and most other files. */
const MOST_FILES = 8;
/** Pixels of the longer side of a picture that is sent: models see no more. */
const LONGEST_SIDE = 1_568;
/** Characters of all that is attached, in base64: below the gateway's limit of a frame. */
const MOST_CHARACTERS = 5_500_000;
const TOO_MUCH = `A message takes at most ${MOST_FILES} pictures and ${MOST_FILES} other files, of 4 MB together.`;
/** A smaller file is sent as it is. */
const SMALL = 400_000;

interface Draft extends Attachment {
  address: string;
}

interface Props {
  busy: boolean;
  /** The commands that the owner has written. */
  commands: Command[];
  /** Text to begin with, which its writer completes. */
  draft: { text: string };
  onSend: (text: string, attachments: Attachment[]) => void;
  onStop: () => void;
  /** The owner's commands are others now. */
  onCommands: () => void;
}

const Prompts = later(() => import("./more-pages").then((file) => file.Prompts));

export function Composer({ busy, commands, draft, onSend, onStop, onCommands }: Props) {
  const [text, setText] = useState("");
  const [drafts, setDrafts] = useState<Draft[]>([]);
  const [error, setError] = useState("");
  /** The number of the command that is chosen; -1 before one is, and null if none are to be shown. */
  const [chosen, setChosen] = useState<number | null>(-1);
  const [showsPrompts, setShowsPrompts] = useState(false);
  const { listens } = useSpeech();
  const area = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);

  // Each session has a composer of its own, which is empty from the beginning. What is emptied later is lost to whoever
  // writes at once.
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, []);
  useEffect(() => {
    if (!draft.text) return;
    setText(draft.text);
    area.current?.focus();
  }, [draft]);
  useEffect(() => {
    const place = area.current;
    if (!place) return;
    place.style.height = "auto";
    place.style.height = `${Math.min(place.scrollHeight, innerHeight / 3)}px`;
  }, [text]);

  const attach = async (list: Iterable<File>) => {
    setError("");
    for (const file of [...list]) {
      // A picture is made smaller first.
      if (!isPicture(file) && file.size * (4 / 3) > MOST_CHARACTERS) {
        setError(`Not attached: ${visible(file.name)}. ${TOO_MUCH}`);
        continue;
      }
      try {
        const draft = await prepare(file);
        setDrafts((all) => {
          const size = all.reduce((sum, one) => sum + one.data.length, draft.data.length);
          const alike = all.filter((other) => !other.name === !draft.name).length;
          if (alike >= MOST_FILES || size > MOST_CHARACTERS) {
            setError(`Not attached: ${visible(file.name)}. ${TOO_MUCH}`);
            return all;
          }
          return [...all, draft];
        });
      } catch {
        // A directory that was dropped cannot be read either.
        setError(`Not attached: ${visible(file.name)} cannot be read; attach files one by one.`);
      }
    }
  };
  const list = chosen === null ? [] : offered(text, commands);
  const choose = (command: Command) => {
    setText(`${command.name} `);
    setChosen(-1);
    area.current?.focus();
  };
  /** Chooses a command with the keyboard. True if the key was for that. */
  const isForList = (event: KeyboardEvent): boolean => {
    if (list.length === 0) return false;
    const at = chosen ?? -1;
    const command = list[at];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen(at < 0 && step < 0 ? list.length - 1 : (at + step + list.length) % list.length);
    else if (event.key === "Escape") setChosen(null);
    else if (command && ["Enter", "Tab"].includes(event.key)) choose(command);
    else return false;
    return true;
  };
  const send = () => {
    if (!text.trim() && drafts.length === 0) return;
    onSend(text, drafts.map(({ mediaType, data, name }) => ({ mediaType, data, ...(name ? { name } : {}) })));
    setText("");
    setDrafts([]);
  };

  return (
    <>
      <form
        class="composer"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void attach(event.dataTransfer?.files ?? []);
        }}
      >
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        {drafts.length > 0 && (
          <ul class="drafts">
            {drafts.map((draft, number) => (
              <li key={draft.address}>
                {draft.name ? (
                  <span class="file">{visible(draft.name)}</span>
                ) : (
                  <img src={draft.address} alt={`picture ${number + 1}`} />
                )}
                <button
                  type="button"
                  class="icon-button"
                  aria-label={draft.name ? `Remove ${visible(draft.name)}` : `Remove picture ${number + 1}`}
                  onClick={() => setDrafts((all) => all.filter((other) => other !== draft))}
                >
                  <Icon name="cross" />
                </button>
              </li>
            ))}
          </ul>
        )}
        {list.length > 0 && <Offered id="offered" list={list} chosen={chosen ?? -1} onChoose={choose} />}
        <div class="row">
          <input
            ref={files}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => {
              void attach(event.currentTarget.files ?? []);
              event.currentTarget.value = "";
            }}
          />
          <button type="button" class="icon-button" aria-label="Attach files" onClick={() => files.current?.click()}>
            <Icon name="picture" />
          </button>
          <button type="button" class="icon-button" aria-label="Prompts" onClick={() => setShowsPrompts(true)}>
            <Icon name="prompts" />
          </button>
          {listens && (
            <Dictate
              onText={(said) => {
                setText((before) => (before.trim() ? `${before.trimEnd()} ${said}` : said));
                area.current?.focus();
              }}
              onError={setError}
            />
          )}
          <textarea
            ref={area}
            rows={1}
            value={text}
            aria-label="Message"
            placeholder={busy ? "Message for this turn" : "Message"}
            aria-autocomplete="list"
            aria-controls={list.length > 0 ? "offered" : undefined}
            aria-activedescendant={list[chosen ?? -1] ? `offered-${chosen}` : undefined}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setChosen(-1);
            }}
            onKeyDown={(event) => {
              if (!event.isComposing && isForList(event)) {
                event.preventDefault();
                return;
              }
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              send();
            }}
            onPaste={(event) => {
              const pasted = [...(event.clipboardData?.files ?? [])];
              if (pasted.length) {
                event.preventDefault();
                void attach(pasted);
              }
            }}
          />
          {busy && (
            <button type="button" class="icon-button stop" aria-label="Stop" onClick={onStop}>
              <Icon name="stop" />
            </button>
          )}
          <button type="submit" class="icon-button send" aria-label="Send" disabled={!text.trim() && drafts.length === 0}>
            <Icon name="send" />
          </button>
        </div>
      </form>
      {showsPrompts && (
        <Prompts
          written={text}
          onInsert={(prompt) => setText((before) => (before.trim() ? `${before.trimEnd()}\n\n${prompt}` : prompt))}
          onChange={onCommands}
          onClose={() => {
            setShowsPrompts(false);
            area.current?.focus();
          }}
        />
      )}
    </>
  );
}

/** Whether models may see the file; others are saved for the agent. */
function isPicture(file: File): boolean {
  return file.type.startsWith("image/");
}

/** A file as it is, and a picture in a size that models use. One that the browser cannot show is a file. */
async function prepare(file: File): Promise<Draft> {
  const bitmap = isPicture(file) ? await createImageBitmap(file).catch(() => null) : null;
  if (!bitmap) {
    if (file.size * (4 / 3) > MOST_CHARACTERS) throw new Error(TOO_MUCH);
    return { ...(await encoded(file)), name: file.name };
  }
  const scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  let blob: Blob = file;
  if (scale < 1 || file.size > SMALL) {
    const canvas = new OffscreenCanvas(Math.round(bitmap.width * scale), Math.round(bitmap.height * scale));
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const made = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
    blob = made.size < file.size || scale < 1 ? made : file;
  }
  bitmap.close();
  return encoded(blob);
}

async function encoded(blob: Blob): Promise<Draft> {
  const address = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  return { mediaType: blob.type, data: address.slice(address.indexOf(",") + 1), address };
}
