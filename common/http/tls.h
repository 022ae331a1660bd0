// TLS under a connection: what a server or a client shows and trusts, and the state of one
// connection. Ciphertext goes straight between OpenSSL and the socket, so an idle connection holds
// no buffers. Internal to common/http but for the two contexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "common/error/error.h"

struct ssl_st;
struct ssl_ctx_st;

namespace tollgate::http {

// One connection's side of TLS over a socket that it does not own. Nothing here blocks or suspends:
// what the socket does not give or take at once is the caller's to wait for. One loop's thread.
class TlsSession {
 public:
  enum class Status {
    kOk,
    kWantRead,   // again when the socket can be read
    kWantWrite,  // again when the socket can be written
    kEnd,        // the peer sends no more; it may still read
    kBroken,     // failure() says why
  };
  struct Step {
    Status status = Status::kOk;
    size_t bytes = 0;
  };

  TlsSession(ssl_ctx_st* context, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Which side this is, before anything else. Reads and writes do the handshake as they go.
  void BeServer();
  // host: what the peer's certificate must be for, a name or an address.
  bool BeClient(const std::string& host);
  // kOk once it is done.
  Status Handshake();
  bool established() const { return established_; }

  // At most one record.
  Step Read(char* to, size_t room);
  // Sends the parts as if they were one piece, as few records as they fit in. bytes were taken, and
  // must not be given again; when there are others, the next Write must begin with them.
  Step Write(std::initializer_list<std::string_view> parts);
  // Tells the peer that nothing more will come.
  void SendClose();
  // Whether the peer has said nothing that has not been read.
  bool Quiet();

  const std::string& failure() const { return failure_; }
  // The handshake failed because the peer spoke plain HTTP.
  bool peer_spoke_http() const { return peer_spoke_http_; }

 private:
  friend struct SocketBio;
  Status Outcome(int result);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  const int socket_;
  bool socket_at_end_ = false;
  bool established_ = false;
  bool peer_spoke_http_ = false;
  std::string failure_;
};

using TlsContextPointer = std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)>;

// A server's certificate. Files that change on disk (a renewed certificate) are taken into use with
// the next connection; running ones keep what they have. One thread at a time.
class TlsServerContext {
 public:
  // PEM: the certificate with those that lead to its authority, and the key without a passphrase.
  // The error names the setting and the file.
  static Result<std::shared_ptr<TlsServerContext>> Load(std::string certificate_file,
                                                        std::string private_key_file);

  std::unique_ptr<TlsSession> Accept(int socket);

 private:
  // What tells that a file is another one than before.
  struct Stamp {
    int64_t modified_ns[2] = {};
    uint64_t inode[2] = {};
    int64_t size[2] = {};
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  TlsServerContext(std::string certificate_file, std::string private_key_file);
  Stamp LookAtFiles() const;
  Result<void> LoadFiles();
  void TakeRenewedFiles();

  const std::string certificate_file_;
  const std::string private_key_file_;
  Stamp stamp_;
  int64_t looked_us_ = 0;
  TlsContextPointer context_;
};

// What a client trusts. Thread-safe once made.
class TlsClientContext {
 public:
  // The system's authorities, and those of a PEM file if its name is not empty.
  static Result<std::shared_ptr<const TlsClientContext>> Make(const std::string& authority_file);

  // Null when OpenSSL has no memory for it, or the host can be none.
  std::unique_ptr<TlsSession> Connect(int socket, const std::string& host) const;

 private:
  explicit TlsClientContext(TlsContextPointer context) : context_(std::move(context)) {}
  TlsContextPointer context_;
};

}  // namespace tollgate::http
