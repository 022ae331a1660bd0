// A cluster in virtual time: gateways, routers and ledger nodes that crash, fail over, become slow
// and lose contact. The ledger nodes run the real ledger (services/billing/domain), routers the
// real leases (services/inference_router/domain/credit_lease.h); the rest of the routers, the
// gateways and the network are models that follow docs/design/ledger.md 3 and
// docs/design/failures.md.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "services/billing/domain/ledger.h"
#include "services/inference_router/domain/credit_lease.h"
#include "tests/simulation/events.h"

namespace tollgate::simulation {

// Counts of one run.
struct ClusterCounts {
  int64_t requests = 0, complete = 0, refused = 0, failed = 0, left = 0, unknown = 0;
  int64_t moved = 0, expired = 0, overrun = 0, top_ups = 0, operations = 0, commits = 0;
  int64_t admitted = 0, no_lease = 0, recalled = 0, lease_overrun = 0;
  int64_t crashes = 0, failovers = 0, cuts = 0, slow_disks = 0, lost_commits = 0;
  ClusterCounts& operator+=(const ClusterCounts& other);
};

class ClusterSimulation {
 public:
  static constexpr int kGateways = 64, kRouters = 32, kNodes = 16;
  static constexpr int kGatewayKind = 0, kRouterKind = 1, kNodeKind = 2;
  static constexpr int kWorkspaces = 40;
  static constexpr int64_t kSliceTokens = 64;

  explicit ClusterSimulation(uint64_t seed);
  // Returns false, and sets why(), when an invariant is broken.
  bool Run();
  const std::string& why() const { return why_; }
  const ClusterCounts& counts() const { return counts_; }

 private:
  using Operation = billing::Operation;
  using Done = std::function<void(std::optional<billing::Reply>)>;

  // A database with billing on it. Committed data survives; a batch in progress when the primary is
  // lost is committed or not, and its callers get no response.
  struct Node {
    struct Waiting {
      Operation operation;
      std::function<void(const billing::Reply&)> answer;
    };
    billing::State state;
    std::deque<Waiting> waiting;
    std::vector<Waiting> running;
    std::set<Id> open;  // open holds
    struct Chain {
      int64_t sequence = 0;
      std::string head = std::string(32, '\0');
    };
    std::map<std::string, Chain> chains;  // followed entry by entry, by workspace
    bool up = true;
    int64_t life = 0;  // rises with each loss
    int64_t slow_until_us = 0;
  };
  struct Process {
    bool up = true;
    int64_t life = 0;
  };
  enum class Told { kNothing, kComplete, kRefused, kFailed, kLeft };
  // A request and what its caller knows. The gateway and the router each hold a part of it, which
  // is lost when they crash.
  struct Request {
    Id id;
    std::string workspace;
    Rates rates;
    int64_t prompt = 0, length = 0;  // prompt and answer at the engine
    int64_t most = 0;                // tokens of the longest attempt
    bool leaves = false;
    int gateway = 0;
    int64_t gateway_life = 0;
    int32_t attempt = 0;
    int64_t sent = 0;  // incremented when the gateway leaves a router or selects another one
    int64_t authorized = 0, slice = 0;
    bool ended = false;   // ended at the gateway
    bool leased = false;  // a router admits it, or has admitted it
    bool may_be_leased = false;
    Told told = Told::kNothing;
    int64_t told_tokens = 0;
  };
  // One attempt at a router. The journal is what survives a crash of the router.
  struct Try {
    int64_t request = 0;
    int32_t attempt = 0;
    int64_t tokens = 0, authorized = 0, sequence = 0, heard_us = 0;
    int64_t cut_us = 0;  // since when it has no contact with its gateway; 0: in contact
    // Set for a request that was admitted from a lease. told: an operation with it was sent.
    std::shared_ptr<const billing::Admission> admission = nullptr;
    bool told = false;
  };
  struct Router : Process {
    std::map<std::pair<int64_t, int32_t>, Try> running;
    std::deque<billing::Settle> outbox;
    bool sending = false;
    // Credit by workspace; lost with the process.
    struct Held {
      inference_router::CreditLease lease;
      int64_t number = 0;
    };
    std::map<std::string, Held> leases;
    int64_t next_lease = 1;
  };

  // --- network and ledger
  Node& NodeOf(const std::string& workspace);
  bool Cut(int kind, int index, int other_kind, int other) const;
  // Sends the operation to the ledger from a process; done gets nullopt when there is no response
  // within the time. Not called when the process has crashed meanwhile.
  void Call(int kind, int index, Operation operation, int64_t timeout_us, Done done);
  void Commit(Node& node);
  void Apply(Node& node, std::vector<Node::Waiting>& batch, bool told);
  bool Check(Node& node, const billing::Applied& applied);
  void Expire(Node& node);

  // --- gateways (cluster_gateways.cc)
  void Ask(int gateway);
  void Authorize(int64_t number, int64_t deadline_us);
  void Start(int64_t number);
  void Watch(int64_t number, int router);
  bool Waits(const Request& request) const;
  void Lose(int64_t number, int32_t attempt);
  void Move(int64_t number);
  void Refuse(int64_t number, Told told);
  void Void(int gateway, const billing::Void& op, int64_t deadline_us);
  void TopUp(int gateway, billing::AddCredit op);

  // --- routers (cluster_routers.cc)
  void Step(int router, std::pair<int64_t, int32_t> key);
  void Settle(int router, std::pair<int64_t, int32_t> key, billing::Outcome outcome, bool cut);
  void Deliver(int router);

  // --- leases (cluster_leases.cc)
  bool HasLeases(const std::string& workspace) const;
  // nullptr: no lease of the router covers the request, and its gateway authorizes it.
  std::shared_ptr<const billing::Admission> Admit(int router, int64_t number);
  void SendBack(int64_t number, int32_t attempt);
  Router::Held& LeaseOf(int router, const std::string& workspace);
  void AskForLease(int router, const std::string& workspace);
  void RenewLeases(int router);
  // Takes the settlement out of the lease. recovered: the router does not know what was told.
  void EndAdmission(int router, const Try& run, billing::Settle& op, bool recovered);

  // --- faults
  void Crash(int kind, int index, int64_t down_us);
  void FailOver(int node, int64_t down_us);
  void PlanFault();

  bool CheckBooks();
  void Broken(std::string what);
  static int64_t Cost(const Rates& rates, int64_t prompt, int64_t completion);
  int64_t ClockUs() const;

  Events events_;
  billing::Policy policy_;
  std::array<Node, kNodes> nodes_;
  std::array<Process, kGateways> gateways_;
  std::array<Router, kRouters> routers_;
  std::map<std::array<int, 4>, int64_t> cuts_;  // until when
  std::vector<std::string> workspaces_;
  std::deque<Request> requests_;
  // Top-ups: amounts by command, and whether they were acknowledged.
  struct Credit {
    std::string workspace;
    int64_t nano_usd = 0;
    bool acknowledged = false;
  };
  std::map<std::string, Credit> credits_;
  std::string why_;
  ClusterCounts counts_;
};

}  // namespace tollgate::simulation
