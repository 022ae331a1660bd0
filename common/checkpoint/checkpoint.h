// Signed checkpoints anchor the heads of hash chains outside the database. Each is one line of an
// append-only file:
//
//   tollgate-checkpoint-1 NUMBER TIME PREVIOUS CHAIN:SEQUENCE:HEAD … SIGNATURE
//
// TIME is in Unix microseconds. PREVIOUS is the SHA-256 of the line before, HEAD the hash of the
// newest entry, SIGNATURE the Ed25519 signature of everything before it, all in hexadecimal. CHAIN
// is a workspace for the ledger, "payment/" and a workspace for its log of payments, "audit" for
// auth's audit log, and "audit/billing" for billing's. "archive/" and a workspace is the state of
// its archived months: SEQUENCE is the newest of them, HEAD the digest of the state. The first
// checkpoint of a process lists every chain, later ones those that have changed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tollgate {

inline constexpr std::string_view kArchiveChain = "archive/";
inline constexpr std::string_view kPaymentChain = "payment/";
inline constexpr std::string_view kBillingAuditChain = "audit/billing";

struct Anchor {
  std::string chain;
  int64_t sequence = 0;
  std::string head;  // 32 bytes
};

struct Checkpoint {
  int64_t number = 0;  // from 1, gapless
  int64_t at_us = 0;
  std::string previous = std::string(32, '\0');
  std::vector<Anchor> anchors;
};

// An Ed25519 key from a PEM file, as written by `openssl genpkey -algorithm ed25519`.
class SigningKey {
 public:
  static BasicResult<SigningKey, std::string> ReadPrivate(const std::string& file);
  // Reads the output of `openssl pkey -pubout`, or the public half of a private key.
  static BasicResult<SigningKey, std::string> ReadPublic(const std::string& file);

  std::string Sign(std::string_view text) const;  // 64 bytes
  bool Verify(std::string_view text, std::string_view signature) const;

 private:
  explicit SigningKey(std::shared_ptr<void> key) : key_(std::move(key)) {}
  std::shared_ptr<void> key_;  // EVP_PKEY
};

// Without the newline.
std::string EncodeCheckpoint(const Checkpoint& checkpoint, const SigningKey& key);
// Fails if the text is not a whole line of this form or the key did not sign it.
BasicResult<Checkpoint, std::string> DecodeCheckpoint(std::string_view line, const SigningKey& key);

}  // namespace tollgate
