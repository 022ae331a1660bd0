// The live view as lines of text of a given size. Pure: the terminal only draws them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/cli/top/figures.h"

namespace tollgate::cli {

enum class Style : uint8_t { kPlain, kTitle, kHeading, kDim, kGood, kWarning, kBad, kNumber };

struct Span {
  std::string text;
  Style style = Style::kPlain;
};
using ScreenLine = std::vector<Span>;

struct View {
  int width = 80;
  int height = 24;
  EngineOrder order = EngineOrder::kName;
  bool paused = false;
  // First engine to show, if not all fit.
  int first_engine = 0;
  // Puts the key help on the last line of the screen; otherwise below the tables.
  bool fill = true;
  std::string time;  // time of the newest reading, "12:34:56"
};

// At most view.height lines, each of at most view.width columns.
std::vector<ScreenLine> Draw(const Figures& figures, const View& view);
// The lines without styles.
std::string AsText(const std::vector<ScreenLine>& lines);

// "1,234", "12.3k", "4.56M": at most six characters.
std::string Short(double value);

}  // namespace tollgate::cli
