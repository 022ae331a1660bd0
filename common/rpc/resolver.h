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
// Returns the addresses of "name:port", each with the port: those of IPv4, otherwise those of IPv6
// ("[fd00::1]:7001"); empty if there are none. Blocks as long as the system's resolver takes.
std::vector<std::string> LookUpAddresses(const std::string& part);

// Thread-safe. The destructor does not wait for a running look-up.
class Resolver {
 public:
  using LookUp = std::function<std::vector<std::string>(const std::string& part)>;

  // look_up may be called on any thread, even after this object is destroyed.
  explicit Resolver(LookUp look_up = LookUpAddresses);
  ~Resolver();

  // Returns "10.0.0.1:7001" and so on for each address of "name:port" (LookUpAddresses). The result
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
