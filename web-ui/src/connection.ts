// The WebSocket to the gateway that served this page, and to no other.

import { type EventFrame, RequestError } from "./protocol";

const PROTOCOL = 1;
/** What events name in place of a session that are about the list of sessions. */
const LIST = "";
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

export type Phase = "connecting" | "open" | "offline" | "refused";

interface Pending {
  frame: string;
  /** A repetition does no harm, so it is sent again on the next connection. */
  repeats: boolean;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** The close code of a gateway that refuses the token. */
const POLICY = 1008;
const PROTOCOL_ERROR = 1002;

export class Connection {
  phase: Phase = "connecting";
  /** Why the gateway refused the client. */
  refusal = "";
  /** The gateway's version; another one than at first means that this page is old. */
  version = "";
  isOutdated = false;
  onPhase: () => void = () => {};
  onEvent: (frame: EventFrame) => void = () => {};
  onGap: (session: string) => void = () => {};
  /** Called when a session looks different in the list. */
  onList: () => void = () => {};
  /** Called with each new connection, before requests are repeated. */
  onOpen: () => void = () => {};

  private socket: WebSocket | null = null;
  private pending = new Map<string, Pending>();
  private pause = FIRST_PAUSE;
  private timer = 0;
  private isClosed = false;

  constructor(private readonly token: string) {
    window.addEventListener("online", this.retryNow);
    document.addEventListener("visibilitychange", this.retryNow);
    this.connect();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    window.removeEventListener("online", this.retryNow);
    document.removeEventListener("visibilitychange", this.retryNow);
    this.socket?.close();
  }

  /** Sends a request. One that may be repeated survives a lost connection; `id` then names what it does. */
  request<T>(method: string, params: object = {}, repeated?: { id: string }): Promise<T> {
    const id = repeated?.id ?? crypto.randomUUID();
    const frame = JSON.stringify({ type: "request", id, method, params });
    return new Promise<T>((resolve, reject) => {
      if (this.phase !== "open" && !repeated) {
        reject(new RequestError("offline", "the gateway cannot be reached"));
        return;
      }
      this.pending.set(id, { frame, repeats: !!repeated, resolve: resolve as (result: unknown) => void, reject });
      if (this.phase === "open") this.socket?.send(frame);
    });
  }

  retryNow = (): void => {
    if (this.phase !== "offline" || document.visibilityState === "hidden") return;
    clearTimeout(this.timer);
    this.connect();
  };

  private connect(): void {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws`);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: "auth", token: this.token, protocol: PROTOCOL }));
    socket.onmessage = (message) => this.heed(JSON.parse(message.data as string));
    socket.onclose = (event) => this.lost(event);
  }

  // biome-ignore lint: a frame is anything until its type is known
  private heed(frame: any): void {
    switch (frame.type) {
      case "hello":
        this.isOutdated = this.version !== "" && this.version !== frame.version;
        this.version = frame.version;
        this.pause = FIRST_PAUSE;
        this.to("open");
        this.onOpen();
        for (const one of this.pending.values()) this.socket?.send(one.frame);
        break;
      case "response": {
        const pending = this.pending.get(frame.id);
        this.pending.delete(frame.id);
        if (frame.ok) pending?.resolve(frame.result);
        else pending?.reject(new RequestError(frame.error.class, frame.error.message));
        break;
      }
      case "event":
        if (frame.session === LIST) this.onList();
        else this.onEvent(frame as EventFrame);
        break;
      case "gap":
        if (frame.session === LIST) this.onList();
        else this.onGap(frame.session);
        break;
    }
  }

  private lost(event: CloseEvent): void {
    if (this.isClosed) return;
    for (const [id, pending] of this.pending) {
      if (pending.repeats) continue;
      this.pending.delete(id);
      pending.reject(new RequestError("offline", "the connection to the gateway was lost"));
    }
    if (event.code === POLICY || event.code === PROTOCOL_ERROR) {
      this.refusal = event.reason;
      this.to("refused");
      return;
    }
    this.to("offline");
    this.timer = window.setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  private to(phase: Phase): void {
    this.phase = phase;
    this.onPhase();
  }
}
