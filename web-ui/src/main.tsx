// The page of the gateway.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Actions } from "./actions";
import { Chat } from "./chat";
import { Connection, type Phase } from "./connection";
import { Icon } from "./icons";
import { forgetToken, Login, storedToken } from "./login";
import { SessionList, useSessions } from "./sidebar";
import { StatusPage } from "./status";
import "./styles.css";
import { visible } from "./text";

const THEME = "myclaw.theme";
const THEMES = ["auto", "light", "dark"] as const;

/** What the address names: a page of this program, never another server. */
interface Place {
  page: "chat" | "status";
  session: string;
}

function place(): Place {
  const [, page, name] = location.hash.match(/^#\/(s|status)(?:\/([^/?]+))?$/) ?? [];
  let session = "main";
  try {
    if (page === "s" && name) session = decodeURIComponent(name);
  } catch {
    // Not an address of this page: the main session.
  }
  return { page: page === "status" ? "status" : "chat", session };
}

function useTheme(): [string, () => void] {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  const next = () => setTheme(THEMES[(THEMES.indexOf(theme as "auto") + 1) % THEMES.length] ?? "auto");
  return [theme, next];
}

function App() {
  const [token, setToken] = useState(storedToken);
  const [connection, setConnection] = useState<Connection | null>(null);
  const [phase, setPhase] = useState<Phase>("connecting");
  const [refusal, setRefusal] = useState("");
  const [isOutdated, setOutdated] = useState(false);
  const [wasOpen, setWasOpen] = useState(false);

  useEffect(() => {
    if (!token) return;
    const made = new Connection(token);
    made.onPhase = () => {
      if (made.phase === "refused") {
        forgetToken();
        setRefusal(made.refusal || "the gateway refused the token");
        setToken(null);
      }
      if (made.phase === "open") {
        setRefusal("");
        setWasOpen(true);
      }
      setPhase(made.phase);
      setOutdated(made.isOutdated);
    };
    setConnection(made);
    return () => {
      made.close();
      setConnection(null);
      setPhase("connecting");
      setWasOpen(false);
    };
  }, [token]);

  if (!token) return <Login refusal={refusal} onToken={setToken} />;
  if (!connection || !wasOpen) {
    return (
      <main class="login">
        <p role="status">{phase === "offline" ? "The gateway cannot be reached. Trying again…" : "Connecting…"}</p>
      </main>
    );
  }
  const leave = () => {
    forgetToken();
    setToken(null);
  };
  return <Desk connection={connection} phase={phase} isOutdated={isOutdated} onLeave={leave} />;
}

function Desk({ connection, phase, isOutdated, onLeave }: { connection: Connection; phase: Phase; isOutdated: boolean; onLeave: () => void }) {
  const [where, setWhere] = useState(place);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [theme, nextTheme] = useTheme();
  const sessions = useSessions(connection, phase);
  useEffect(() => {
    const changed = () => {
      setWhere(place());
      setMenuOpen(false);
    };
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const open = (name: string) => {
    location.hash = `#/s/${encodeURIComponent(name)}`;
    setMenuOpen(false);
  };
  const begin = () => {
    const now = new Date();
    const two = (number: number) => String(number).padStart(2, "0");
    const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
    open(`${date}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`);
  };
  const listed = sessions.list.find((session) => session.name === where.session || session.key === where.session);
  const title = where.page === "status" ? "Gateway" : (listed?.title ?? where.session);
  useEffect(() => {
    document.title = `${visible(title)} · MyClaw`;
  }, [title]);
  return (
    <div class={`desk ${isMenuOpen ? "menu-open" : ""}`}>
      <aside
        class="sidebar"
        onKeyDown={(event) => {
          if (event.key === "Escape") setMenuOpen(false);
        }}
      >
        <div class="head">
          <img src="/icon.svg" alt="" width="28" height="28" />
          <b>MyClaw</b>
          <button type="button" class="icon-button" aria-label="New session" title="New session" onClick={begin}>
            <Icon name="plus" />
          </button>
        </div>
        <SessionList sessions={sessions} current={where.page === "chat" ? where.session : ""} onOpen={open} />
        <div class="foot">
          <a class="icon-button" href="#/status" aria-label="Gateway status" title="Gateway status" aria-current={where.page === "status" ? "page" : undefined}>
            <Icon name="gauge" />
          </a>
          <button type="button" class="icon-button" aria-label={`Theme: ${theme}`} title={`Theme: ${theme}`} onClick={nextTheme}>
            <Icon name="theme" />
          </button>
          <button type="button" class="icon-button" aria-label="Sign out" title="Sign out" onClick={onLeave}>
            <Icon name="leave" />
          </button>
        </div>
      </aside>
      <button type="button" class="shade" aria-label="Close the list of sessions" tabIndex={isMenuOpen ? 0 : -1} onClick={() => setMenuOpen(false)} />
      <main>
        <header class="bar">
          <button
            type="button"
            class="icon-button only-narrow"
            aria-label="Sessions"
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name="menu" />
          </button>
          <h1>{visible(title)}</h1>
          {isOutdated && (
            <button type="button" class="link" onClick={() => location.reload()}>
              The gateway was updated: reload
            </button>
          )}
          {where.page === "chat" && (
            <Actions name={where.session} title={listed?.title ?? null} connection={connection} onChange={sessions.read} onOpen={open} />
          )}
        </header>
        {where.page === "status" ? (
          <StatusPage connection={connection} phase={phase} onOpen={open} />
        ) : (
          <Chat key={where.session} name={where.session} connection={connection} isOffline={phase !== "open"} onNews={sessions.read} />
        )}
      </main>
    </div>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
