#include "services/cli/request_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/base/ascii.h"
#include "common/json/json.h"
#include "common/json/writer.h"

namespace tollgate::cli {
namespace {

namespace fs = std::filesystem;

// The id becomes part of a file name.
bool IsFileName(const std::string& id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return IsAlnum(c) || c == '-' || c == '_';
  });
}

std::optional<RequestJournal::Request> ReadFrom(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto document = json::Document::ParseView(text);
  if (!file || !document || !document->root().Find("request_id")) return std::nullopt;
  RequestJournal::Request request;
  request.id = document->root().Find("request_id").string();
  request.workspace = document->root().Find("workspace_id").string();
  request.what = document->root().Find("what").string();
  request.asked_us = document->root().Find("asked_us").Integer().value_or(0);
  return request;
}

bool WriteAll(int file, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = ::write(file, text.data() + at, text.size() - at);
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return ::fsync(file) == 0;
}

}  // namespace

std::string RequestJournal::DefaultFolder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/tollgate/requests";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') {
    return std::string(home) + "/.local/state/tollgate/requests";
  }
  return "";
}

std::string RequestJournal::PathOf(const std::string& id) const {
  return folder_ + "/" + id + ".json";
}

bool RequestJournal::Keep(const Request& request) const {
  if (folder_.empty() || !IsFileName(request.id)) return false;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return false;
  const std::string text = json::Writer()
                               .Text("request_id", request.id)
                               .Text("workspace_id", request.workspace)
                               .Text("what", request.what)
                               .Number("asked_us", request.asked_us)
                               .Done();
  const std::string path = PathOf(request.id);
  const std::string temporary = path + ".new";
  const int file = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool written = WriteAll(file, text + "\n");
  ::close(file);
  if (!written) return false;
  fs::rename(temporary, path, error);
  return !error;
}

void RequestJournal::Remove(const std::string& id) const {
  if (folder_.empty() || !IsFileName(id)) return;
  std::error_code ignored;
  fs::remove(PathOf(id), ignored);
}

std::optional<RequestJournal::Request> RequestJournal::Find(const std::string& id) const {
  if (folder_.empty() || !IsFileName(id)) return std::nullopt;
  return ReadFrom(PathOf(id));
}

std::optional<RequestJournal::Request> RequestJournal::FindSame(const std::string& workspace,
                                                                const std::string& what) const {
  if (folder_.empty()) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    auto request = ReadFrom(at->path());
    if (request && request->workspace == workspace && request->what == what) return request;
  }
  return std::nullopt;
}

}  // namespace tollgate::cli
