// The microphone and the loudspeaker. It is loaded when one of them is used.

import { fetchWithToken } from "./api";

/** Samples a second: what those who listen use. */
const RATE = 16_000;
/** Longest recording, in seconds: what the gateway takes at once. */
const LONGEST = 180;

/** A recording that goes on. */
export class Recording {
  private readonly parts: Blob[] = [];

  private constructor(
    private readonly stream: MediaStream,
    private readonly recorder: MediaRecorder,
  ) {
    recorder.ondataavailable = (event) => this.parts.push(event.data);
  }

  /** Begins one. `onFull` is called when it is as long as it may be. */
  static async begin(onFull: () => void): Promise<Recording> {
    if (!navigator.mediaDevices) throw new Error("Browsers record on encrypted pages and on this machine only: reach the gateway by HTTPS.");
    let stream: MediaStream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (failure) {
      const name = (failure as DOMException).name;
      if (name === "NotAllowedError") throw new Error("This browser does not let the page hear the microphone; allow it in its settings for this address, then try again.");
      throw new Error(name === "NotFoundError" ? "There is no microphone." : `The microphone cannot be used: ${(failure as Error).message}`);
    }
    const made = new Recording(stream, new MediaRecorder(stream));
    made.recorder.start();
    setTimeout(() => made.recorder.state === "recording" && onFull(), LONGEST * 1_000);
    return made;
  }

  /** Ends it, and lets the microphone go. */
  private stop(): Promise<Blob> {
    const stopped = new Promise<void>((done) => {
      this.recorder.onstop = () => done();
    });
    if (this.recorder.state !== "inactive") this.recorder.stop();
    return stopped.then(() => {
      this.drop();
      return new Blob(this.parts, { type: this.recorder.mimeType });
    });
  }

  /** Lets the microphone go. */
  drop(): void {
    for (const track of this.stream.getTracks()) track.stop();
  }

  /** Ends it; what was said. */
  async text(): Promise<string> {
    const bytes = await (await this.stop()).arrayBuffer();
    const audio = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes).catch(() => {
      throw new Error("Nothing was recorded; try again.");
    });
    const answer = await fetchWithToken("/api/speech/listen", { method: "POST", headers: { "Content-Type": "audio/wav" }, body: wave(audio) });
    return (await answer.json()).text;
  }
}

/** One channel of 16 bits, which everybody who listens knows. */
function wave(audio: AudioBuffer): Blob {
  const channels = Array.from({ length: audio.numberOfChannels }, (_, number) => audio.getChannelData(number));
  const length = Math.min(audio.length, LONGEST * RATE);
  const bytes = new DataView(new ArrayBuffer(44 + 2 * length));
  const write = (at: number, text: string) => [...text].forEach((char, number) => bytes.setUint8(at + number, char.charCodeAt(0)));
  write(0, "RIFF");
  bytes.setUint32(4, 36 + 2 * length, true);
  write(8, "WAVEfmt ");
  bytes.setUint32(16, 16, true);
  bytes.setUint16(20, 1, true);
  bytes.setUint16(22, 1, true);
  bytes.setUint32(24, RATE, true);
  bytes.setUint32(28, 2 * RATE, true);
  bytes.setUint16(32, 2, true);
  bytes.setUint16(34, 16, true);
  write(36, "data");
  bytes.setUint32(40, 2 * length, true);
  for (let at = 0; at < length; at++) {
    const mixed = channels.reduce((sum, one) => sum + (one[at] ?? 0), 0) / channels.length;
    bytes.setInt16(44 + 2 * at, Math.max(-1, Math.min(1, mixed)) * 32_767, true);
  }
  return new Blob([bytes], { type: "audio/wav" });
}

let playing: { audio: HTMLAudioElement; end: () => void } | null = null;

/** Reads a text aloud; ready when that is over. What is read already ends. */
export async function readAloud(text: string): Promise<void> {
  quiet();
  const answer = await fetchWithToken("/api/speech/speak", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) });
  const address = URL.createObjectURL(await answer.blob());
  const audio = new Audio(address);
  try {
    await new Promise<void>((done, fail) => {
      playing = { audio, end: done };
      audio.onended = () => done();
      audio.onerror = () => fail(new Error("This browser cannot play what was made."));
      audio.play().catch((failure: Error) => fail(new Error(`It cannot be played: ${failure.message}`)));
    });
  } finally {
    if (playing?.audio === audio) playing = null;
    audio.pause();
    URL.revokeObjectURL(address);
  }
}

/** Ends what is read. */
export function quiet(): void {
  playing?.end();
}
