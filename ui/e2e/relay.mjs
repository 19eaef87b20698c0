// A relay between the browser and an inbox, whose connections a test can cut.
import { connect, createServer } from "node:net";

export class Relay {
  constructor(port) {
    this.sockets = new Set();
    this.isCut = false;
    this.server = createServer((socket) => {
      if (this.isCut) return socket.destroy();
      const onward = connect(port, "127.0.0.1");
      for (const [one, other] of [[socket, onward], [onward, socket]]) {
        this.sockets.add(one);
        one.pipe(other);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  async start() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  /** Cuts what is there, and lets nothing through until it is mended. */
  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isCut = false;
  }

  async stop() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
