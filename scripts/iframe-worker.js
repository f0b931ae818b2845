// Search for pages that are opened as files: browsers refuse to start their worker, so it runs in a hidden frame.
// The generator would load such a script from another host, unless one of this name is configured (scripts/site.py).
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.onmessage = this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (message) => {
        const data = structuredClone(message); // as between threads: either side changes what it got
        setTimeout(() => this.onmessage?.({ data }));
      };
      const script = inside.document.createElement("script");
      script.src = new URL(address, location.href);
      this.loaded = new Promise((resolve) => { script.onload = resolve; });
      script.onerror = (error) => this.onerror?.(error);
      inside.document.body.append(script);
    }

    postMessage(message) {
      const data = structuredClone(message);
      this.loaded.then(() => this.frame.contentWindow.onmessage({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
