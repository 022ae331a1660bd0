// Resolves the host names of targets in the background.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tollgate::rpc {

// Splits a target that is a list into its elements.
std::vector<std::string> SplitTargets(const std::string& target);
// Whether this element is "name:port" rather than an address or a target on this machine.
bool IsName(const std::string& part);
// Calls found once, maybe later and on another thread, with the addresses of "name:port", each with
// the port: those of IPv4, otherwise those of IPv6 ("[fd00::1]:7001"); none if the look-up fails.
using Found = std::function<void(std::vector<std::string> addresses)>;
using LookUp = std::function<void(const std::string& part, Found found)>;
// Asks the system, on threads of its own: names that hang hold up only others of this look-up.
LookUp SystemLookUp();

// Thread-safe. The destructor does not wait for a running look-up.
class Resolver {
 public:
  explicit Resolver(LookUp look_up = SystemLookUp());
  ~Resolver();

  // Returns "10.0.0.1:7001" and so on for each address of "name:port" (Found). The result
  // is at most three seconds old unless look-ups fail or take longer; empty: not known yet. Never
  // waits.
  std::vector<std::string> AddressesOf(const std::string& part);
  // Returns the addresses of all elements of a target, without duplicates and in order. Names
  // without known addresses stay as they are, so that gRPC resolves them.
  std::vector<std::string> AddressesOfAll(const std::vector<std::string>& parts);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::rpc
