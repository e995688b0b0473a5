// Requests to the gateway over HTTP, with the token in a header.

import { storedToken } from "./login";
import { RequestError } from "./protocol";

/** Sends a request to the gateway that served this page, and to no other. */
export async function api<T>(path: string, options: { method?: string; body?: unknown; signal?: AbortSignal } = {}): Promise<T> {
  const headers: Record<string, string> = { Authorization: `Bearer ${storedToken()}` };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new RequestError("offline", "the gateway cannot be reached");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) {
    const error = new RequestError(body?.error?.class ?? "internal", body?.error?.message ?? `the gateway answered ${response.status}`);
    error.details = body?.error;
    throw error;
  }
  return body as T;
}

/** Fetches what is no JSON, with the token in a header. */
export async function fetchWithToken(path: string, options: { method?: string; headers?: Record<string, string>; body?: BodyInit } = {}): Promise<Response> {
  const headers = { ...options.headers, Authorization: `Bearer ${storedToken()}` };
  const response = await fetch(path, { ...options, headers }).catch(() => {
    throw new RequestError("offline", "the gateway cannot be reached");
  });
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new Error(body?.error?.message ?? `the gateway answered ${response.status}`);
  }
  return response;
}

/** Hands bytes to the browser as a file. */
export function handToBrowser(bytes: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(bytes);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
