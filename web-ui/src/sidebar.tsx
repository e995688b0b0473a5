// The list of sessions.

import { useEffect, useState } from "preact/hooks";
import type { Connection } from "./connection";
import { Icon } from "./icons";
import { type ListedSession, titleOf } from "./protocol";
import { moment, visible } from "./text";

const TYPING = 250;
/** What happens in this session is in its events; this is for the others. */
const EVERY = 60_000;

export interface Sessions {
  list: ListedSession[];
  total: number;
  search: string;
  setSearch: (text: string) => void;
  read: () => void;
}

/** The sessions, read again every minute while the page is seen, and when something happens. */
export function useSessions(connection: Connection | null, phase: string): Sessions {
  const [found, setFound] = useState<{ sessions: ListedSession[]; total: number }>({ sessions: [], total: 0 });
  const [search, setSearch] = useState("");
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!connection || phase !== "open") return;
    let isGone = false;
    const read = () => {
      if (document.visibilityState === "hidden") return;
      connection
        .request<{ sessions: ListedSession[]; total: number }>("sessions", search ? { search } : {})
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
  }, [connection, phase, search, turn]);
  return { list: found.sessions, total: found.total, search, setSearch, read: () => setTurn((number) => number + 1) };
}

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
  onOpen: (name: string) => void;
}

export function SessionList({ sessions, current, onOpen }: Props) {
  const { list, total, search, setSearch } = sessions;
  const isListed = list.some((session) => session.name === current || session.key === current);
  const shown = isListed || search || !current ? list : [{ name: current, key: current, updatedAt: 0 } as ListedSession, ...list];
  return (
    <>
      <label class="search">
        <Icon name="search" />
        <input type="search" placeholder="Search" aria-label="Search sessions" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <nav aria-label="Sessions">
        <ul>
          {(search ? shown.map((session) => ({ session, level: 0 })) : asTree(shown)).map(({ session, level }) => {
            const isCurrent = session.name === current || session.key === current;
            return (
              <li key={session.key} class={level ? `fork level-${level}` : undefined}>
                <a
                  href={`#/s/${encodeURIComponent(session.name)}`}
                  aria-current={isCurrent ? "page" : undefined}
                  onClick={(event) => {
                    event.preventDefault();
                    onOpen(session.name);
                  }}
                >
                  <span class="title" title={session.name}>
                    {visible(titleOf(session))}
                  </span>
                  {session.approvals > 0 && <span class="badge">asks</span>}
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
          })}
        </ul>
        {shown.length === 0 && <p class="muted center">{search ? "No session holds this text." : "No session yet."}</p>}
        {total > list.length && <p class="muted center">{total - list.length} older sessions; search finds them.</p>}
      </nav>
    </>
  );
}
