// The way in: the owner pastes the token. It comes from nowhere else, in particular from no address.

import { useState } from "preact/hooks";

const KEY = "myclaw.token";

/** The token of an earlier login: of this tab, or of this browser if the owner chose so. */
export function storedToken(): string | null {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

export function storeToken(token: string, isKept: boolean): void {
  forgetToken();
  (isKept ? localStorage : sessionStorage).setItem(KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
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
          Paste the token of this gateway, or that of a device. <code>myclaw gateway status</code> says where the first one is.
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
