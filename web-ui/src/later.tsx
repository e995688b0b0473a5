// Parts of the page that are loaded when they are first shown, so that a first message waits for little.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A component from a file of its own. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Later(props: P) {
    const [failed, setFailed] = useState(false);
    const [, drawAgain] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          drawAgain(true);
        },
        () => setFailed(true),
      );
    }, []);
    if (loaded) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    if (!failed) return <p class="muted center">Reading…</p>;
    // The file is of another version of the program, or the gateway is away. A browser does not ask again by itself.
    return (
      <p class="failure center" role="alert">
        This part of the page could not be loaded.{" "}
        <button type="button" class="link" onClick={() => location.reload()}>
          Load the page again
        </button>
      </p>
    );
  };
}
