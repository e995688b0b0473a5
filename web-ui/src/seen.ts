// Which sessions have something new since they were looked at in this browser.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ListedSession } from "./protocol";

const KEY = "myclaw.seen";
/** Most sessions whose last look is remembered. */
const MOST = 300;

/** Milliseconds in which the list catches up with what was seen. */
const MOMENT = 10_000;

interface Seen {
  /** What was there when this browser came counts as seen. */
  since: number;
  /** When a session was changed that was looked at, by its key. */
  at: Record<string, number>;
}

function stored(): Seen | null {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "null");
  } catch {
    return null;
  }
}

const isNamed = (session: ListedSession, name: string) => session.name === name || session.key === name;

/** The keys of the sessions in the list with something new. The current one is looked at while the page is. */
export function useNews(list: ListedSession[], isRead: boolean, current: string): Set<string> {
  const [seen, setSeen] = useState(stored);
  const shown = useRef(current);
  /** The session that was left, and the list then. What the next list says of it was still seen, unless it goes on. */
  const left = useRef({ name: "", list, until: 0 });
  useEffect(() => {
    if (shown.current !== current) left.current = { name: shown.current, list, until: Date.now() + MOMENT };
    shown.current = current;
    if (!isRead) return;
    const before = left.current;
    const isNext = before.name !== "" && before.list !== list;
    if (isNext) left.current = { name: "", list, until: 0 };
    const now = seen ?? { since: Math.max(0, ...list.map((session) => session.updatedAt)), at: {} };
    const isLeft = (session: ListedSession) => isNext && Date.now() < before.until && isNamed(session, before.name) && !session.busy;
    const looked = list.filter((session) => (isNamed(session, current) || isLeft(session)) && now.at[session.key] !== session.updatedAt);
    if (seen && (looked.length === 0 || document.visibilityState !== "visible")) return;
    const at = { ...now.at, ...Object.fromEntries(looked.map((session) => [session.key, session.updatedAt])) };
    const newest = Object.entries(at).sort(([, one], [, other]) => other - one).slice(0, MOST);
    const next = { since: now.since, at: Object.fromEntries(newest) };
    localStorage.setItem(KEY, JSON.stringify(next));
    setSeen(next);
  }, [list, isRead, current]);
  if (!seen) return new Set();
  const isNews = (session: ListedSession) => session.updatedAt > Math.max(seen.since, seen.at[session.key] ?? 0);
  return new Set(list.filter(isNews).map((session) => session.key));
}
