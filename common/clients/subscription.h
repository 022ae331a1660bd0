// A server stream that stays open: it reconnects with back-off until it is destroyed.
#pragma once

#include <functional>
#include <memory>

#include "common/error/error.h"

namespace tollgate {

// Its destructor ends the stream. If destroyed on the loop of its callbacks, no callback runs
// afterwards.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

template <typename Message>
struct WatchHandler {
  // Each message, in order, on the client's loop.
  std::function<void(Message)> on_message;
  // The stream was lost; it is being reopened.
  std::function<void(const Error&)> on_lost;
};

}  // namespace tollgate
