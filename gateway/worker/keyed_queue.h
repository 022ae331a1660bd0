// One at a time per name: whoever comes meanwhile waits in line, and a line that is too long turns
// people away. For work that is free for the caller and not for us. One loop only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/runtime/notify.h"

namespace tollgate::gateway {

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // most_waiting: in one line, besides the one whose turn it is.
  Turns(Loop& loop, int most_waiting) : loop_(loop), most_waiting_(most_waiting) {}

  // Ends by dying. False in a condition when there was no room to wait.
  class Turn {
   public:
    Turn() = default;
    Turn(std::shared_ptr<Turns> of, std::string name)
        : of_(std::move(of)), name_(std::move(name)) {}
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (of_) of_->End(name_);
    }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    std::shared_ptr<Turns> of_;
    std::string name_;
  };

  // Returns when it is the caller's turn; at once when there is no room to wait.
  Task<Turn> Take(std::string name);
  // Names whose turn is taken.
  size_t size() const { return lines_.size(); }

 private:
  struct Line {
    explicit Line(Loop& loop) : next(loop) {}
    Notify next;
    int waiting = 0;
  };
  void End(const std::string& name);

  Loop& loop_;
  const int most_waiting_;
  std::unordered_map<std::string, std::unique_ptr<Line>> lines_;
};

}  // namespace tollgate::gateway
