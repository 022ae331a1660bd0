// Log lines that libraries write to standard error themselves.
#pragma once

namespace tollgate::host {

// Turns all further lines of gRPC, Protocol Buffers and Abseil into log lines of this process:
// JSON, redacted, and written without blocking the calling thread. Call it once, before these
// libraries are used.
void LogLibraryLines();

}  // namespace tollgate::host
