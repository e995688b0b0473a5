// The files of an agent's workspace: what is there, down and up.

import { useEffect, useRef, useState } from "preact/hooks";
import { AgentChoice } from "./agents";
import { fetchWithToken } from "./api";
import { Page, type PageProps, State, Table, useLoad } from "./common";
import { File } from "./files";
import { Failure } from "./form";
import { Icon } from "./icons";
import { fullMoment, visible } from "./text";

/** Largest file that is shown as text, in bytes. */
const MOST_TEXT = 256 * 1024;

interface Entry {
  name: string;
  isDirectory: boolean;
  bytes: number;
  changedAt: number;
}

interface Listing {
  agent: string;
  workspace: string;
  entries: Entry[];
  isCut: boolean;
}

function address(rest: string, agent: string, path: string): string {
  const query = new URLSearchParams({ path, ...(agent ? { agent } : {}) });
  return `/api/workspace${rest}?${query}`;
}

function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** The beginning of a file, if it is text. */
function TextOf({ url }: { url: string }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let isGone = false;
    fetchWithToken(url)
      .then((response) => response.arrayBuffer())
      .then((bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes))
      .then((read) => !isGone && setText(read.includes("\0") ? null : read))
      // What is no text is downloaded.
      .catch(() => {});
    return () => {
      isGone = true;
    };
  }, [url]);
  if (text === null) return null;
  return (
    <pre class="file-text" tabIndex={0} role="group" aria-label="content">
      {visible(text)}
    </pre>
  );
}

export function WorkspacePage({ phase }: PageProps) {
  const [agent, setAgent] = useState("");
  const [path, setPath] = useState("");
  const [shown, setShown] = useState("");
  const [error, setError] = useState("");
  const [said, setSaid] = useState("");
  const files = useRef<HTMLInputElement>(null);
  const loaded = useLoad<Listing>(address("", agent, path), phase);
  const { entries = [], workspace = "", isCut } = loaded.data ?? {};
  const parts = path ? path.split("/") : [];
  const go = (to: string) => {
    setPath(to);
    setShown("");
    setError("");
    setSaid("");
  };
  const within = (name: string) => (path ? `${path}/${name}` : name);
  const upload = async (list: Iterable<globalThis.File>) => {
    setError("");
    setSaid("");
    const done: string[] = [];
    for (const file of [...list]) {
      try {
        await fetchWithToken(address("/file", agent, within(file.name)), { method: "PUT", body: file });
        done.push(file.name);
      } catch (failure) {
        setError(`${visible(file.name)}: ${(failure as Error).message}`);
      }
    }
    if (done.length) setSaid(`Uploaded: ${done.map(visible).join(", ")}.`);
    await loaded.reload();
  };
  return (
    <Page name="Files">
      <AgentChoice
        value={agent || loaded.data?.agent}
        phase={phase}
        onChange={(one) => {
          setAgent(one);
          go("");
        }}
      />
      <div class="controls">
        <nav class="grow" aria-label="Place">
          <button type="button" class="link" onClick={() => go("")}>
            {visible(workspace)}
          </button>
          {parts.map((part, at) => (
            <span key={at}>
              {" / "}
              <button type="button" class="link" onClick={() => go(parts.slice(0, at + 1).join("/"))}>
                {visible(part)}
              </button>
            </span>
          ))}
        </nav>
        <input
          ref={files}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            void upload(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <button type="button" class="primary act" onClick={() => files.current?.click()}>
          <Icon name="plus" />
          Upload
        </button>
      </div>
      <Failure error={error} />
      {said && <p role="status">{said}</p>}
      <State loaded={loaded} isEmpty={entries.length === 0}>
        <p class="muted">There is no file here.</p>
      </State>
      {entries.length > 0 && (
        <Table name="Files" head={["Name", "Size", "Changed"]}>
          {entries.map((entry) => (
            <tr key={entry.name}>
              <td>
                <button
                  type="button"
                  class="link"
                  aria-expanded={entry.isDirectory ? undefined : shown === entry.name}
                  onClick={() => (entry.isDirectory ? go(within(entry.name)) : setShown(shown === entry.name ? "" : entry.name))}
                >
                  <Icon name={entry.isDirectory ? "folder" : "logs"} /> {visible(entry.name)}
                </button>
              </td>
              <td>{entry.isDirectory ? "" : size(entry.bytes)}</td>
              <td>{fullMoment(entry.changedAt)}</td>
            </tr>
          ))}
        </Table>
      )}
      {isCut && <p class="muted">Only the first {entries.length} are shown.</p>}
      {entries
        .filter((entry) => entry.name === shown)
        .map((entry) => {
          const [url, view] = ["/file", "/view"].map((rest) => address(rest, agent, within(entry.name)));
          return (
            <section key={entry.name} aria-label={visible(entry.name)}>
              <h2>{visible(entry.name)}</h2>
              <ul class="files">
                <File file={{ name: entry.name, url: url ?? "", view }} />
              </ul>
              {entry.bytes <= MOST_TEXT && <TextOf key={url} url={url ?? ""} />}
            </section>
          );
        })}
    </Page>
  );
}
