// Stores requests that move money from before they are sent until their result is known, so that a
// repeated command continues with the same request id instead of moving money twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tollgate::cli {

class RequestJournal {
 public:
  struct Request {
    std::string id;
    std::string workspace;
    // What was requested, for example "credit add 5 reason". Requests with the same text are the
    // same request.
    std::string what;
    int64_t asked_us = 0;
  };

  // folder: holds one file per request; created when needed.
  explicit RequestJournal(std::string folder) : folder_(std::move(folder)) {}
  // $XDG_STATE_HOME/tollgate/requests, or ~/.local/state/tollgate/requests; "" without either.
  static std::string DefaultFolder();

  // Returns false if the file cannot be written. On success it is on disk when this returns.
  bool Keep(const Request& request) const;
  void Remove(const std::string& id) const;
  std::optional<Request> Find(const std::string& id) const;
  // Finds an earlier request for the same whose result is unknown.
  std::optional<Request> FindSame(const std::string& workspace, const std::string& what) const;

 private:
  std::string PathOf(const std::string& id) const;

  const std::string folder_;
};

}  // namespace tollgate::cli
