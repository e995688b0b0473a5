// The end of the log file, and what comes after it.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "./api";
import { Choice, type PageProps } from "./common";
import { visible } from "./text";

const EVERY = 2_000;
/** Most lines that the page keeps. */
const MOST = 2_000;

const LEVELS = [
  ["trace", "All"],
  ["info", "Info"],
  ["warn", "Warnings"],
  ["error", "Errors"],
] as const;
type Level = (typeof LEVELS)[number][0];

interface Line {
  at: string;
  level: string;
  text: string;
}

interface Tail {
  enabled: boolean;
  file: string;
  lines: Line[];
  gap: boolean;
  next: string;
}

/** The lines so far; asks for those that came since while it follows. */
function useTail(level: Level, follows: boolean, phase: string) {
  const [tail, setTail] = useState<Tail | null>(null);
  const [error, setError] = useState("");
  const next = useRef("");
  useEffect(() => {
    next.current = "";
    setTail(null);
  }, [level]);
  useEffect(() => {
    if (phase !== "open") return;
    let isGone = false;
    let isReading = false;
    const read = async () => {
      if (isReading || document.visibilityState === "hidden") return;
      isReading = true;
      try {
        const after = next.current ? `&after=${encodeURIComponent(next.current)}` : "";
        const answer = await api<Tail>(`/api/logs?level=${level}&limit=500${after}`);
        if (isGone) return;
        const isMore = next.current !== "" && !answer.gap;
        next.current = answer.next;
        setTail((known) => ({ ...answer, lines: [...(isMore && known ? known.lines : []), ...answer.lines].slice(-MOST) }));
        setError("");
      } catch (failure) {
        if (!isGone) setError((failure as Error).message);
      } finally {
        isReading = false;
      }
    };
    void read();
    const timer = follows ? setInterval(() => void read(), EVERY) : 0;
    return () => {
      isGone = true;
      clearInterval(timer);
    };
  }, [level, follows, phase]);
  return { tail, error };
}

export function LogsPage({ phase }: PageProps) {
  const [level, setLevel] = useState<Level>("info");
  const [follows, setFollows] = useState(true);
  const [search, setSearch] = useState("");
  const { tail, error } = useTail(level, follows, phase);
  const place = useRef<HTMLDivElement>(null);
  const wanted = search.trim().toLowerCase();
  const lines = (tail?.lines ?? []).filter((line) => !wanted || line.text.toLowerCase().includes(wanted));
  useLayoutEffect(() => {
    if (follows && place.current) place.current.scrollTop = place.current.scrollHeight;
  });
  return (
    <div class="page logs" role="region" aria-label="Logs">
      <div class="controls">
        <Choice label="Level" value={level} values={LEVELS} onChange={setLevel} />
        <label class="field grow">
          Only lines with
          <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />
          Follow
        </label>
      </div>
      {error && (
        <p class="failure" role="alert">
          {error}
        </p>
      )}
      {tail && !tail.enabled && (
        <p class="muted">
          No log file is written. Set <code>logging.file</code> to <code>true</code> in the config file.
        </p>
      )}
      <div class="log-lines scroll" ref={place} tabIndex={0} role="log" aria-label="Log lines" aria-live="off">
        {lines.length === 0 && tail && <p class="muted">No line of this kind.</p>}
        {lines.map((line, number) => (
          <p key={`${line.at}-${number}`} class={`log-line log-${line.level}`}>
            <time dateTime={line.at || undefined}>{line.at.slice(0, 23).replace("T", " ")}</time> <b>{line.level.toUpperCase()}</b> {visible(line.text)}
          </p>
        ))}
      </div>
      {tail && (
        <p class="muted small">
          <code>{tail.file}</code> · times are UTC
        </p>
      )}
    </div>
  );
}
