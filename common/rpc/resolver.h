// The addresses behind the host names of targets, looked up in the background.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tollgate::rpc {

// The elements of a target that is a list.
std::vector<std::string> SplitTargets(const std::string& target);
// Whether this element is "name:port", neither an address nor a target within the machine.
bool IsName(const std::string& part);
// The addresses of "name:port", each with the port; empty if there is none: those of IPv4, or if
// it has none, of IPv6 ("[fd00::1]:7001"). Waits for as long as the system's resolver takes.
std::vector<std::string> LookUpAddresses(const std::string& part);

// Thread-safe. Does not wait for a look-up that still runs when it is destroyed.
class Resolver {
 public:
  using LookUp = std::function<std::vector<std::string>(const std::string& part)>;

  // look_up may be called on any thread, also after this is destroyed.
  explicit Resolver(LookUp look_up = LookUpAddresses);
  ~Resolver();

  // "10.0.0.1:7001" and so on for each address of "name:port" (LookUpAddresses), as of the last
  // look-up, of three seconds ago at most unless look-ups fail or take longer. Empty: not known
  // yet. Never waits.
  std::vector<std::string> AddressesOf(const std::string& part);
  // The addresses of all elements of a target, each once and in order. Names without an address as
  // yet are left as they are, for gRPC to look up.
  std::vector<std::string> AddressesOfAll(const std::vector<std::string>& parts);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::rpc
