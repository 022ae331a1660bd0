// Conversions are lossless. See docs/design/wire.md 4.
#include "gateway/surfaces/embeddings/vectors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/base64.h"
#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

std::string Form(std::string_view json, VectorForm form) {
  std::string out;
  AppendVector(out, json, form);
  return out;
}

TEST(Vectors, FloatsRoundTrip) {
  std::string bytes;
  // Samples all exponents, both signs, and denormals.
  for (uint32_t bits = 1; bits < 0x7F800000U; bits += 100'003) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const uint32_t value = bits | sign;
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  const std::string base64 = "\"" + Base64Encode(bytes) + "\"";
  const std::string numbers = Form(base64, VectorForm::kFloats);
  EXPECT_TRUE(json::Document::ParseView("[" + numbers.substr(1)).ok()) << "must be JSON";
  EXPECT_EQ(Form(numbers, VectorForm::kBase64), base64);
}

TEST(Vectors, ShortestDecimals) {
  const auto of = [](float value) {
    return Form("\"" + Base64Encode({reinterpret_cast<const char*>(&value), 4}) + "\"",
                VectorForm::kFloats);
  };
  EXPECT_EQ(of(0.1F), "[0.1]");
  EXPECT_EQ(of(-0.0F), "[-0]");
  EXPECT_EQ(of(1.0F / 3), "[0.33333334]");
  EXPECT_EQ(of(1e-7F), "[1e-07]");
}

TEST(Vectors, DecimalsBecomeTheNearestFloat) {
  // The digits of a double, as Python prints a float32.
  EXPECT_EQ(Form("[0.30000001192092896]", VectorForm::kBase64), Form("[0.3]", VectorForm::kBase64));
  // Must be rounded once, not through a double: the value is just above the midpoint of two floats.
  const auto first = [](const std::string& json) {
    const std::string text = Form(json, VectorForm::kBase64);
    float value = 0;
    std::memcpy(&value, Base64Decode(text.substr(1, text.size() - 2))->data(), 4);
    return value;
  };
  EXPECT_EQ(first("[1.000000059604644775390626]"), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(first("[1e-60]"), 0.0F);
  EXPECT_TRUE(std::signbit(first("[-1e-60]")));
  EXPECT_EQ(Form("[]", VectorForm::kBase64), "\"\"");
  EXPECT_EQ(Form("\"\"", VectorForm::kFloats), "[]");
}

}  // namespace
}  // namespace tollgate::gateway
