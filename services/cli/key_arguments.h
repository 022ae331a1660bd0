// Arguments of the key commands: which key, and which settings.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/money/money.h"
#include "services/cli/admin_cells.h"
#include "services/cli/expiry.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {

namespace pb = tollgate::admin::v1;

// A key on the command line: its resource name, or its id with or without its workspace.
struct KeyArgument {
  std::string key, workspace;

  void AddTo(CLI::App& command) {
    command.add_option("key", key, "Key id (see: tollgate key list), or its full name")->required();
    command.add_option("-w,--workspace", workspace, "Workspace of the key; default: searched");
  }
  // Returns the resource name, or "" after reporting a failure.
  std::string Name(Invocation& invocation) const {
    if (key.find('/') != std::string::npos) return key;
    if (!workspace.empty()) return "workspaces/" + workspace + "/keys/" + key;
    const auto workspaces = invocation.Workspaces();
    const auto keys = invocation.Keys();
    if (!workspaces || !keys) return "";
    pb::ListWorkspacesRequest all;
    all.set_page_size(200);
    while (true) {
      pb::ListWorkspacesResponse page;
      if (!invocation.Call("auth", [&](auto& context) {
            return workspaces->ListWorkspaces(&context, all, &page);
          })) {
        return "";
      }
      for (const pb::Workspace& one : page.workspaces()) {
        pb::ListKeysRequest query;
        query.set_parent(one.name());
        query.set_query(key);
        pb::ListKeysResponse found;
        if (!invocation.Call(
                "auth", [&](auto& context) { return keys->ListKeys(&context, query, &found); })) {
          return "";
        }
        for (const pb::Key& candidate : found.keys()) {
          if (LastPart(candidate.name()) == key) return candidate.name();
        }
      }
      if (page.next_page_token().empty()) break;
      all.set_page_token(page.next_page_token());
    }
    invocation.ReportError("not_found", "there is no key \"" + key + "\"; see: tollgate key list");
    return "";
  }
};

// Settings of a key, and which of them were given.
struct Settings {
  pb::Key key;
  std::vector<std::string> fields;
  std::string expires, quota;
  std::vector<std::string> models, addresses, labels;

  void AddTo(CLI::App& command) {
    command.add_option_function<std::string>(
        "--name",
        [this](const std::string& name) {
          key.set_display_name(name);
          fields.push_back("display_name");
        },
        "Display name");
    command.add_option("--model", models,
                       "Allow only this model, or namespace/*; repeatable; all: every model");
    command.add_option("--address", addresses,
                       "Allow only this client address or network; repeatable; all: every address");
    command.add_option("--expires", expires,
                       "30d, 12h, 2027-01-31, 2027-01-31T12:00:00Z (UTC) or never");
    command.add_option("--quota", quota,
                       "The most that the key may spend per UTC month, in USD, or none");
    command.add_option("--label", labels, "name=value; repeatable; none: no labels");
    AddLimit(command, "--requests-per-minute", "requests_per_minute", "Requests per minute",
             &pb::KeyLimits::set_requests_per_minute);
    AddLimit(command, "--tokens-per-minute", "tokens_per_minute", "Tokens per minute",
             &pb::KeyLimits::set_tokens_per_minute);
    AddLimit(command, "--concurrent-requests", "concurrent_requests", "Concurrent requests",
             &pb::KeyLimits::set_concurrent_requests);
  }
  // Parses the arguments. Reports an invalid value and returns false.
  bool Read(Invocation& invocation) {
    if (!models.empty()) {
      fields.push_back("allowed_models");
      if (models.front() != "all")
        key.mutable_allowed_models()->Assign(models.begin(), models.end());
    }
    if (!addresses.empty()) {
      fields.push_back("allowed_addresses");
      if (addresses.front() != "all") {
        key.mutable_allowed_addresses()->Assign(addresses.begin(), addresses.end());
      }
    }
    if (!labels.empty()) fields.push_back("labels");
    for (const std::string& label : labels) {
      const size_t equals = label.find('=');
      if (label == "none" && labels.size() == 1) break;
      if (equals == std::string::npos) {
        invocation.ReportError("bad_option", "--label must be name=value, or none");
        return false;
      }
      (*key.mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
    }
    return ReadExpiry(invocation) && ReadQuota(invocation);
  }

 private:
  void AddLimit(CLI::App& command, const char* option, const char* field, const std::string& help,
                void (pb::KeyLimits::*set)(int64_t)) {
    command
        .add_option_function<int64_t>(
            option,
            [this, field, set](const int64_t& value) {
              (key.mutable_limits()->*set)(value);
              fields.push_back(std::string("limits.") + field);
            },
            help + "; 0: no limit")
        ->check(CLI::NonNegativeNumber);
  }
  bool ReadExpiry(Invocation& invocation) {
    if (expires.empty()) return true;
    const auto at = ParseExpiry(expires, SystemClock::Get().WallUs());
    if (!at) {
      invocation.ReportError(
          "bad_option",
          "--expires must be a time in the future, such as 30d, 12h, 2027-01-31 or "
          "2027-01-31T12:00:00Z (UTC), or never");
      return false;
    }
    fields.push_back("expire_time");
    if (*at == 0) return true;
    key.mutable_expire_time()->set_seconds(*at / 1'000'000);
    key.mutable_expire_time()->set_nanos(static_cast<int32_t>(*at % 1'000'000 * 1000));
    return true;
  }
  bool ReadQuota(Invocation& invocation) {
    if (quota.empty()) return true;
    fields.push_back("monthly_quota_usd");
    if (quota == "none") return true;
    const auto nano = ParseDecimalUsdToNano(quota);
    if (!nano || *nano < 0) {
      invocation.ReportError("bad_option", "--quota must be an amount in USD such as 5, or none");
      return false;
    }
    key.set_monthly_quota_usd(quota);
    return true;
  }
};

}  // namespace tollgate::cli
