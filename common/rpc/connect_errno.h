// Keeps gRPC from taking a connection in progress for a failed one.
#pragma once

namespace tollgate::rpc {

// Call it before a process opens its first channel. gRPC 1.51 reads the errno of connect() only
// after it has taken a mutex of Abseil. The first mutex of a process that has to wait reads the
// processor's frequency from a file that most machines do not have, so errno is ENOENT and the call
// fails with "failed to connect to all addresses: No such file or directory". This reads the
// frequency now; Abseil does so once in a process. Thread-safe, and cheap when repeated.
void KeepErrnoOfConnect();

}  // namespace tollgate::rpc
