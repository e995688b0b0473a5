// Whether a first set-up is needed. The steps are in a file of their own, which few need.

import { useEffect, useState } from "preact/hooks";
import { api } from "./api";

export interface Provider {
  name: string;
  needsKey: boolean;
  needsAddress: boolean;
  model: string | null;
  hasKey: boolean;
}

export interface SetupState {
  needed: boolean;
  model: string | null;
  problem: string | null;
  version: string;
  workspace: string;
  providers: Provider[];
}

const SKIPPED = "myclaw.setup-skipped";

/** Whether the first set-up is to be shown: no model can be used, and the owner did not skip it in this tab. */
export function useSetup(phase: string): [SetupState | null, () => void] {
  const [state, setState] = useState<SetupState | null>(null);
  const [isOver, setOver] = useState(() => sessionStorage.getItem(SKIPPED) !== null);
  useEffect(() => {
    if (phase !== "open" || isOver || state) return;
    api<SetupState>("/api/setup")
      .then(setState)
      .catch(() => {});
  }, [phase]);
  const end = () => {
    sessionStorage.setItem(SKIPPED, "");
    setOver(true);
  };
  return [state?.needed && !isOver ? state : null, end];
}
