// A server stream that is kept open: it reconnects by itself with back-off until it is destroyed.
#pragma once

#include <functional>
#include <memory>

#include "common/error/error.h"

namespace tollgate {

// Destroying it ends the stream; no callback runs afterwards if destroyed on the loop it reports
// to.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

template <typename Message>
struct WatchHandler {
  // Each message, in order, on the client's loop.
  std::function<void(Message)> on_message;
  // The stream broke; a new one is being opened.
  std::function<void(const Error&)> on_lost;
};

}  // namespace tollgate
