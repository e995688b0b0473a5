// The buttons for dictation and for reading aloud.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import { markdown } from "./text";
import type { Recording } from "./voice";

const LOST = "This part of the page could not be loaded; load the page again.";
const voice = () => import("./voice").catch(() => Promise.reject(new Error(LOST)));

/** Records what is said, and gives it as text. */
export function Dictate({ onText, onError }: { onText: (text: string) => void; onError: (why: string) => void }) {
  const [state, setState] = useState<"off" | "on" | "busy">("off");
  const recording = useRef<Recording | null>(null);
  useEffect(() => () => recording.current?.drop(), []);
  const end = () => {
    const own = recording.current;
    if (!own) return;
    recording.current = null;
    setState("busy");
    own
      .text()
      .then(onText, (failure: Error) => onError(failure.message))
      .finally(() => setState("off"));
  };
  const begin = () => {
    setState("busy");
    onError("");
    voice()
      .then(({ Recording }) => Recording.begin(end))
      .then(
        (made) => {
          recording.current = made;
          setState("on");
        },
        (failure: Error) => {
          setState("off");
          onError(failure.message);
        },
      );
  };
  const label = { off: "Dictate", on: "End the recording", busy: "Writing down…" }[state];
  return (
    <button type="button" class={`icon-button ${state === "on" ? "recording" : ""}`} aria-label={label} title={label} disabled={state === "busy"} onClick={state === "on" ? end : begin}>
      <Icon name={state === "on" ? "stop" : "microphone"} />
    </button>
  );
}

/** Reads an answer aloud. */
export function ReadAloud({ text }: { text: string }) {
  const [isOn, setOn] = useState(false);
  const [error, setError] = useState("");
  const isHere = useRef(true);
  useEffect(
    () => () => {
      isHere.current = false;
    },
    [],
  );
  const act = async () => {
    setError("");
    try {
      const { quiet, readAloud } = await voice();
      if (isOn) return quiet();
      setOn(true);
      await readAloud(markdown(text).textContent ?? "");
    } catch (failure) {
      if (isHere.current) setError((failure as Error).message);
    }
    if (isHere.current) setOn(false);
  };
  const label = isOn ? "Stop reading" : "Read aloud";
  return (
    <>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => void act()}>
        <Icon name={isOn ? "stop" : "speaker"} />
      </button>
      {error && (
        <span class="error" role="alert">
          {error}
        </span>
      )}
    </>
  );
}
