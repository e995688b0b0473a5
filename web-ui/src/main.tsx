// The page of the gateway.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Actions } from "./actions";
import { Chat } from "./chat";
import { Connection, type Phase } from "./connection";
import { Icon } from "./icons";
import { later } from "./later";
import { endAccess, forgetToken, Login, signInWith, storedToken, takeSecret } from "./login";
import { PAGES, place, Rail } from "./pages";
import { folderOf, titleOf } from "./protocol";
import { endNotifications, followNotifications } from "./push";
import { SessionList, useSessions } from "./sidebar";
import { useSetup } from "./setup-state";
import "./styles.css";
import "./pages.css";
import { visible } from "./text";

const Setup = later(() => import("./more-pages").then((file) => file.Setup));
const StatusPage = later(() => import("./more-pages").then((file) => file.StatusPage));

const THEME = "myclaw.theme";
const THEMES = ["auto", "light", "dark"] as const;

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
  const [secret, setSecret] = useState(takeSecret);

  useEffect(() => {
    const changed = () => setSecret((before) => takeSecret() ?? before);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    if (!secret) return;
    signInWith(secret)
      .then(setToken, (failure: Error) => setRefusal(failure.message))
      .finally(() => setSecret(null));
  }, [secret]);
  useEffect(() => {
    // A link may replace the token, which may hold no more.
    if (!token || secret) return;
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
  }, [token, secret]);

  if (secret) {
    return (
      <main class="login">
        <p role="status">Signing in…</p>
      </main>
    );
  }
  if (!token) return <Login refusal={refusal} onToken={setToken} />;
  if (!connection || !wasOpen) {
    return (
      <main class="login">
        <p role="status">{phase === "offline" ? "The gateway cannot be reached. Trying again…" : "Connecting…"}</p>
      </main>
    );
  }
  const leave = () => {
    endAccess();
    endNotifications().catch(() => {});
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
  const [setup, endSetup] = useSetup(phase);
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
  const isChat = where.page === "s";
  const title = isChat ? (listed ? titleOf(listed) : where.session) : (PAGES[where.page]?.name ?? "");
  const OwnPage = PAGES[where.page]?.page;
  useEffect(() => {
    document.title = `${visible(title)} · MyClaw`;
  }, [title]);
  // A page that was chosen is read from its heading on.
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(where.page);
  useEffect(() => {
    if (shown.current !== where.page && !isChat) heading.current?.focus();
    shown.current = where.page;
  }, [where.page]);
  return (
    <div class={`desk ${isMenuOpen ? "menu-open" : ""} ${isChat ? "" : "no-sessions"}`}>
      <button type="button" class="skip" onClick={() => heading.current?.focus()}>
        Skip to the page
      </button>
      <aside
        class="sidebar"
        onKeyDown={(event) => {
          if (event.key === "Escape") setMenuOpen(false);
        }}
      >
        <div class="rail-column">
          <img src="/icon.svg" alt="MyClaw" width="34" height="34" />
          <Rail current={where.page} session={where.session} />
          <button type="button" class="icon-button" aria-label={`Theme: ${theme}`} title={`Theme: ${theme}`} onClick={nextTheme}>
            <Icon name="theme" />
          </button>
          <button type="button" class="icon-button" aria-label="Sign out" title="Sign out" onClick={onLeave}>
            <Icon name="leave" />
          </button>
        </div>
        <div class="sessions-column">
          <div class="head">
            <b>Sessions</b>
            <button type="button" class="icon-button" aria-label="New session" title="New session" onClick={begin}>
              <Icon name="plus" />
            </button>
          </div>
          <SessionList sessions={sessions} current={isChat ? where.session : ""} connection={connection} onOpen={open} />
        </div>
      </aside>
      <button type="button" class="shade" aria-label="Close the menu" tabIndex={isMenuOpen ? 0 : -1} onClick={() => setMenuOpen(false)} />
      <main>
        <header class="bar">
          <button type="button" class="icon-button only-narrow" aria-label="Menu" aria-expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)}>
            <Icon name="menu" />
          </button>
          <h1 ref={heading} tabIndex={-1} title={isChat ? where.session : undefined}>
            {visible(title)}
          </h1>
          {isOutdated && (
            <button type="button" class="link" onClick={() => location.reload()}>
              The gateway was updated: reload
            </button>
          )}
          {isChat && !setup && <Actions name={where.session} title={listed?.title ?? null} labels={listed?.labels ?? []} folder={listed ? folderOf(listed) : ""} folders={[...new Set(sessions.list.map(folderOf))].filter(Boolean)} connection={connection} onChange={sessions.read} onOpen={open} />}
        </header>
        {isChat && setup && <Setup state={setup} onEnd={endSetup} />}
        {isChat && !setup && <Chat key={where.session} name={where.session} connection={connection} isOffline={phase !== "open"} onNews={sessions.read} onNew={begin} onOpen={open} />}
        {where.page === "status" && <StatusPage connection={connection} phase={phase} onOpen={open} />}
        {OwnPage && <OwnPage key={where.page} phase={phase} onOpenSession={open} />}
        {!isChat && phase !== "open" && (
          <p class="offline" role="status">
            The gateway cannot be reached. Trying again…
          </p>
        )}
      </main>
    </div>
  );
}

followNotifications();
const root = document.getElementById("app");
if (root) render(<App />, root);
