// TLS for connections: the certificate of a server, the trusted authorities of a client, and the
// state of one connection. OpenSSL reads and writes the socket itself, so an idle connection has no
// buffers. Internal to common/http except for the two contexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"

struct ssl_st;
struct ssl_ctx_st;

namespace tollgate::http {

// The TLS state of one connection over a socket that it does not own. Nothing here blocks or
// suspends: the caller waits until the socket is ready. Used only on the thread of one loop.
class TlsSession {
 public:
  enum class Status {
    kOk,
    kWantRead,   // call again when the socket is readable
    kWantWrite,  // call again when the socket is writable
    kEnd,        // the peer has closed its sending side; it may still read
    kBroken,     // see failure()
  };
  struct Step {
    Status status = Status::kOk;
    size_t bytes = 0;
  };

  TlsSession(ssl_ctx_st* context, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Selects the side; call one of them first. Reads and writes perform the handshake as needed.
  void SetServerSide();
  // host: the name or address that the peer's certificate must have. Returns false if it is invalid
  // or memory is exhausted.
  bool SetClientSide(const std::string& host);
  // Returns kOk once the handshake is complete.
  Status Handshake();
  bool established() const { return established_; }

  // Reads at most one record.
  Step Read(char* to, size_t room);
  // Sends the concatenated parts in as few records as possible. Step::bytes is the number of
  // accepted bytes. If that is not all, the next Write must start with the first byte after them.
  Step Write(std::initializer_list<std::string_view> parts);
  // Sends the close_notify alert.
  void SendClose();
  // Whether there is neither unread data from the peer nor an end of the connection.
  bool HasNothingToRead();

  const std::string& failure() const { return failure_; }
  // Whether the handshake failed because the peer sent plain HTTP.
  bool peer_sent_http() const { return peer_sent_http_; }

 private:
  friend struct SocketBio;
  Status Outcome(int result);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  const int socket_;
  bool socket_at_end_ = false;
  bool established_ = false;
  bool peer_sent_http_ = false;
  std::string failure_;
};

using TlsContextPointer = std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)>;

// PEM files: the certificate with the chain to its authority, and the key without a passphrase.
struct CertificateFiles {
  std::string certificate_file;
  std::string private_key_file;
};

// The certificates of a server. Changed files (a renewed certificate) apply to new connections
// only. Thread-safe. Must outlive its sessions.
class TlsServerContext {
 public:
  // A client that names a host gets the first certificate that is valid for it, otherwise the first
  // one. The error names the setting and the file. The clock outlives the context.
  static Result<std::shared_ptr<TlsServerContext>> Load(std::vector<CertificateFiles> files,
                                                        const Clock& clock = SystemClock::Get());

  std::unique_ptr<TlsSession> Accept(int socket);

 private:
  friend struct ServerName;
  // Metadata of the files, to detect changes.
  struct Stamp {
    int64_t modified_ns[2] = {};
    uint64_t inode[2] = {};
    int64_t size[2] = {};
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Certificate {
    CertificateFiles files;
    Stamp stamp;
    int64_t expiry_s = 0;
    int64_t loaded_us = 0;
    TlsContextPointer context;
  };
  explicit TlsServerContext(const Clock& clock) : clock_(clock) {}
  static Stamp StatFiles(const CertificateFiles& files);
  Result<void> LoadFiles(Certificate& certificate);
  // A certificate whose files changed, and each one daily: a new context has a new key for tickets.
  void Reload();
  void ReportExpiry() const;

  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Certificate> certificates_;
  int64_t checked_us_ = 0;
};

// The trusted authorities of a client. Thread-safe after construction.
class TlsClientContext {
 public:
  // Trusts the authorities of the system, and those of a PEM file unless its name is empty.
  static Result<std::shared_ptr<const TlsClientContext>> Make(const std::string& authority_file);

  // Null if the host is invalid or OpenSSL is out of memory.
  std::unique_ptr<TlsSession> Connect(int socket, const std::string& host) const;

 private:
  explicit TlsClientContext(TlsContextPointer context) : context_(std::move(context)) {}
  TlsContextPointer context_;
};

}  // namespace tollgate::http
