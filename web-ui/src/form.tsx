// What forms have in common.

import { useState } from "preact/hooks";
import { visible } from "./text";

type Work = (form: HTMLFormElement) => Promise<void>;

/** A form that shows that its work goes on, and what went wrong. */
export function useWork(): [boolean, string, (work: Work) => (event: SubmitEvent) => void] {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const submit = (work: Work) => (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    work(event.currentTarget as HTMLFormElement)
      .catch((failure: Error) => setError(failure.message))
      .finally(() => setBusy(false));
  };
  return [isBusy, error, submit];
}

export function Failure({ error }: { error: string }) {
  if (!error) return null;
  return (
    <p class="error" role="alert">
      {visible(error)}
    </p>
  );
}
