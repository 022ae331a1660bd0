// Support sessions: operators of the platform view a workspace as its owner, read-only, for at most
// an hour. Each call is in the workspace's audit log before it is answered. Thread-safe. Every call
// blocks on the database.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/people/storage/people_store.h"

namespace tollgate::people {

// Prefix of the secrets of support sessions.
inline constexpr std::string_view kSupportPrefix = "tgs_";

struct SupportSession {
  std::string id;
  std::string workspace;
  std::string user_id;  // the operator; empty: the operator's command line
  std::string actor;
  std::string reason;
  int64_t created_us = 0;
  int64_t expires_us = 0;  // or the time when it was ended
  int64_t uses = 0;
  int64_t used_us = 0;  // 0: never
};

class SupportStore {
 public:
  static constexpr int64_t kLongestUs = int64_t{3600} * 1'000'000;
  // Bounds the audit events of a program that reads in a loop.
  static constexpr int64_t kMostUses = 5'000;

  explicit SupportStore(PeopleDatabase& database) : database_(database) {}

  struct Made {
    SupportSession session;
    std::string secret;  // empty in a repeated answer
  };
  // session: workspace, user_id, reason and expires_us (0: the longest time).
  AdminResult<Made> Create(const Actor& actor, SupportSession session,
                           const std::string& request_id);
  // Newest first, after this position ("" for the start).
  AdminResult<std::vector<SupportSession>> List(const std::string& workspace, int limit,
                                                const std::string& after);
  AdminResult<SupportSession> End(const Actor& actor, const std::string& workspace,
                                  const std::string& id);
  // Returns whom the secret stands for, after the use is in the audit log. nullopt: invalid,
  // expired, used kMostUses times, or its operator lost the role.
  AdminResult<std::optional<common::v1::Identity>> Use(std::string_view secret,
                                                       const std::string& address,
                                                       std::string_view use);

 private:
  PeopleDatabase& database_;
};

}  // namespace tollgate::people
