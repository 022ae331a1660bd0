#include "gateway/worker/keyed_queue.h"

namespace tollgate::gateway {

Task<Turns::Turn> Turns::Take(std::string name) {
  const std::shared_ptr<Turns> self = shared_from_this();
  std::unique_ptr<Line>& place = lines_[name];
  if (place == nullptr) {
    place = std::make_unique<Line>(loop_);
    co_return Turn(self, std::move(name));
  }
  Line& line = *place;
  if (line.waiting >= most_waiting_) co_return Turn();
  ++line.waiting;
  // The line lives as long as somebody stands in it.
  const bool mine = co_await line.next.Wait();
  --line.waiting;
  if (!mine) co_return Turn();  // the loop ends
  co_return Turn(self, std::move(name));
}

void Turns::End(const std::string& name) {
  const auto found = lines_.find(name);
  if (found == lines_.end()) return;
  if (found->second->waiting > 0) {
    found->second->next.NotifyOne();
  } else {
    lines_.erase(found);
  }
}

}  // namespace tollgate::gateway
