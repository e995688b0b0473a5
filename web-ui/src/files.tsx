// The files of an answer. The answer names them in lines `MEDIA: path`; the gateway has copies of them.

import { useEffect, useState } from "preact/hooks";
import { api, fetchWithToken, handToBrowser } from "./api";
import { visible } from "./text";

interface SentFile {
  name: string;
  url: string;
  /** Where an address for a frame is made, if not next to it. */
  view?: string;
}

/** Milliseconds between two requests for the files of an answer that is not there yet. */
const PAUSE = 1_000;
const PICTURES = /\.(png|jpe?g|gif|webp|svg)$/i;
const SVG = /\.svg$/i;

/** A text without the lines that name files, and the paths in them. What is in a code block is text. */
export function withoutFiles(text: string): { text: string; paths: string[] } {
  if (!text.includes("MEDIA:")) return { text, paths: [] };
  const lines: string[] = [];
  const paths: string[] = [];
  let isCode = false;
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (/^(```|~~~)/.test(trimmed)) isCode = !isCode;
    const path = !isCode && trimmed.match(/^MEDIA:\s*(\S.*)$/)?.[1];
    if (path) paths.push(path);
    else lines.push(line);
  }
  return { text: lines.join("\n").trim(), paths };
}

interface Props {
  /** The messages that the answer is for; one of them has the files. */
  messageIds: string[];
  paths: string[];
  isOver: boolean;
}

/** The files of an answer, as far as the gateway has them; until then, their names. */
export function Files({ messageIds, paths, isOver }: Props) {
  const [files, setFiles] = useState<SentFile[] | null>(null);
  const id = messageIds.at(-1);
  useEffect(() => {
    if (!id || !isOver) return;
    let isGone = false;
    let timer = 0;
    const ask = () =>
      api<{ state: string; files?: SentFile[] }>(`/api/messages/${encodeURIComponent(id)}?wait=60`)
        .then((message) => {
          if (isGone) return;
          // The step with the file is over before the turn, which may take longer than a request waits.
          if (message.state === "open") timer = setTimeout(() => void ask(), PAUSE);
          else setFiles(message.files ?? []);
        })
        // Messages from elsewhere, and old ones, have no files here.
        .catch(() => !isGone && setFiles([]));
    void ask();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [id, isOver]);
  const named = paths.map((path) => path.split("/").at(-1)?.replace(/[`"']/g, "") ?? path);
  // An answer can have several texts that name files, and each shows its own.
  const left = [...(files ?? [])];
  const shown = named.map((name) => {
    const at = left.findIndex((file) => file.name === name);
    return at < 0 ? name : (left.splice(at, 1)[0] ?? name);
  });
  return (
    <ul class="files" aria-label="Files">
      {shown.map((file, number) =>
        typeof file === "object" ? (
          <File key={file.url} file={file} />
        ) : (
          <li key={number} class="muted">
            {visible(file)}
            {files && " (not kept here)"}
          </li>
        ),
      )}
    </ul>
  );
}

/** What is shown in a frame. */
const DOCUMENTS = /\.(html?|pdf)$/i;
const PDF = /\.pdf$/i;

/** A file to save; a picture is shown too, and a document in a frame if one wants to see it. */
export function File({ file }: { file: SentFile }) {
  const [picture, setPicture] = useState("");
  const [frame, setFrame] = useState("");
  const [error, setError] = useState("");
  const look = () =>
    api<{ url: string }>(file.view ?? `${file.url}/view`, { method: "POST" }).then(
      ({ url }) => setFrame(url),
      (failure: Error) => setError(failure.message),
    );
  const isPicture = PICTURES.test(file.name);
  useEffect(() => {
    if (!isPicture) return;
    let made = "";
    let isGone = false;
    fetchWithToken(file.url)
      .then((response) => response.blob())
      .then((blob) => {
        if (isGone) return;
        // As a picture it runs nothing and loads nothing.
        made = URL.createObjectURL(SVG.test(file.name) ? new Blob([blob], { type: "image/svg+xml" }) : blob);
        setPicture(made);
      })
      .catch((failure: Error) => !isGone && setError(failure.message));
    return () => {
      isGone = true;
      if (made) URL.revokeObjectURL(made);
    };
  }, [file.url, isPicture]);
  const save = () =>
    fetchWithToken(file.url)
      .then((response) => response.blob())
      .then((blob) => handToBrowser(blob, file.name))
      .catch((failure: Error) => setError(failure.message));
  return (
    <li>
      {picture && <img class="picture" alt={file.name} src={picture} />}
      <button type="button" class="link" onClick={() => void save()}>
        {visible(file.name)}
      </button>
      {DOCUMENTS.test(file.name) && (
        <button
          type="button"
          aria-label={`${frame ? "Close" : "Show"} ${visible(file.name)}`}
          onClick={() => (frame ? setFrame("") : void look())}
        >
          {frame ? "Close" : "Show"}
        </button>
      )}
      {frame && (
        // The gateway's answer is sandboxed too. For PDF that is all: no browser's viewer begins in a frame with the attribute.
        <iframe
          class="document"
          sandbox={PDF.test(file.name) ? undefined : ""}
          referrerpolicy="no-referrer"
          title={visible(file.name)}
          src={frame}
        />
      )}
      {error && <span class="error">{error}</span>}
    </li>
  );
}
