#include "services/billing/verify/verify_progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "common/base/crypto.h"

namespace tollgate::billing {
namespace {

constexpr std::string_view kMagic = "tollgate verify 2\n";

}  // namespace

BasicResult<std::optional<VerifyProgress>, std::string> LoadProgress(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::optional<VerifyProgress>();
  // A resumed run believes its balances, and anybody can compute the digest.
  struct stat place{};
  if (::stat(file.c_str(), &place) != 0 || place.st_uid != ::geteuid() ||
      (place.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail{"the state file " + file +
                " could have been changed by others; remove it to verify from the start"};
  }
  std::stringstream text;
  text << in.rdbuf();
  const std::string bytes = text.str();
  const std::string damaged =
      "the state file " + file + " is damaged; remove it to verify from the start";
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 32) return Fail{damaged};
  const std::string_view body =
      std::string_view(bytes).substr(kMagic.size(), bytes.size() - kMagic.size() - 32);
  if (Sha256(body) != std::string_view(bytes).substr(bytes.size() - 32)) return Fail{damaged};
  FieldReader fields(body);
  VerifyProgress progress;
  progress.only = fields.Text();
  progress.shard = fields.Int();
  progress.workspace = fields.Text();
  const std::string state = fields.Text();
  if (!state.empty()) {
    progress.state = DecodeState(state);
    if (!progress.state) return Fail{damaged};
  }
  VerifyReport& report = progress.report;
  for (int64_t* count : {&report.workspaces, &report.entries, &report.holds, &report.usage_records,
                         &report.commands}) {
    *count = fields.Int();
  }
  for (int64_t left = fields.Int(); left > 0 && fields.ok(); --left) {
    report.violations.push_back(fields.Text());
  }
  if (!fields.done()) return Fail{damaged};
  return std::optional<VerifyProgress>(std::move(progress));
}

std::string SaveProgress(const std::string& file, const VerifyProgress& progress) {
  FieldWriter fields;
  fields.Text(progress.only);
  fields.Int(progress.shard);
  fields.Text(progress.workspace);
  fields.Text(progress.state ? EncodeState(*progress.state) : "");
  const VerifyReport& report = progress.report;
  for (const int64_t count :
       {report.workspaces, report.entries, report.holds, report.usage_records, report.commands}) {
    fields.Int(count);
  }
  fields.Int(static_cast<int64_t>(report.violations.size()));
  for (const std::string& violation : report.violations) fields.Text(violation);
  const std::string body = fields.Take();
  const std::string next = file + ".next";
  {
    std::ofstream out(next, std::ios::binary | std::ios::trunc);
    out << kMagic << body << Sha256(body);
    if (!out.flush()) return "cannot write " + next;
  }
  if (std::rename(next.c_str(), file.c_str()) != 0) return "cannot replace " + file;
  return "";
}

}  // namespace tollgate::billing
