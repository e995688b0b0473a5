// The list of sessions.

import { useEffect, useState } from "preact/hooks";
import type { Connection } from "./connection";
import { Dialog, MoveTo } from "./dialog";
import { Icon } from "./icons";
import { folderOf, type ListedSession, PINNED, titleOf } from "./protocol";
import { useNews } from "./seen";
import { moment, visible } from "./text";

const TYPING = 250;
/** The gateway says when a session looks different; this is for what it cannot know, such as turns of other programs. */
const EVERY = 60_000;
/** Several things that happen at once are one reason to read. */
const TOGETHER = 200;

export interface Sessions {
  list: ListedSession[];
  total: number;
  search: string;
  setSearch: (text: string) => void;
  /** Whether the archived sessions are listed. */
  archived: boolean;
  setArchived: (archived: boolean) => void;
  /** Whether the list was read once. */
  isRead: boolean;
  read: () => void;
}

/** The sessions, read again every minute while the page is seen, and when something happens. */
export function useSessions(connection: Connection | null, phase: string): Sessions {
  const [found, setFound] = useState<{ sessions: ListedSession[]; total: number } | null>(null);
  const [search, setSearch] = useState("");
  const [archived, setArchived] = useState(false);
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((number) => number + 1);
  useEffect(() => {
    if (!connection || phase !== "open") return;
    connection.request("watch_list").catch(() => {});
    let timer = 0;
    connection.onList = () => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        again();
      }, TOGETHER);
    };
    const seen = () => document.visibilityState === "visible" && again();
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearTimeout(timer);
      connection.onList = () => {};
      document.removeEventListener("visibilitychange", seen);
    };
  }, [connection, phase]);
  useEffect(() => {
    if (!connection || phase !== "open") return;
    let isGone = false;
    const read = () => {
      if (document.visibilityState === "hidden") return;
      connection
        .request<{ sessions: ListedSession[]; total: number }>("sessions", search ? { search } : { archived })
        .then((result) => !isGone && setFound(result))
        .catch(() => {});
    };
    const first = setTimeout(read, search ? TYPING : 50);
    const timer = setInterval(read, EVERY);
    return () => {
      isGone = true;
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [connection, phase, search, archived, turn]);
  return { list: found?.sessions ?? NONE, total: found?.total ?? 0, isRead: found !== null, search, setSearch, archived, setArchived, read: again };
}

const NONE: ListedSession[] = [];

/** Deepest level of forks that is shown as such. */
const MOST_LEVELS = 4;

/** The sessions with each fork below the session that it was forked from, if that is in the list. */
function asTree(list: ListedSession[]): { session: ListedSession; level: number }[] {
  const keys = new Set(list.map((session) => session.key));
  const forks = new Map<string, ListedSession[]>();
  const roots: ListedSession[] = [];
  for (const session of list) {
    const parent = session.forkedFrom;
    if (parent && parent !== session.key && keys.has(parent)) forks.set(parent, [...(forks.get(parent) ?? []), session]);
    else roots.push(session);
  }
  const shown: { session: ListedSession; level: number }[] = [];
  const show = (session: ListedSession, level: number) => {
    shown.push({ session, level: Math.min(level, MOST_LEVELS) });
    const own = forks.get(session.key) ?? [];
    // Each is shown once, also where two name each other.
    forks.delete(session.key);
    for (const fork of own) show(fork, level + 1);
  };
  for (const session of roots) show(session, 0);
  const isShown = new Set(shown.map(({ session }) => session.key));
  return [...shown, ...list.filter((session) => !isShown.has(session.key)).map((session) => ({ session, level: 0 }))];
}

interface Props {
  sessions: Sessions;
  current: string;
  connection: Connection;
  onOpen: (name: string) => void;
}

export function SessionList({ sessions, current, connection, onOpen }: Props) {
  const { list, total, search, setSearch, archived, setArchived } = sessions;
  /** The keys of the chosen sessions; null while none is to be chosen. */
  const [chosen, setChosen] = useState<Set<string> | null>(null);
  const gone = (those: ListedSession[]) => {
    sessions.read();
    if (those.some((session) => session.name === current || session.key === current)) onOpen("main");
  };
  const choose = (key: string, isChosen: boolean) => {
    const next = new Set(chosen);
    if (isChosen) next.add(key);
    else next.delete(key);
    setChosen(next);
  };
  const news = useNews(list, sessions.isRead, current);
  const isListed = list.some((session) => session.name === current || session.key === current);
  const shown = isListed || search || archived || !current ? list : [{ name: current, key: current, updatedAt: 0 } as ListedSession, ...list];
  const folders = search ? [] : [...new Set(shown.map(folderOf))].filter(Boolean).sort((one, other) => one.localeCompare(other));
  const row = ({ session, level }: { session: ListedSession; level: number }) => {
    const isCurrent = session.name === current || session.key === current;
    return (
      <li key={session.key} class={`${level ? `fork level-${level}` : ""} ${chosen ? "choosing" : ""}`}>
        {chosen && (
          <input
            type="checkbox"
            aria-label={`Choose ${visible(titleOf(session))}`}
            checked={chosen.has(session.key)}
            onChange={(event) => choose(session.key, event.currentTarget.checked)}
          />
        )}
        <a
          href={`#/s/${encodeURIComponent(session.name)}`}
          aria-current={isCurrent ? "page" : undefined}
          onClick={(event) => {
            event.preventDefault();
            onOpen(session.name);
          }}
        >
          <span class="title" title={session.name}>
            {session.labels?.includes(PINNED) && <Icon name="pin" />}
            {visible(titleOf(session))}
          </span>
          {session.approvals > 0 && <span class="badge">asks</span>}
          {!session.busy && !session.approvals && !isCurrent && news.has(session.key) && <span class="badge">new</span>}
          {session.busy && !session.approvals && <span class="busy" role="img" aria-label="works" />}
          <span class="when">{moment(session.updatedAt)}</span>
          {session.snippet && (
            <span class="snippet">
              {visible(session.snippet.before)}
              <mark>{visible(session.snippet.matched)}</mark>
              {visible(session.snippet.after)}
            </span>
          )}
        </a>
      </li>
    );
  };
  return (
    <>
      <label class="search">
        <Icon name="search" />
        <input type="search" placeholder="Search" aria-label="Search sessions" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <div class="list-actions">
        <button type="button" class="link" aria-pressed={chosen !== null} onClick={() => setChosen(chosen ? null : new Set())}>
          {chosen ? "End choosing" : "Choose"}
        </button>
        <button
          type="button"
          class="link"
          aria-pressed={archived}
          onClick={() => {
            setArchived(!archived);
            setChosen(null);
          }}
        >
          {archived ? "Show the others" : "Show archived"}
        </button>
      </div>
      {chosen && <Bulk chosen={list.filter((session) => chosen.has(session.key))} archived={archived} folders={folders} connection={connection} onEnd={() => setChosen(null)} onGone={gone} />}
      <nav aria-label="Sessions">
        {folders.map((folder) => (
          <details key={folder} class="folder" open>
            <summary>
              <Icon name="folder" /> {visible(folder)}
            </summary>
            <ul>{asTree(shown.filter((session) => folderOf(session) === folder)).map(row)}</ul>
          </details>
        ))}
        <ul>{(search ? shown.map((session) => ({ session, level: 0 })) : asTree(shown.filter((session) => !folderOf(session)))).map(row)}</ul>
        {shown.length === 0 && <p class="muted center">{search ? "No session holds this text." : archived ? "No session is archived." : "No session yet."}</p>}
        {total > list.length && <p class="muted center">{total - list.length} older sessions; search finds them.</p>}
      </nav>
    </>
  );
}

interface BulkProps {
  chosen: ListedSession[];
  archived: boolean;
  folders: string[];
  connection: Connection;
  onEnd: () => void;
  /** These are not in the list any more. */
  onGone: (sessions: ListedSession[]) => void;
}

/** What can be done with the chosen sessions. */
function Bulk({ chosen, archived, folders, connection, onEnd, onGone }: BulkProps) {
  const [asks, setAsks] = useState(false);
  const [moves, setMoves] = useState(false);
  const [error, setError] = useState("");
  /** Does it with one after the other. What fails is named, and the rest is done. */
  const each = async (act: (session: ListedSession) => Promise<unknown>) => {
    const failures: string[] = [];
    const done: ListedSession[] = [];
    for (const session of chosen) {
      await act(session).then(
        () => done.push(session),
        (failure: Error) => failures.push(`${visible(titleOf(session))}: ${failure.message}`),
      );
    }
    onGone(done);
    setError(failures.join("\n"));
    if (!failures.length) onEnd();
  };
  const isNone = chosen.length === 0;
  return (
    <div class="bulk" role="group" aria-label="Chosen sessions">
      <span class="muted">{chosen.length} chosen</span>
      <button type="button" disabled={isNone} onClick={() => void each((session) => connection.request("mark", { session: session.key, archived: !archived }))}>
        {archived ? "Take out of the archive" : "Archive"}
      </button>
      <button type="button" disabled={isNone} onClick={() => setMoves(true)}>
        Move to a folder
      </button>
      <button type="button" class="danger" disabled={isNone} onClick={() => setAsks(true)}>
        Delete
      </button>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {moves && <MoveTo folders={folders} current="" onClose={() => setMoves(false)} onMove={(folder) => each((session) => connection.request("mark", { session: session.key, folder }))} />}
      {asks && (
        <Dialog
          title={chosen.length === 1 ? "Delete this session?" : `Delete these ${chosen.length} sessions?`}
          action="Delete"
          isDangerous
          onClose={() => setAsks(false)}
          onConfirm={() => each((session) => connection.request("delete", { session: session.key }))}
        >
          <p>They and their transcripts are deleted. This cannot be undone.</p>
          <ul>
            {chosen.map((session) => (
              <li key={session.key}>{visible(titleOf(session))}</li>
            ))}
          </ul>
        </Dialog>
      )}
    </div>
  );
}
