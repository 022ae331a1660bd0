// Draws lines on a terminal and reads keys, with ncurses.
#pragma once

#include <vector>

#include "services/cli/top/screen.h"

namespace tollgate::cli {

class Terminal {
 public:
  // Takes the terminal over. False: standard input or output is none, or its kind is unknown.
  bool Open();
  // Gives it back.
  ~Terminal();

  int width() const;
  int height() const;
  void Show(const std::vector<ScreenLine>& lines);

  enum class Key { kNone, kQuit, kSort, kPause, kUp, kDown, kResized };
  // Waits at most so long.
  Key Read(int timeout_ms);

 private:
  bool open_ = false;
};

}  // namespace tollgate::cli
