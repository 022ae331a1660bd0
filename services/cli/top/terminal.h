// Draws lines on a terminal and reads keys, with ncurses.
#pragma once

#include <vector>

#include "services/cli/top/screen.h"

namespace tollgate::cli {

class Terminal {
 public:
  // Takes over the terminal. Returns false if standard input or output is not a terminal, or its
  // type is unknown.
  bool Open();
  // Restores the terminal.
  ~Terminal();

  int width() const;
  int height() const;
  void Show(const std::vector<ScreenLine>& lines);

  enum class Key { kNone, kQuit, kSort, kPause, kUp, kDown, kResized };
  // Waits at most this long.
  Key Read(int timeout_ms);

 private:
  bool open_ = false;
};

}  // namespace tollgate::cli
