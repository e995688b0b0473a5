// The way in: the owner pastes the token, or opens a link that works once. No address ever holds a token.

import { useState } from "preact/hooks";

const KEY = "myclaw.token";
/** The device that this browser is since it was signed in by a link. */
const DEVICE = "myclaw.device";

/** The token of an earlier login: of this tab, or of this browser if the owner chose so. */
export function storedToken(): string | null {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

export function storeToken(token: string, isKept: boolean): void {
  forgetToken();
  (isKept ? localStorage : sessionStorage).setItem(KEY, token);
}

export function forgetToken(): void {
  for (const key of [KEY, DEVICE]) {
    sessionStorage.removeItem(key);
    localStorage.removeItem(key);
  }
}

/** The secret of a link that signs in. It is taken out of the address, and so out of the history. */
export function takeSecret(): string | null {
  const secret = location.hash.match(/^#\/sign-in\/([0-9a-f]{32,128})$/)?.[1] ?? null;
  if (secret) history.replaceState(null, "", "/");
  return secret;
}

/** Signs this browser in with the secret of a link. The token of the device that it becomes. */
export async function signInWith(secret: string): Promise<string> {
  const browser = navigator.userAgent.match(/Firefox|Edg|OPR|Chrome|Safari/)?.[0] ?? "browser";
  const name = `${browser}, ${new Date().toISOString().slice(0, 10)}`;
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/api/devices/sign-in", { method: "POST", headers, body: JSON.stringify({ secret, name }) }).catch(() => {
    throw new Error("the gateway cannot be reached");
  });
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(body?.error?.message ?? `the gateway answered ${answer.status}`);
  storeToken(body.token, true);
  localStorage.setItem(DEVICE, body.id);
  return body.token;
}

/** Ends the access of this browser, if a link gave it. A token that was pasted stays valid for others. */
export function endAccess(): void {
  const device = localStorage.getItem(DEVICE);
  if (!device) return;
  const headers = { Authorization: `Bearer ${storedToken()}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ name: device });
  void fetch("/api/devices/revoke", { method: "POST", headers, body, keepalive: true }).catch(() => {});
}

export function Login({ refusal, onToken }: { refusal: string; onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  const [isKept, setKept] = useState(false);
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const trimmed = token.trim();
          if (!trimmed) return;
          storeToken(trimmed, isKept);
          onToken(trimmed);
        }}
      >
        <img src="/icon.svg" alt="" width="56" height="56" />
        <h1>MyClaw</h1>
        <p>
          Open the link that <code>myclaw gateway link</code> prints on the gateway's machine. Or paste the token of this gateway, or that of a
          device; <code>myclaw gateway status</code> says where the first one is.
        </p>
        <label>
          Token
          <input
            type="password"
            value={token}
            autocomplete="current-password"
            spellcheck={false}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
          Stay signed in on this browser
        </label>
        {refusal && (
          <p class="error" role="alert">
            {refusal}
          </p>
        )}
        <button class="primary" type="submit" disabled={!token.trim()}>
          Sign in
        </button>
      </form>
    </main>
  );
}
