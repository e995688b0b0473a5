// What all pages are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "./api";
import { Icon } from "./icons";

/** What every page gets. */
export interface PageProps {
  /** Whether the gateway can be reached: then the page reads again. */
  phase: string;
  onOpenSession: (name: string) => void;
}

export interface Loaded<T> {
  data: T | null;
  error: string;
  isLoading: boolean;
  /** Reads again; ready when that is done. */
  reload: () => Promise<void>;
}

/** What the gateway answers to `path`, read again every `every` milliseconds while the page is seen. */
export function useLoad<T>(path: string, phase: string, every = 0): Loaded<T> {
  const [data, setData] = useState<T | null>(null);
  const [error, setError] = useState("");
  const [isLoading, setLoading] = useState(true);
  const current = useRef(0);
  const read = async () => {
    const mine = ++current.current;
    try {
      const answer = await api<T>(path);
      if (mine !== current.current) return;
      setData(answer);
      setError("");
    } catch (failure) {
      if (mine === current.current) setError((failure as Error).message);
    } finally {
      if (mine === current.current) setLoading(false);
    }
  };
  useEffect(() => {
    if (phase !== "open") return;
    setLoading(true);
    void read();
    const timer = every > 0 ? setInterval(() => document.visibilityState === "visible" && void read(), every) : 0;
    return () => {
      current.current++;
      clearInterval(timer);
    };
  }, [path, phase, every]);
  return { data, error, isLoading, reload: read };
}

/** The body of a page: scrolls, also with the keyboard. */
export function Page({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="page" tabIndex={0} role="region" aria-label={name}>
      <div class="column wide">{children}</div>
    </div>
  );
}

/** What is shown while there is nothing else. */
export function State({ loaded, isEmpty, children }: { loaded: Loaded<unknown>; isEmpty?: boolean; children?: ComponentChildren }) {
  if (loaded.error) {
    return (
      <p class="failure" role="alert">
        <Icon name="cross" /> {loaded.error}
      </p>
    );
  }
  if (!loaded.data) return <p class="muted center">Reading…</p>;
  return isEmpty ? <div class="nothing">{children}</div> : null;
}

/** A choice of one of a few values. */
export function Choice<T extends string>({ label, value, values, onChange }: { label: string; value: T; values: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div>
        {values.map(([name, text]) => (
          <label key={name}>
            <input type="radio" name={`choice-${label}`} value={name} checked={name === value} onChange={() => onChange(name)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A table that scrolls sideways where it is wider than the page. */
export function Table({ name, head, children }: { name: string; head: readonly string[]; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={name}>
      <table class="table">
        <thead>
          <tr>
            {head.map((one) => (
              <th key={one} scope="col">
                {one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A mark with a word: never a colour alone. */
export function Mark({ kind, children }: { kind: "good" | "bad" | "ask" | "plain"; children: ComponentChildren }) {
  return <span class={`mark mark-${kind}`}>{children}</span>;
}

/** A button that shows that its work goes on, and what went wrong. */
export function Act({ label, icon, isDangerous, onAct }: { label: string; icon?: string; isDangerous?: boolean; onAct: () => Promise<unknown> }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const isHere = useRef(true);
  useEffect(() => () => void (isHere.current = false), []);
  const act = async () => {
    setBusy(true);
    setError("");
    try {
      await onAct();
    } catch (failure) {
      if (isHere.current) setError((failure as Error).message);
    } finally {
      if (isHere.current) setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class={`act ${isDangerous ? "danger" : ""}`} disabled={isBusy} onClick={() => void act()}>
        {icon && <Icon name={icon} />}
        {label}
      </button>
      {error && (
        <span class="error" role="alert">
          {error}
        </span>
      )}
    </>
  );
}
