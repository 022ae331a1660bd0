// Look-ups of host names that a caller can abandon. getaddrinfo cannot be interrupted, and it waits
// tens of seconds for silent name servers. So it runs on threads that are never joined (ADR 0045).
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/resolver_base.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "common/runtime/task.h"

namespace tollgate {

// Thread-safe. Concurrent calls for the same name share one look-up, so that a name that hangs
// holds only one thread.
class HostResolver {
 public:
  struct Answer {
    boost::system::error_code error;
    std::vector<asio::ip::address> addresses;
  };
  // Called on the resolver's threads. May block.
  using LookUp = std::function<Answer(const std::string& host)>;
  // Must not call the resolver.
  using Done = std::function<void(const Answer& answer)>;

  // Limit of concurrent look-ups; further names wait.
  static constexpr size_t kMaxThreads = 16;

  explicit HostResolver(LookUp look_up);
  // Does not wait for running look-ups.
  ~HostResolver();
  HostResolver(const HostResolver&) = delete;
  HostResolver& operator=(const HostResolver&) = delete;

  // The resolver of the process for HTTP.
  static const std::shared_ptr<HostResolver>& Shared();
  // getaddrinfo. address_configured: only addresses of the families that this machine has.
  static LookUp System(asio::ip::resolver_base::flags flags);

  // Calls done once, on any thread, even after this object is destroyed.
  void Ask(const std::string& host, Done done);

 private:
  friend class HostLookUp;
  struct State;
  std::shared_ptr<State> state_;
};

// One caller's look-up. Used only on the thread of the loop.
class HostLookUp {
 public:
  HostLookUp(Loop& loop, const HostResolver& resolver);
  // Abandons the look-up: a late answer is dropped.
  ~HostLookUp();
  HostLookUp(const HostLookUp&) = delete;
  HostLookUp& operator=(const HostLookUp&) = delete;

  // Call it once. Returns operation_aborted after Cancel.
  Task<HostResolver::Answer> Run(std::string host);
  // Ends Run at once. Callable at any time.
  void Cancel();

 private:
  struct Waiting;
  Loop& loop_;
  Waiter waiter_;
  std::shared_ptr<HostResolver::State> state_;
  std::shared_ptr<Waiting> waiting_;
  std::string host_;
  std::shared_ptr<const HostResolver::Done> done_;
};

}  // namespace tollgate
