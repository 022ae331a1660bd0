// The statement as PDF, with the standard fonts of all readers.
#include <hpdf.h>

#include "common/base/utc_text.h"
#include "common/money/money.h"
#include "services/billing/statement/statement.h"

namespace tollgate::billing {
namespace {

constexpr HPDF_REAL kLeft = 56;
constexpr HPDF_REAL kRight = 539;
constexpr HPDF_REAL kMiddle = 400;
constexpr HPDF_REAL kTop = 780;
constexpr HPDF_REAL kBottom = 64;
constexpr HPDF_REAL kLine = 16;

class Paper {
 public:
  Paper() : document_(HPDF_New([](HPDF_STATUS, HPDF_STATUS, void*) {}, nullptr)) {
    if (document_ == nullptr) return;
    HPDF_SetCompressionMode(document_, HPDF_COMP_ALL);
    plain_ = HPDF_GetFont(document_, "Helvetica", "WinAnsiEncoding");
    bold_ = HPDF_GetFont(document_, "Helvetica-Bold", "WinAnsiEncoding");
  }
  ~Paper() {
    if (document_ != nullptr) HPDF_Free(document_);
  }
  Paper(const Paper&) = delete;
  Paper& operator=(const Paper&) = delete;

  void Title(const std::string& text) {
    Next(2 * kLine);
    Write(bold_, 18, kLeft, text);
  }
  void Heading(const std::string& text) {
    Next(2 * kLine);
    Write(bold_, 12, kLeft, text);
  }
  void Row(const std::string& name, const std::string& middle, int64_t amount_nano_usd,
           bool total = false) {
    Next(kLine);
    const HPDF_Font font = total ? bold_ : plain_;
    Write(font, 10, kLeft, name);
    WriteTo(font, kMiddle, middle);
    WriteTo(font, kRight, NanoToDecimalUsd(amount_nano_usd) + " USD");
  }
  void Text(const std::string& text) {
    Next(kLine);
    Write(plain_, 10, kLeft, text);
  }
  std::string Done() {
    if (document_ == nullptr || HPDF_SaveToStream(document_) != HPDF_OK) return "";
    std::string bytes(HPDF_GetStreamSize(document_), '\0');
    auto size = static_cast<HPDF_UINT32>(bytes.size());
    HPDF_ResetStream(document_);
    const HPDF_STATUS read =
        HPDF_ReadFromStream(document_, reinterpret_cast<HPDF_BYTE*>(bytes.data()), &size);
    if (read != HPDF_OK && read != HPDF_STREAM_EOF) return "";
    if (HPDF_GetError(document_) != HPDF_OK && read != HPDF_STREAM_EOF) return "";
    bytes.resize(size);
    return bytes;
  }

 private:
  void Next(HPDF_REAL down) {
    y_ -= down;
    if (page_ != nullptr && y_ >= kBottom) return;
    page_ = HPDF_AddPage(document_);
    HPDF_Page_SetSize(page_, HPDF_PAGE_SIZE_A4, HPDF_PAGE_PORTRAIT);
    y_ = kTop;
  }
  void Write(HPDF_Font font, HPDF_REAL size, HPDF_REAL x, const std::string& text) {
    HPDF_Page_BeginText(page_);
    HPDF_Page_SetFontAndSize(page_, font, size);
    HPDF_Page_TextOut(page_, x, y_, text.c_str());
    HPDF_Page_EndText(page_);
  }
  // Right-aligned: the text ends at x.
  void WriteTo(HPDF_Font font, HPDF_REAL x, const std::string& text) {
    if (text.empty()) return;
    HPDF_Page_SetFontAndSize(page_, font, 10);
    Write(font, 10, x - HPDF_Page_TextWidth(page_, text.c_str()), text);
  }

  HPDF_Doc document_;
  HPDF_Font plain_ = nullptr;
  HPDF_Font bold_ = nullptr;
  HPDF_Page page_ = nullptr;
  HPDF_REAL y_ = kTop;
};

void UsageSection(Paper& paper, const std::string& heading,
                  const std::vector<StatementLine>& lines) {
  paper.Heading(heading);
  int64_t sum = 0;
  for (const StatementLine& line : lines) {
    paper.Row(line.name, std::to_string(line.requests) + " requests", line.amount_nano_usd);
    sum += line.amount_nano_usd;
  }
  paper.Row("Total", "", sum, true);
}

}  // namespace

std::string ToPdf(const Statement& statement) {
  Paper paper;
  paper.Title("Statement " + UtcMonthText(statement.month));
  if (!statement.number.empty()) paper.Text("Number " + statement.number);
  paper.Text("Workspace " + statement.workspace + ", all times UTC");
  if (statement.preliminary_us > 0) {
    paper.Text("Preliminary: the month has not ended. As of " +
               UtcText(statement.preliminary_us, UtcPrecision::kSeconds));
  }
  paper.Heading("Credit");
  paper.Row("Opening balance", "", statement.opening_nano_usd, true);
  for (const StatementLine& line : statement.movements) {
    paper.Row(line.name, "", line.amount_nano_usd);
  }
  paper.Row("Closing balance", "", statement.closing_nano_usd, true);
  if (statement.owes()) {
    paper.Heading("Owed after chargebacks");
    paper.Row("Owed at the start", "", statement.opening_receivable_nano_usd, true);
    for (const StatementLine& line : statement.receivable_movements) {
      paper.Row(line.name, "", line.amount_nano_usd);
    }
    paper.Row("Owed at the end", "", statement.closing_receivable_nano_usd, true);
  }
  UsageSection(paper, "Usage by model", statement.by_model);
  UsageSection(paper, "Usage by key", statement.by_key);
  return paper.Done();
}

}  // namespace tollgate::billing
