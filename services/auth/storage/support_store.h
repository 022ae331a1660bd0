// Support sessions: operators of the platform who look at a workspace as its owner, for at most an
// hour, and change nothing. The workspace's audit log has each call before it is answered.
// Thread-safe; every call blocks on the database.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/auth/storage/people_store.h"

namespace tollgate::auth {

// Secrets of support sessions begin with it.
inline constexpr std::string_view kSupportPrefix = "tgs_";

struct SupportSession {
  std::string id;
  std::string workspace;
  std::string user_id;  // whose it is; empty: of the operator's command line
  std::string actor;
  std::string reason;
  int64_t created_us = 0;
  int64_t expires_us = 0;  // or when it was ended
  int64_t uses = 0;
  int64_t used_us = 0;  // 0: never
};

class SupportStore {
 public:
  static constexpr int64_t kLongestUs = int64_t{3600} * 1'000'000;
  // A program that reads in a loop must not fill the audit log.
  static constexpr int64_t kMostUses = 5'000;

  explicit SupportStore(PeopleDatabase& database) : database_(database) {}

  struct Made {
    SupportSession session;
    std::string secret;  // empty in a repeated answer
  };
  // session: workspace, user_id, reason and expires_us (0: the longest time).
  AdminResult<Made> Create(const Actor& actor, SupportSession session,
                           const std::string& request_id);
  // Newest first, after the position ("" at the start).
  AdminResult<std::vector<SupportSession>> List(const std::string& workspace, int limit,
                                                const std::string& after);
  AdminResult<SupportSession> End(const Actor& actor, const std::string& workspace,
                                  const std::string& id);
  // Who the secret stands for, after the use is in the audit log. Nothing: it is not (or no longer)
  // good, for example since its operator is none any more.
  AdminResult<std::optional<common::v1::Identity>> Use(std::string_view secret,
                                                       const std::string& address,
                                                       std::string_view use);

 private:
  PeopleDatabase& database_;
};

}  // namespace tollgate::auth
