// Loaded before each test file: a connection to anything but this machine fails, so that a client
// which sends telemetry, or ignores its base URL, fails the test.
import net from "node:net";

const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  const host = options?.host ?? (typeof args[1] === "string" ? args[1] : "localhost");
  if (!options?.path && !["127.0.0.1", "localhost", "::1"].includes(host)) {
    throw new Error(`a client wanted to connect to ${host}`);
  }
  return connect.apply(this, args);
};
