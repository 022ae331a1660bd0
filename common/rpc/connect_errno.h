// Works around a race in gRPC that reports a connection in progress as failed.
#pragma once

namespace tollgate::rpc {

// Call it before a process opens its first channel. gRPC 1.51 reads the errno of connect() only
// after it has locked a mutex of Abseil. The first contended mutex of a process makes Abseil read
// the processor's frequency from a file that most machines do not have. Then errno is ENOENT and
// the call fails with "failed to connect to all addresses: No such file or directory". This
// function reads the frequency in advance; Abseil does so once per process. Thread-safe, and cheap
// when repeated.
void KeepErrnoOfConnect();

}  // namespace tollgate::rpc
