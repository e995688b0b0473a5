// Dictation and reading aloud: what the gateway offers.

import { api } from "./api";
import { useEffect, useState } from "preact/hooks";

export interface Speech {
  listens: boolean;
  speaks: boolean;
}

const NOTHING: Speech = { listens: false, speaks: false };
/** How long an answer counts, in milliseconds: the config may change. */
const KEPT = 60_000;
let asked: { at: number; answer: Promise<Speech> } | null = null;

/** What is configured. Nothing is offered before that is known. */
export function useSpeech(): Speech {
  const [speech, setSpeech] = useState(NOTHING);
  useEffect(() => {
    if (!asked || Date.now() - asked.at > KEPT) asked = { at: Date.now(), answer: api<Speech>("/api/speech") };
    asked.answer.then(setSpeech, () => {
      asked = null;
    });
  }, []);
  return speech;
}
