// Lines that libraries write to standard error by themselves.
#pragma once

namespace tollgate::host {

// From here on the lines of gRPC, Protocol Buffers and Abseil are log lines of this process: JSON,
// redacted, and written without holding up the thread that writes them. Call it once, before these
// libraries are used.
void LogLibraryLines();

}  // namespace tollgate::host
