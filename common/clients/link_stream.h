// The client's state of one request on a link.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate {

struct LinkStream;
using LinkStreamPtr = std::shared_ptr<LinkStream>;

// Owner of a request until it is over: the queue for a connection, or a link.
class LinkStreamHolder {
 public:
  // Drops the request and all its queued data: the caller left.
  virtual void Cancel(LinkStream& stream) = 0;
  // The caller took this many bytes of events.
  virtual void Grant(LinkStream& stream, int64_t bytes) = 0;

 protected:
  ~LinkStreamHolder() = default;
};

// Shared by a Generation and its holder.
struct LinkStream {
  // Approximate bytes of a request besides its body.
  static constexpr int64_t kRequestBytes = 1024;

  LinkStream(Loop& loop, inference::v1::GenerateRequest request)
      : request(std::move(request)), arrived(loop) {}

  // Bytes that wait to be sent.
  int64_t waiting_bytes() const {
    return (stage == Stage::kQueued ? kRequestBytes : 0) +
           static_cast<int64_t>(request.members_json().size() - body_sent);
  }
  // Sets the state before it notifies, so that the caller reads a consistent state.
  void Fail(Error reason) {
    over = true;
    holder = nullptr;
    error = std::move(reason);
    FreeRequest();
    arrived.NotifyAll();
  }
  void FreeRequest() {
    request = inference::v1::GenerateRequest();
    body_sent = 0;
    partial_event = std::string();
  }

  uint64_t id = 0;
  LinkStreamHolder* holder = nullptr;  // null after it is over
  enum class Stage { kQueued, kSendingBody, kSent } stage = Stage::kQueued;
  inference::v1::GenerateRequest request;    // until it is sent
  size_t body_sent = 0;                      // bytes of its members_json
  std::list<LinkStreamPtr>::iterator place;  // in the list of its stage; invalid once it is sent
  Loop::TimerId timer = 0;                   // set while it waits for a connection
  std::vector<inference::v1::Event> events;
  std::string partial_event;  // the pieces so far of a large event
  int64_t ungranted_bytes = 0;
  bool sent = false;      // the router has all of it
  bool answered = false;  // at least one frame of the answer has arrived
  bool over = false;      // End received, link broken, or cancelled
  std::optional<Error> error;
  Notify arrived;
};

}  // namespace tollgate
