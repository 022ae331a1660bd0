#include "services/cli/top/terminal.h"

#include <clocale>
#include <cstdio>
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <unistd.h>

namespace tollgate::cli {
namespace {

enum Pair : short { kGoodPair = 1, kWarningPair, kBadPair, kNumberPair, kHeadingPair };

attr_t AttributesOf(Style style) {
  switch (style) {
    case Style::kTitle:
      return A_REVERSE;
    case Style::kHeading:
      return A_BOLD | COLOR_PAIR(kHeadingPair);
    case Style::kDim:
      return A_DIM;
    case Style::kGood:
      return COLOR_PAIR(kGoodPair);
    case Style::kWarning:
      return COLOR_PAIR(kWarningPair) | A_BOLD;
    case Style::kBad:
      return COLOR_PAIR(kBadPair) | A_BOLD;
    case Style::kNumber:
    case Style::kPlain:
      return A_NORMAL;
  }
  return A_NORMAL;
}

}  // namespace

bool Terminal::Open() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) return false;
  // Uses UTF-8 in any environment: every Debian has C.UTF-8.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) return false;
  ::set_term(screen);
  open_ = true;
  ::cbreak();
  ::noecho();
  ::nonl();
  ::curs_set(0);
  ::keypad(stdscr, TRUE);
  ::set_escdelay(25);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kGoodPair, COLOR_GREEN, -1);
    ::init_pair(kWarningPair, COLOR_YELLOW, -1);
    ::init_pair(kBadPair, COLOR_RED, -1);
    ::init_pair(kHeadingPair, COLOR_CYAN, -1);
  }
  return true;
}

Terminal::~Terminal() {
  if (open_) ::endwin();
}

int Terminal::width() const { return getmaxx(stdscr); }
int Terminal::height() const { return getmaxy(stdscr); }

void Terminal::Show(const std::vector<ScreenLine>& lines) {
  ::erase();
  for (size_t row = 0; row < lines.size(); ++row) {
    ::move(static_cast<int>(row), 0);
    for (const Span& span : lines[row]) {
      ::attrset(static_cast<int>(AttributesOf(span.style)));
      ::addstr(span.text.c_str());
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

Terminal::Key Terminal::Read(int timeout_ms) {
  ::timeout(timeout_ms);
  switch (::getch()) {
    case 'q':
    case 'Q':
    case 3:  // Ctrl-C, if the terminal does not turn it into a signal
      return Key::kQuit;
    case 's':
      return Key::kSort;
    case 'p':
    case ' ':
      return Key::kPause;
    case KEY_UP:
    case 'k':
      return Key::kUp;
    case KEY_DOWN:
    case 'j':
      return Key::kDown;
    case KEY_RESIZE:
      return Key::kResized;
    default:
      return Key::kNone;
  }
}

}  // namespace tollgate::cli
